import { newKeyRing, serialiseKeyRing, verifiesUntil, type KeyRing } from '../auth/keys.ts';
import { systemClock, systemRandom, type Random } from '../base/system.ts';
import { keyFile, readKeyRing } from '../app/key-file.ts';
import { OptionError } from '../config/options.ts';
import {
  errorCode,
  temporaryName,
  writeAll,
  writeSynced,
  type Files,
} from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { LockedError } from '../store/disk/lock.ts';
import { clusterOf, dataDirectory, storeAccess, type Call, type Command } from './command.ts';

/**
 * Commands about the keys that sign tokens. They show ids and never secrets, and may run
 * beside a running server.
 */
export const commands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, when each was made, and when it retired',
    ...storeAccess(),
    async run(call) {
      const { out, err } = call.terminal;
      refuseSecret(call);
      const cluster = await clusterOf(call);
      const ring =
        cluster === undefined
          ? await readKeyRing(new NodeFiles(dataDirectory(call)))
          : await cluster.changeKeys((found) => found);
      if (ring === undefined) err('There are no keys yet\n');
      for (const { kid, createdAt, retiredAt } of ring?.keys ?? []) {
        const state = retiredAt === undefined ? 'signs' : `retired ${timeOf(retiredAt)}`;
        out(`${kid}\tmade ${timeOf(createdAt)}\t${state}\n`);
      }
    },
  },
  {
    name: 'keys rotate',
    summary:
      'Makes a new signing key; the former one verifies for 24 hours more, so nobody is signed out',
    ...storeAccess(),
    async run(call) {
      refuseSecret(call);
      const cluster = await clusterOf(call);
      if (cluster === undefined) {
        const kid = await rotate(new NodeFiles(dataDirectory(call)));
        call.terminal.out(`${kid} signs from now on; send SIGHUP to a running server\n`);
      } else {
        const {
          keys: [{ kid }],
        } = await cluster.changeKeys(nextRing);
        call.terminal.out(`${kid} signs from now on, on all nodes\n`);
      }
    },
  },
];

/**
 * Rotates the ring in the file, and returns the id of the new key. The temporary file
 * excludes other rotations: of two that begin with the same ring, one would be lost. A
 * first ring is left to the server, which makes it without this exclusion.
 * @throws LockedError, or OptionError if there is no ring
 */
async function rotate(files: Files): Promise<string> {
  const temporary = temporaryName('rotation');
  let kid = '';
  try {
    await files.prepare();
    await writeSynced(files, temporary, 'exclusive', async (file) => {
      const ring = nextRing(await readKeyRing(files));
      kid = ring.keys[0].kid;
      await writeAll(file, Buffer.from(serialiseKeyRing(ring)), 0);
    });
    try {
      await files.rename(temporary, keyFile);
    } catch (error) {
      await files.remove(temporary);
      throw error;
    }
    await files.syncDirectory();
    return kid;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new LockedError(
      `Cannot rotate the keys: another rotation has ${temporary}; remove it if none is running`,
    );
  } finally {
    await files.close();
  }
}

/** Returns the ring with a new key that signs. @throws OptionError if there is none yet */
function nextRing(former?: KeyRing): KeyRing {
  if (former === undefined) {
    throw new OptionError('Cannot rotate the keys: there are none yet; the first start makes them');
  }
  return rotateKeyRing(former, systemRandom, systemClock.now());
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** @throws OptionError if the only key is a secret of the environment */
function refuseSecret({ terminal }: Call): void {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = terminal.environment;
  if (!value && !file) return;
  throw new OptionError(
    'Cannot list or rotate keys: the only key is CAIRN_SECRET; change it there',
  );
}

/**
 * Returns a ring with a new signing key. The previous one retires; expired keys are
 * removed.
 */
export function rotateKeyRing(ring: KeyRing, random: Random, now: number): KeyRing {
  const older = ring.keys.map((key) =>
    key.retiredAt === undefined ? { ...key, retiredAt: now } : key,
  );
  const kept = older.filter((key) => now < verifiesUntil(key));
  return { keys: [...newKeyRing(random, now).keys, ...kept] };
}
