import type { Clock } from '../../../src/base/system.ts';
import { IdempotencyKeys } from '../../../src/collections/idempotency.ts';
import type { Store } from '../../../src/store/store.ts';

/** Idempotency keys on a store that has not started. */
export function keysOn(store: Store, clock: Clock): IdempotencyKeys {
  return new IdempotencyKeys({ store, clock });
}
