import { newKeyRing, verifiesUntil, type KeyRing } from '../auth/keys.ts';
import { systemClock, systemRandom, type Random } from '../base/system.ts';
import { OptionError } from '../config/options.ts';
import { storeAccess, type Invocation, type Command } from './command.ts';
import { findPlace } from './place.ts';

/**
 * Commands for the keys that sign tokens. They show ids, never secrets, and may run while a server
 * runs.
 */
export const commands: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'Lists the signing keys: id, creation time and retirement time',
    ...storeAccess(),
    async run(call) {
      const { out, err } = call.terminal;
      refuseSecret(call);
      const ring = await (await findPlace(call)).readKeys();
      if (ring === undefined) err('There are no keys yet\n');
      for (const { kid, createdAt, retiredAt } of ring?.keys ?? []) {
        const state = retiredAt === undefined ? 'signs' : `retired ${formatTime(retiredAt)}`;
        out(`${kid}\tmade ${formatTime(createdAt)}\t${state}\n`);
      }
    },
  },
  {
    name: 'keys rotate',
    summary:
      'Creates a new signing key; the previous one verifies for 24 more hours, so nobody is signed out',
    ...storeAccess(),
    async run(call) {
      refuseSecret(call);
      const place = await findPlace(call);
      const { keys } = await place.changeKeys(nextRing);
      call.terminal.out(`${keys[0].kid} signs from now on${place.newKeyUse}\n`);
    },
  },
];

/** @throws OptionError without a ring */
function nextRing(former?: KeyRing): KeyRing {
  if (former === undefined) {
    throw new OptionError('Cannot rotate the keys: there are none yet; the first start makes them');
  }
  return rotateKeyRing(former, systemRandom, systemClock.now());
}

function formatTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** @throws OptionError if the only key is a secret of the environment */
function refuseSecret({ terminal }: Invocation): void {
  const { CAIRN_SECRET: value, CAIRN_SECRET_FILE: file } = terminal.environment;
  if (!value && !file) return;
  throw new OptionError(
    'Cannot list or rotate keys: the only key is CAIRN_SECRET; change it there',
  );
}

/** Also removes expired keys. */
export function rotateKeyRing(ring: KeyRing, random: Random, now: number): KeyRing {
  const older = ring.keys.map((key) =>
    key.retiredAt === undefined ? { ...key, retiredAt: now } : key,
  );
  const kept = older.filter((key) => now < verifiesUntil(key));
  return { keys: [...newKeyRing(random, now).keys, ...kept] };
}
