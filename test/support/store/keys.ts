import { newKeyRing } from '../../../src/auth/keys.ts';
import { Passwords } from '../../../src/auth/passwords.ts';
import type { Clock } from '../../../src/base/system.ts';
import { IdempotencyKeys } from '../../../src/collections/idempotency.ts';
import type { Store } from '../../../src/store/store.ts';
import { seededRandom } from './fixtures.ts';

/** One for all stores: there are very many of them, and it is dear to make. */
const ring = newKeyRing(seededRandom(7), 1_750_000_000_000);

/** Idempotency keys on a store that has not started. */
export function keysOn(store: Store, clock: Clock): IdempotencyKeys {
  const passwords = new Passwords({ random: seededRandom(7), clock, scryptCost: 4 });
  return new IdempotencyKeys({ store, clock, passwords, ring: () => ring });
}
