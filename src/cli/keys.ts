import { rotateKeyRing, type KeyRing } from '../auth/keys.ts';
import { systemClock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import { systemRandom } from '../base/random.ts';
import { options } from '../config.ts';
import { loadKeyRing, saveKeyRing } from '../key-file.ts';
import { UsageError } from '../options.ts';
import { nodeFiles } from '../store/node-files.ts';
import type { Call, Command } from './command.ts';
import { exitCodes } from './command.ts';
import { dataDirectory } from './offline.ts';

/** The keys that sign tokens; they are public by their ids alone. Both commands work beside a running server. */
export const keyCommands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, when it was made, and when it retired',
    operands: [],
    options: [options.data],
    async run(call) {
      const { ring } = await openRing(call);
      for (const { kid, createdAt, retiredAt } of ring.keys) {
        const state = retiredAt === undefined ? 'signs' : `retired ${timeOf(retiredAt)}`;
        call.terminal.out(`${kid}\tmade ${timeOf(createdAt)}\t${state}\n`);
      }
      return exitCodes.done;
    },
  },
  {
    name: 'keys rotate',
    summary: 'Makes a new signing key; what the others signed stays good until it ends, and nobody is logged out',
    operands: [],
    options: [options.data],
    async run(call) {
      const { files, ring } = await openRing(call);
      const now = systemClock.now();
      const rotated = rotateKeyRing(ring, systemRandom, now, limits.accessTokenLifetimeSecondsMax);
      await saveKeyRing(files, rotated);
      call.terminal.out(`${rotated.keys[0].kid} signs from now on; a running server takes it up on SIGHUP\n`);
      return exitCodes.done;
    },
  },
];

async function openRing(call: Call): Promise<{ files: ReturnType<typeof nodeFiles>; ring: KeyRing }> {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = call.terminal.environment;
  if (value || file) {
    throw new UsageError('Cannot list or rotate keys: the one key comes from CAIRN_SECRET, so change it there');
  }
  const files = nodeFiles(await dataDirectory(call));
  const ring = await loadKeyRing({ files, secret: undefined, clock: systemClock, random: systemRandom });
  return { files, ring };
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
