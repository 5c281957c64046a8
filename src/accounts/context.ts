import type { Role } from '../auth/access.ts';
import type { KeyRing } from '../auth/keys.ts';
import type { Passwords } from '../auth/passwords.ts';
import type { Throttle } from '../auth/throttle.ts';
import type { Clock, Random } from '../base/system.ts';
import type { ReferenceRules, ReferenceTarget } from '../collections/declared.ts';
import type { Writes } from '../collections/writes.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from './events.ts';
import type { AccountRecords } from './records.ts';

export interface AccountContext {
  readonly records: AccountRecords;
  readonly store: Store;
  readonly writes: Writes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  /** The current keys, for the successors of refresh tokens. */
  readonly ring: () => KeyRing;
  readonly random: Random;
  readonly audit: Audit;
  /** The rules of references. If absent, nothing refers to users. */
  readonly references?: ReferenceRules | undefined;
  /** Users, as the target of references. */
  readonly usersAsTarget: ReferenceTarget;
  readonly roles: readonly Role[];
  /** The minimum length of a new password, in characters. */
  readonly passwordLengthMin: number;
}
