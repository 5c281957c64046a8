import { rotateKeyRing, type KeyRing } from '../auth/keys.ts';
import { limits } from '../base/limits.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config.ts';
import { loadKeyRing, saveKeyRing } from '../data.ts';
import { UsageError } from '../options.ts';
import type { Files } from '../store/files.ts';
import { NodeFiles } from '../store/node-files.ts';
import { dataDirectory, type Call, type Command } from './command.ts';

/** The keys that sign tokens; they are public by their ids alone. Both commands work beside a running server. */
export const keyCommands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, when it was made, and when it retired',
    options: [options.directory],
    async run(call) {
      for (const { kid, createdAt, retiredAt } of await withRing(call, ({ keys }) => keys)) {
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
      const kid = await withRing(call, async (ring, files) => {
        const rotated = rotateKeyRing(ring, systemRandom, systemClock.now(), limits.accessTokenLifetimeSecondsMax);
        await saveKeyRing(files, rotated);
        return rotated.keys[0].kid;
      });
      call.terminal.out(`${kid} signs from now on; a running server takes it up on SIGHUP\n`);
    },
  },
];

async function withRing<T>(call: Call, work: (ring: KeyRing, files: Files) => T | Promise<T>): Promise<T> {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = call.terminal.environment;
  if (value || file) {
    throw new UsageError('Cannot list or rotate keys: the one key comes from CAIRN_SECRET, so change it there');
  }
  const files = new NodeFiles(await dataDirectory(call));
  await files.prepare();
  try {
    return await work(await loadKeyRing({ files, secret: undefined, clock: systemClock, random: systemRandom }), files);
  } finally {
    await files.close();
  }
}
