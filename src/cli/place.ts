import { resolve } from 'node:path';
import type { SharedTools } from '../api/shared-place.ts';
import { keyFile, readKeyRing } from '../app/key-file.ts';
import { serialiseKeyRing, type KeyRing } from '../auth/keys.ts';
import { invariant } from '../base/errors.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config/options.ts';
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
import { clusterOf, dataDirectory, isWithin, type Call, type Terminal } from './command.ts';

/** The data of servers as commands find them: in a directory or in a cluster. */
export interface Place {
  /** As messages call it. */
  readonly name: string;
  /** True if a path of this machine is in it. */
  holds(path: string): boolean;
  /** Reads everything after one commit; servers may go on writing. */
  read(): Promise<Copy>;
  /** Writes a copy to a place that has no data yet. */
  write(read: () => Promise<Copy>): Promise<Copy>;
  readKeys(): Promise<KeyRing | undefined>;
  /** Replaces the key ring by what `change` makes of it. @throws LockedError */
  changeKeys(change: (ring?: KeyRing) => KeyRing): Promise<KeyRing>;
  /** When servers use a new key, for a message. */
  readonly newKeyUse: string;
}

/** Returns the place that the options name. @throws OptionError if a directory is not there */
export async function placeOf(call: Call): Promise<Place> {
  const cluster = await clusterOf(call);
  return cluster ? clusterPlace(cluster) : directoryPlace(dataDirectory(call), call.terminal);
}

/** Returns the place that the options name, which may not be there yet. */
export async function newPlaceOf(call: Call): Promise<Place> {
  const cluster = await clusterOf(call);
  const directory = resolve(call.read(options.directory));
  return cluster ? clusterPlace(cluster) : directoryPlace(directory, call.terminal);
}

function clusterPlace(cluster: SharedTools): Place {
  return {
    name: `${cluster.prefix} in etcd`,
    holds: () => false,
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

/** `restores`: what is read is to become a store of its own, in which nobody is signed in. */
export function directoryPlace(directory: string, terminal: Terminal, restores = false): Place {
  const files = (): Files => new NodeFiles(directory);
  const settings = { ...offlineOptions(terminal), restores };
  return {
    name: directory,
    holds: (path) => isWithin(directory, path),
    read: async () => (await loadOffline()).readCopy(files(), settings),
    write: async (read) => (await loadOffline()).writeCopy(files(), read, settings),
    readKeys: () => readKeyRing(files()),
    changeKeys: (change) => changeKeyFile(files(), change),
    newKeyUse: '; send SIGHUP to a running server',
  };
}

/** Loads what works on a store without a server. */
export const loadOffline = () => import('../options/offline/offline.ts');

/** What lets callers in. */
export const credentials = { collections: ['sessions', 'api-keys'], keyFile };

/** What work on a store without a server needs. */
export function offlineOptions({ interactive, err }: Terminal): OfflineOptions {
  return {
    clock: systemClock,
    random: systemRandom,
    machine: systemMachine,
    credentials,
    // Names the steps that may take long, if a person waits.
    onProgress: (step) => (interactive ? err(`${step} …\n`) : undefined),
  };
}

/**
 * Changes the ring in the file. The temporary file excludes other changes: of two that begin with the
 * same ring, one would be lost. A first ring is left to the server, which makes it without this
 * exclusion.
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
