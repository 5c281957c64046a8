import { resolve } from 'node:path';
import type { SharedTools } from '../api/shared-place.ts';
import { openData } from '../app/data.ts';
import { keyFile, readKeyRing } from '../app/key-file.ts';
import { defaultOptions } from '../app/options.ts';
import { serialiseKeyRing, type KeyRing } from '../auth/keys.ts';
import { invariant, readReason } from '../base/errors.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import { brokenRules } from '../collections/file-records.ts';
import { options } from '../config/options.ts';
import { readSecret } from '../config/read.ts';
import type { Copy, OfflineOptions } from '../options/offline/offline.ts';
import {
  errorCode,
  temporaryName,
  writeAll,
  writeSynced,
  type Files,
} from '../store/disk/files.ts';
import { LockedError, systemMachine } from '../store/disk/lock.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { journalNumbers } from '../store/format/journal.ts';
import { unfinishedName } from '../store/recovery/recover.ts';
import {
  dataDirectory,
  isWithin,
  joinGivenCluster,
  type Invocation,
  type Terminal,
} from './command.ts';
import {
  checkDirectory,
  describeCounts,
  failure,
  ok,
  describeDamage,
  warning,
  type Checked,
  type Finding,
} from './findings.ts';
import { inCluster, inDirectory, type Location } from './location.ts';
import { prepareStore, undeclared } from './store.ts';

/** The data of servers as commands use them. */
export interface Place extends Location {
  holds(path: string): boolean;
  /** True even if the store is incomplete. */
  exists(): Promise<boolean>;
  /** Looks for damage as a start with these declarations would, and writes nothing. */
  check(call: Invocation, declared?: Partial<Declarations>): Promise<Checked>;
  /** Reads everything as of one commit; servers may go on writing. */
  read(): Promise<Copy>;
  /** Writes a copy to a place without data. */
  write(read: () => Promise<Copy>): Promise<Copy>;
  readKeys(): Promise<KeyRing | undefined>;
  /** @throws LockedError */
  changeKeys(change: (ring?: KeyRing) => KeyRing): Promise<KeyRing>;
  /** Says, in a message, when servers use a new key. */
  readonly newKeyUse: string;
}

interface Use {
  /** Returns the directory without a cluster; by default, it must exist. @throws OptionError */
  readonly findDirectory?: (call: Invocation) => string;
  readonly declared?: Partial<Declarations> | undefined;
}

export async function findPlace(
  call: Invocation,
  { findDirectory = dataDirectory, declared }: Use = {},
): Promise<Place> {
  const cluster = await joinGivenCluster(call, declared, declared && 'check');
  return cluster ? clusterPlace(cluster) : directoryPlace(findDirectory(call), call.terminal);
}

/** The directory may not exist yet. */
export const newDirectory = ({ read }: Invocation): string => resolve(read(options.directory));

function clusterPlace(cluster: SharedTools): Place {
  return {
    ...inCluster(cluster),
    holds: () => false,
    exists: () => Promise.resolve(true),
    check: (_call, declared) => checkCluster(cluster, declared),
    read: () => cluster.read(),
    async write(read) {
      const copy = await read();
      await cluster.write(copy.image);
      return copy;
    },
    readKeys: () => cluster.changeKeys((found) => found),
    changeKeys: (change) => cluster.changeKeys(change),
    newKeyUse: ', on all nodes',
  };
}

/** `restores`: the copy becomes a store of its own, without sessions. */
export function directoryPlace(directory: string, terminal: Terminal, restores = false): Place {
  const files = (): Files => new NodeFiles(directory);
  const settings = { ...offlineOptions(terminal), restores };
  return {
    ...inDirectory(directory),
    exists: () => prepareStore(directory).exists(),
    check: (call, declared) => checkStoreIn(directory, call, declared),
    holds: (path) => isWithin(directory, path),
    read: async () => (await loadOffline()).readCopy(files(), settings),
    write: async (read) => (await loadOffline()).writeCopy(files(), read, settings),
    readKeys: () => readKeyRing(files()),
    changeKeys: (change) => changeKeyFile(files(), change),
    newKeyUse: '; send SIGHUP to a running server',
  };
}

