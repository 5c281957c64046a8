import { X509Certificate } from 'node:crypto';
import { readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readTls } from '../config/certificate.ts';

/** One thing that `cairn check` looked at. A warning is worth knowing, a failure has to be mended. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'failure';
  readonly text: string;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const warning = (text: string): Finding => ({ level: 'warning', text });
export const failure = (text: string): Finding => ({ level: 'failure', text });

const clockBehindMaxMs = 60_000;
const distinctCharactersMin = 10;
const freeMiBMin = 64;
/** So long before its end, a certificate should have been renewed. */
const renewalMs = 14 * 24 * 60 * 60 * 1000;

/** The kinds of `statfs` on Linux that do not keep Cairn's promises, from <linux/magic.h> and the kernel's sources. */
const fileSystems: ReadonlyMap<number, Finding> = new Map([
  [0x6969, failure('The data directory is on NFS: locks and syncs do not hold there')],
  [0xff534d42, failure('The data directory is on CIFS: locks and syncs do not hold there')],
  [0xfe534d42, failure('The data directory is on SMB: locks and syncs do not hold there')],
  [0x01021997, failure('The data directory is on 9P: locks and syncs do not hold there')],
  [0x01021994, warning('The data directory is on tmpfs: all is gone when the machine restarts')],
  [0x794c7630, warning("The data directory is in a container's own layer, and goes with it: use a volume")],
  [0x65735546, warning('The data directory is on FUSE: whether a sync reaches the disk depends on what is behind it')],
]);

export function checkFileSystem(kind: number): Finding {
  return fileSystems.get(kind) ?? ok('The file system is a local one');
}

/** A configured key has been measured already; of one that is made of few characters, length says nothing. */
export function checkSecret(secret: string): Finding {
  if (new Set(secret).size >= distinctCharactersMin) return ok('The key is configured, and long enough');
  return warning('The configured key is made of few characters: take one from openssl rand -hex 32, say');
}

/** What Cairn makes in a data directory. What else is there is not looked at. */
const ownName = /^(lock|admin-password|[a-z][a-z0-9-]*\.(jsonl?|torn))(\.\w+)*$/;

/** What operators get wrong around a data directory that exists. `now`: milliseconds since the Unix epoch. */
export function checkDirectory(directory: string, now: number): Finding[] {
  const { type, bavail, bsize } = statfsSync(directory);
  const freeMiB = Math.floor((bavail * bsize) / 1024 ** 2);
  const entries = ['.', ...readdirSync(directory).filter((name) => ownName.test(name))].flatMap((name) => {
    const found = statSync(join(directory, name), { throwIfNoEntry: false });
    return found === undefined ? [] : [{ name, mode: found.mode & 0o777, mtimeMs: found.mtimeMs }];
  });
  const loose = entries.filter(({ mode }) => process.platform !== 'win32' && (mode & 0o077) !== 0);
  // Of a directory, names and sizes alone are seen where its files are their owner's.
  const level = loose.every(({ name }) => name === '.') ? warning : failure;
  const readable = loose.map(({ name, mode }) => {
    const [what, octal] = [name === '.' ? 'The data directory' : name, mode.toString(8).padStart(4, '0')];
    return level(`${what} can be read by other users of this machine (mode ${octal}): chmod go= it`);
  });
  return [
    checkFileSystem(type),
    (freeMiB >= freeMiBMin ? ok : warning)(`${freeMiB} MiB are free for the data`),
    ...(readable.length > 0 ? readable : [ok('Only its owner can read the data')]),
    entries.some(({ mtimeMs }) => mtimeMs - now > clockBehindMaxMs)
      ? failure('The clock is behind the newest file: sessions and tokens end at wrong times')
      : ok('The clock is not behind the data'),
  ];
}

/** Of the certificate and its key. `now`: milliseconds since the Unix epoch. */
export async function checkTls(files: Parameters<typeof readTls>[0], now: number): Promise<Finding> {
  try {
    const { validTo } = new X509Certificate((await readTls(files)).cert);
    const left = Date.parse(validTo) - now;
    const date = new Date(validTo).toISOString().slice(0, 10);
    if (left < 0) return failure(`The certificate ended on ${date}`);
    return (left < renewalMs ? warning : ok)(`The certificate ends on ${date}`);
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
}
