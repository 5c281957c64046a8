import { newKeyRing } from '../../../src/auth/keys.ts';
import { Passwords } from '../../../src/auth/passwords.ts';
import type { Clock } from '../../../src/base/system.ts';
import { IdempotencyKeys } from '../../../src/collections/idempotency.ts';
import type { Store } from '../../../src/store/store.ts';
import { seededRandom } from './fixtures.ts';

/** Idempotency keys on a store that has not started. */
export function keysOn(store: Store, clock: Clock): IdempotencyKeys {
  const random = seededRandom(7);
  const ring = newKeyRing(random, clock.now());
  const passwords = new Passwords({ random, clock, scryptCost: 4 });
  return new IdempotencyKeys({ store, clock, passwords, ring: () => ring });
}