/** Works while a server uses the directory. */
async function checkStoreIn(
  directory: string,
  { terminal, given }: Invocation,
  declared: Partial<Declarations> = {},
): Promise<Checked> {
  const { checkStore } = await loadOffline();
  const secret = readSecret('CAIRN_SECRET', given);
  offlineOptions(terminal).onProgress(`checking ${directory}`);
  const { store, registry } = openData({ ...defaultOptions, directory, ...declared });
  const found = await checkStore(new NodeFiles(directory), store.freshTables);
  const findings = [
    ...describeDamage(found.damage).map(failure),
    ...found.notices.map(warning),
    ...undeclared(store, found.collections).map(warning),
    ...brokenRules(registry, found.tables ?? new Map()).map(staysUntilWritten),
    ...describeCounts(found.collections).map(ok),
    ...checkDirectory(directory),
    await checkKeys(directory, secret),
  ];
  return { findings, remedies: new Set(found.damage.map(({ remedy }) => remedy)) };
}

const staysUntilWritten = (line: string): Finding =>
  warning(`${line}: it stays until it is written again`);

/**
 * Reads a cluster as a node with these collections would at its start, and writes nothing.
 * @throws ClusterError if that node would not start
 */
async function checkCluster(
  cluster: SharedTools,
  declared?: Partial<Declarations>,
): Promise<Checked> {
  const { store, registry } = openData({ ...defaultOptions, ...declared }, undefined, cluster);
  await store.start();
  const { collections, sequence } = store.status();
  const stored = new Map(Array.from(registry, ([name, { records }]) => [name, records]));
  const broken = declared === undefined ? [] : brokenRules(registry, stored);
  const room = await cluster.testRoom().then(
    () => ok('etcd accepts writes'),
    (error: Error) => failure(`No write succeeds: ${error.message}; see "etcdctl alarm list"`),
  );
  await store.close();
  const findings = [
    ...broken.map(staysUntilWritten),
    ...describeCounts(collections).map(ok),
    declared
      ? ok('The declared collections fit the others, and all records')
      : warning('No collections are compared with the others; use --collections'),
    ok(`${cluster.prefix} in etcd holds all commits up to ${sequence}`),
    room,
  ];
  return { findings, remedies: [] };
}

/** Checks the key ring. A finding names the broken rule, and never shows the content. */
async function checkKeys(directory: string, secret: string | undefined): Promise<Finding> {
  if (secret !== undefined) return ok('The key is configured');
  const files = new NodeFiles(directory);
  try {
    const ring = await readKeyRing(files);
    if (ring !== undefined) return ok(`Of the keys, 1 signs and ${ring.keys.length - 1} verify`);
  } catch (error) {
    return failure(readReason(error));
  }
  const names = await files.list();
  if (names.includes(unfinishedName)) return ok('There are no keys before the copy is complete');
  if (journalNumbers(names).length === 0) {
    return warning('No store is here yet: the first start makes it, and a key');
  }
  return warning(
    `There is no ${keyFile} in the data directory: without CAIRN_SECRET, a start makes new keys`,
  );
}

export const loadOffline = () => import('../options/offline/offline.ts');

/** The records and the file that let callers in. */
export const credentials = { collections: ['sessions', 'api-keys'], keyFile };

export function offlineOptions({ interactive, err }: Terminal): OfflineOptions {
  return {
    clock: systemClock,
    random: systemRandom,
    machine: systemMachine,
    credentials,
    // Names slow steps if a person waits.
    onProgress: (step) => (interactive ? err(`${step} …\n`) : undefined),
  };
}

/**
 * Changes the ring in the file. The temporary file serves as a lock, so that no concurrent change
 * is lost. Only a server creates the first ring, and does so without this lock.
 */
async function changeKeyFile(files: Files, change: (ring?: KeyRing) => KeyRing): Promise<KeyRing> {
  const temporary = temporaryName('rotation');
  try {
    await files.prepare();
    await writeSynced(files, temporary, 'exclusive', async (file) => {
      const ring = change(await readKeyRing(files));
      await writeAll(file, Buffer.from(serialiseKeyRing(ring)), 0);
    });
    try {
      await files.rename(temporary, keyFile);
    } catch (error) {
      await files.remove(temporary);
      throw error;
    }
    await files.syncDirectory();
    const changed = await readKeyRing(files);
    invariant(changed !== undefined, 'the key file was just written');
    return changed;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new LockedError(
      `Cannot rotate the keys: another rotation has ${temporary}; remove it if none is running`,
    );
  } finally {
    await files.close();
  }
}
