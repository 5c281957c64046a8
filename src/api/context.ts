import type { AccountContext } from '../accounts/context.ts';
import type { Invitations } from '../accounts/invitations.ts';
import type { Sessions } from '../accounts/sessions.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import type { Users } from '../accounts/users.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Registry } from '../collections/declared.ts';
import type { ListPool } from '../lists/list-pool.ts';

/** What handlers work with: the context of the services of accounts, these services, and the rest. */
export interface Context extends AccountContext {
  readonly registry: Registry;
  readonly hasUsers: boolean;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly invitations: Invitations;
  readonly tokens: Tokens;
  readonly listPool: ListPool;
}
