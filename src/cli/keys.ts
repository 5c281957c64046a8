import { newKeyRing, rotateKeyRing, serialiseKeyRing } from '../auth/keys.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config.ts';
import { keyFile, readKeyRing } from '../data.ts';
import { UsageError } from '../settings.ts';
import { errorCode, temporaryName, writeAll, writeSynced, type Files } from '../store/files.ts';
import { NodeFiles } from '../store/node-files.ts';
import { LockedError } from '../store/store.ts';
import { dataDirectory, type Call, type Command } from './command.ts';

/** The keys that sign tokens; they are public by their ids alone. Both commands work beside a running server. */
export const keyCommands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, when it was made, and when it retired',
    options: [options.directory],
    async run(call) {
      const ring = await readKeyRing(await keyFiles(call));
      if (ring === undefined) call.terminal.err('There are no keys yet\n');
      for (const { kid, createdAt, retiredAt } of ring?.keys ?? []) {
        const state = retiredAt === undefined ? 'signs' : `retired ${new Date(retiredAt).toISOString()}`;
        call.terminal.out(`${kid}\tmade ${new Date(createdAt).toISOString()}\t${state}\n`);
      }
    },
  },
  {
    name: 'keys rotate',
    summary: 'Makes a new signing key; what the others signed stays good until it ends, and nobody is logged out',
    options: [options.directory],
    async run(call) {
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
 * Rotates the ring in the file, and returns the id of the key that signs then. Its temporary file keeps other rotations
 * away: of two that begin with the same ring, one would be lost.
 * @throws LockedError
 */
async function rotate(files: Files): Promise<string> {
  const [now, temporary] = [systemClock.now(), temporaryName('rotation')];
  let kid = '';
  try {
    await writeSynced(files, temporary, 'exclusive', async (file) => {
      const found = (await readKeyRing(files)) ?? newKeyRing(systemRandom, now);
      const ring = rotateKeyRing(found, systemRandom, now);
      kid = ring.keys[0].kid;
      await writeAll(file, Buffer.from(serialiseKeyRing(ring)), 0);
    });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new LockedError(`Cannot rotate the keys: another rotation has ${temporary}; remove it where none is running`);
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

/** Where the keys are. @throws UsageError where they are configured */
async function keyFiles(call: Call): Promise<NodeFiles> {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = call.terminal.environment;
  if (!value && !file) return new NodeFiles(await dataDirectory(call));
  throw new UsageError('Cannot list or rotate keys: the one key comes from CAIRN_SECRET, so change it there');
}
