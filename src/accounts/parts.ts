import type { Role } from '../auth/access.ts';
import type { KeyRing } from '../auth/keys.ts';
import type { Passwords } from '../auth/passwords.ts';
import type { Throttle } from '../auth/throttle.ts';
import type { Clock, Random } from '../base/system.ts';
import type { ReferenceRules, Target } from '../collections/registry.ts';
import type { Writes } from '../collections/writes.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from './events.ts';
import type { AccountRecords } from './records.ts';

/** The dependencies of users, sessions and sign-in. */
export interface AccountParts extends AccountRecords {
  readonly store: Store;
  readonly writes: Writes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  /** The current keys, for the successors of refresh tokens. */
  readonly ring: () => KeyRing;
  readonly random: Random;
  readonly audit: Audit;
  /** The rules of references. Absent: nothing refers to users. */
  readonly references?: ReferenceRules | undefined;
  /** The users as references have them. */
  readonly asTarget: Target;
  /** The roles besides `admin` and `member` that users may be given. */
  readonly roles: readonly Role[];
  /** The minimum length of a new password, in characters. */
  readonly passwordLengthMin: number;
}
