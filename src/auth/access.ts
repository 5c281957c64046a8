import { CairnError } from '../base/errors.ts';

/** What a user may do. `admin` looks after the installation, `member` uses it. */
export type Role = 'admin' | 'member';

/** The two roles, for checks of untrusted input. */
export const roles: readonly Role[] = ['admin', 'member'];

/** A user known by a bearer token. Nothing was looked up, so the user may have changed since it was signed. */
export interface TokenBearer {
  readonly kind: 'bearer';
  readonly userId: number;
  readonly role: Role;
  /** When the token was signed, in seconds since the epoch. */
  readonly issuedAt: number;
}

/** A user known by the `sid` cookie. The session was looked up. */
export interface SessionHolder {
  readonly kind: 'session';
  readonly userId: number;
  readonly role: Role;
  readonly sessionId: number;
}

/** A caller that has authenticated. */
export type User = TokenBearer | SessionHolder;

/** A caller without credentials, or of a route that ignores them. */
export const anonymous = { kind: 'anonymous', userId: undefined, role: undefined } as const;

/** The authenticated caller of a request, or `anonymous`. */
export type Principal = User | typeof anonymous;

/** The caller where authentication is switched off, and of commands. No user and no token has its id. */
export const localAdministrator: TokenBearer = { kind: 'bearer', userId: 0, role: 'admin', issuedAt: 0 };

/**
 * Who may use a route.
 *
 * - `public`: everyone. Credentials are never looked at, so an expired token does no harm.
 * - `optional`: everyone, but credentials that are sent must be valid
 * - `user`: signed-in users
 * - `admin`: administrators
 * - `self`: the user whose id is in the path, and administrators. For others that user does not exist.
 * - `owner`: signed-in users; ownership is decided inside the transaction by `requireOwner`
 * - `session`: users who have signed in with a session cookie
 */
export type Access = 'public' | 'optional' | 'user' | 'admin' | 'self' | 'owner' | 'session';

/**
 * Returns if `principal` may use a route with this access. `id` is the one in the path, for `self`.
 * @throws CairnError `authentication_required`, `insufficient_scope`, `session_required`, `not_found`
 */
export function authorize(access: Access, principal: Principal, id: number): void {
  if (access === 'public' || access === 'optional') return;
  const user = requireUser(principal);
  if (access === 'session' && user.kind !== 'session') {
    throw new CairnError('session_required', 'Cannot authorize the request: a session cookie is required');
  }
  if (user.role === 'admin') return;
  if (access === 'admin') {
    throw new CairnError('insufficient_scope', 'Cannot authorize the request: the role "admin" is required');
  }
  if (access === 'self' && user.userId !== id) throw notFound();
}

/** Returns if `principal` may change a record of `ownerId`. @throws CairnError `not_owner` */
export function requireOwner(access: Access, principal: Principal, ownerId: number): void {
  if (access !== 'owner' || principal.role === 'admin' || principal.userId === ownerId) return;
  throw new CairnError('not_owner', 'Cannot change the record: it belongs to another user');
}

/** The answer for an absent record, and for one that the caller may not know of. Both look the same. */
export function notFound(): CairnError {
  return new CairnError('not_found', 'Cannot find the record: there is none with this id');
}

/** The user who calls. @throws CairnError `authentication_required` for an anonymous caller */
export function requireUser(principal: Principal): User {
  if (principal.kind !== 'anonymous') return principal;
  throw new CairnError('authentication_required', 'Cannot authorize the request: no credentials were sent');
}
