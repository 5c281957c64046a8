import { newKeyRing, rotateKeyRing, serialiseKeyRing } from '../auth/keys.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config/config.ts';
import { keyFile, readKeyRing } from '../app/data.ts';
import { UsageError } from '../config/settings.ts';
import { errorCode, temporaryName, writeAll, writeSynced, type Files } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { LockedError } from '../store/store.ts';
import { clusterOf, clusterOptions, clusterSecrets, dataDirectory, type Call, type Command } from './command.ts';

/** Commands about the keys that sign tokens. They show ids, never secrets, and work beside a running server. */
export const keyCommands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, when each was made, and when it retired',
    options: [options.directory, ...clusterOptions],
    secrets: clusterSecrets,
    async run(call) {
      const cluster = await clusterOf(call);
      const ring = cluster === undefined ? await readKeyRing(await keyFiles(call)) : (await cluster.readRing())[1];
      if (ring === undefined) call.terminal.err('There are no keys yet\n');
      for (const { kid, createdAt, retiredAt } of ring?.keys ?? []) {
        const state = retiredAt === undefined ? 'signs' : `retired ${new Date(retiredAt).toISOString()}`;
        call.terminal.out(`${kid}\tmade ${new Date(createdAt).toISOString()}\t${state}\n`);
      }
    },
  },
  {
    name: 'keys rotate',
    summary: 'Makes a new signing key; the former one verifies for 24 hours more, so nobody is signed out',
    options: [options.directory, ...clusterOptions],
    secrets: clusterSecrets,
    async run(call) {
      const cluster = await clusterOf(call);
      if (cluster !== undefined) {
        call.terminal.out(`${await cluster.rotateRing()} signs from now on, on all nodes\n`);
        return;
      }
      const files = await keyFiles(call);
      await files.prepare();
      try {
        call.terminal.out(`${await rotate(files)} signs from now on; a running server takes it up on SIGHUP\n`);
      } finally {
        await files.close();
      }
    },
  },
];

/**
 * Rotates the ring in the file, and returns the id of the new key. The temporary file keeps other rotations away: of
 * two that begin with the same ring, one would be lost.
 * @throws LockedError
 */
async function rotate(files: Files): Promise<string> {
  const [now, temporary] = [systemClock.now(), temporaryName('rotation')];
  let kid = '';
  try {
    await writeSynced(files, temporary, 'exclusive', async (file) => {
      const ring = rotateKeyRing((await readKeyRing(files)) ?? newKeyRing(systemRandom, now), systemRandom, now);
      kid = ring.keys[0].kid;
      await writeAll(file, Buffer.from(serialiseKeyRing(ring)), 0);
    });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new LockedError(`Cannot rotate the keys: another rotation has ${temporary}; remove it if none is running`);
  }
  try {
    await files.rename(temporary, keyFile);
  } catch (error) {
    await files.remove(temporary).catch(() => undefined);
    throw error;
  }
  await files.syncDirectory();
  return kid;
}

/** The files of the data directory. @throws UsageError where the key is configured */
async function keyFiles(call: Call): Promise<NodeFiles> {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = call.terminal.environment;
  if (!value && !file) return new NodeFiles(dataDirectory(call));
  throw new UsageError('Cannot list or rotate keys: the only key is CAIRN_SECRET; change it there');
}
