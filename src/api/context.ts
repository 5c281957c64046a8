import type { Invitations } from '../accounts/invitations.ts';
import type { AccountParts } from '../accounts/parts.ts';
import type { AccountRecords } from '../accounts/records.ts';
import type { Sessions } from '../accounts/sessions.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import type { Users } from '../accounts/users.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Clock } from '../base/system.ts';
import type { Registry } from '../collections/declared.ts';
import type { Writes } from '../collections/writes.ts';
import type { ListPool } from '../lists/list-pool.ts';
import type { Store } from '../store/store.ts';

export interface Context {
  readonly clock: Clock;
  readonly store: Store;
  readonly writes: Writes;
  readonly registry: Registry;
  readonly hasUsers: boolean;
  readonly records: AccountRecords;
  readonly accounts: AccountParts;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly invitations: Invitations;
  readonly tokens: Tokens;
  readonly listPool: ListPool;
}
