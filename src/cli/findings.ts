import { readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreDamageError } from '../store/recovery/damage-error.ts';
import type { StoreStatus } from '../store/store.ts';

/** One result of `cairn check`. A failure must be fixed; a warning need not be. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'failure';
  readonly text: string;
}

export interface Checked {
  readonly findings: readonly Finding[];
  readonly remedies: Iterable<string>;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const warning = (text: string): Finding => ({ level: 'warning', text });
export const failure = (text: string): Finding => ({ level: 'failure', text });

const remote = (kind: string): Finding =>
  failure(`The data directory is on ${kind}: locks and syncs do not hold there; use a local disk`);

/**
 * `statfs` types on Linux that break Cairn's guarantees, from <linux/magic.h> and the kernel's
 * sources.
 */
const fileSystems: ReadonlyMap<number, Finding> = new Map([
  [0x6969, remote('NFS')],
  [0xff534d42, remote('CIFS')],
  [0xfe534d42, remote('SMB')],
  [0x01021997, remote('9P')],
  [
    0x01021994,
    warning('The data directory is on tmpfs: all is lost when the machine restarts; use a disk'),
  ],
  [
    0x794c7630,
    warning("The data directory is in a container's layer, and is lost with it: use a volume"),
  ],
  [
    0x65735546,
    warning(
      'The data directory is on FUSE: whether a sync reaches a disk is not known; use a local disk',
    ),
  ],
]);

export function checkFileSystem(kind: number): Finding {
  return fileSystems.get(kind) ?? ok('The file system is a local one');
}

/** The files that Cairn creates in a data directory. Others are not checked. */
const ownName = /^(lock|admin-password|[\w%-]+\.(jsonl?|torn))(\.\w+)*$/;

export function checkDirectory(directory: string): Finding[] {
  const names = ['.', ...readdirSync(directory).filter((name) => ownName.test(name))];
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const open = names.flatMap((name) => {
    // A running server may have removed the file since.
    const { mode = 0, gid } = statSync(join(directory, name), { throwIfNoEntry: false }) ?? {};
    const isOpen = process.platform !== 'win32' && (mode & 0o077) !== 0;
    // A server also starts with its own group on the directory, as Kubernetes sets it on a volume.
    const isHarmful = name !== '.' && (mode & (groups.includes(gid) ? 0o007 : 0o077)) !== 0;
    return isOpen ? [{ name, isHarmful, octal: (mode & 0o777).toString(8).padStart(4, '0') }] : [];
  });
  // An open directory with closed files reveals only names and sizes.
  const level = open.some(({ isHarmful }) => isHarmful) ? failure : warning;
  const findings = open.map(({ name, octal }) => {
    const what = name === '.' ? 'The data directory' : name;
    return level(
      `${what} can be read by other users of this machine (mode ${octal}): chmod go= it`,
    );
  });
  return [
    checkFileSystem(statfsSync(directory).type),
    ...(open.length > 0 ? findings : [ok('Only its owner can read the data')]),
  ];
}

export function describeCounts(collections: StoreStatus['collections']): string[] {
  return collections.map(({ name, records }) => `${name}: ${describeRecords(records)}`);
}

export const describeRecords = (count: number): string =>
  count === 1 ? '1 record' : `${count.toLocaleString('en')} records`;

/** Groups records that share a problem. */
export function describeDamage(damage: readonly StoreDamageError[]): string[] {
  const groups = new Map<string, StoreDamageError[]>();
  for (const one of damage) {
    const key = one.misfit === undefined ? one.problem : `${one.file} ${one.misfit.reason}`;
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(one);
  }
  return Array.from(groups.values(), ([first, ...others]) => {
    if (first?.misfit === undefined || others.length === 0) return first?.problem ?? '';
    const { file, offset, misfit, label } = first;
    const ids = [first, ...others].flatMap((one) => one.misfit?.id ?? []);
    const named = ids.slice(0, 3).map((id) => JSON.stringify(id));
    const shown = named.join(', ') + (ids.length > 3 ? ', …' : '');
    const count = describeRecords(ids.length);
    const records = `${count} do not fit their declaration, with the ids ${shown}`;
    return `${file}, from byte ${offset}: ${records}: each ${misfit.reason} [${label}]`;
  });
}
