import { newKeyRing, rotateKeyRing } from '../auth/keys.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config.ts';
import { readKeyRing, saveKeyRing } from '../data.ts';
import { UsageError } from '../settings.ts';
import { NodeFiles } from '../store/node-files.ts';
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
      const [files, clock, random] = [await keyFiles(call), systemClock, systemRandom];
      await files.prepare();
      try {
        const ring = (await readKeyRing(files)) ?? newKeyRing(random, clock.now());
        const rotated = rotateKeyRing(ring, random, clock.now());
        await saveKeyRing(files, rotated);
        call.terminal.out(`${rotated.keys[0].kid} signs from now on; a running server takes it up on SIGHUP\n`);
      } finally {
        await files.close();
      }
    },
  },
];

/** Where the keys are. @throws UsageError where they are configured */
async function keyFiles(call: Call): Promise<NodeFiles> {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = call.terminal.environment;
  if (!value && !file) return new NodeFiles(await dataDirectory(call));
  throw new UsageError('Cannot list or rotate keys: the one key comes from CAIRN_SECRET, so change it there');
}
