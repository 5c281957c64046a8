import { CairnError } from '../base/errors.ts';

/** What a user may do. `admin` looks after the installation, `member` uses it. */
export type Role = 'admin' | 'member';

/** The two roles, for checks of untrusted input. */
export const roles: readonly Role[] = ['admin', 'member'];

/** A user known by a bearer token; nothing was looked up, so the user may have changed since it was signed. */
export interface TokenBearer {
  readonly kind: 'bearer';
  readonly userId: number;
  readonly role: Role;
}

/** A user known by the `sid` cookie; the session was looked up. */
export interface SessionHolder {
  readonly kind: 'session';
  readonly userId: number;
  readonly role: Role;
  readonly sessionId: number;
}

export type User = TokenBearer | SessionHolder;

/** Nobody in particular: no credentials were sent, or the route never looks at them. */
export const anonymous = { kind: 'anonymous', userId: undefined, role: undefined } as const;

/** The authenticated actor of a request, or anonymous. */
export type Principal = User | typeof anonymous;

/** Whoever calls where authentication is switched off. No user has this id, and no token may have it. */
export const everybody: TokenBearer = { kind: 'bearer', userId: 0, role: 'admin' };

/**
 * Who may use a route.
 *
 * - `public`: everybody; credentials are never looked at, so a stale token harms nothing
 * - `optional`: everybody, but credentials that are sent must be good
 * - `user`: whoever is signed in
 * - `admin`: administrators
 * - `self`: the user whose id the path names, and administrators; to all others that user does not exist
 * - `owner`: like `user` here; that the record is one's own is decided with the record, inside the transaction
 * - `session`: whoever is signed in by a session cookie
 */
export type Access = 'public' | 'optional' | 'user' | 'admin' | 'self' | 'owner' | 'session';

/**
 * Lets `principal` pass or refuses them. `id` is the one in the path, for `self`.
 * @throws CairnError `authentication_required`, `insufficient_scope`, `session_required`, `not_found`
 */
export function authorize(access: Access, principal: Principal, id: number): void {
  if (access === 'public' || access === 'optional') return;
  const user = requireUser(principal);
  if (access === 'session' && user.kind !== 'session') {
    throw new CairnError('session_required', 'Cannot show this by a bearer token: sign in at /login');
  }
  if (user.role === 'admin') return;
  if (access === 'admin') {
    throw new CairnError('insufficient_scope', 'Cannot do this: it takes the role "admin"');
  }
  if (access === 'self' && user.userId !== id) throw notFound();
}

/** The answer to what is absent, and to what the caller may not know of: they cannot be told apart. */
export function notFound(): CairnError {
  return new CairnError('not_found', 'Cannot find the resource: there is none at this path');
}

/** @throws CairnError `authentication_required` when nobody has authenticated */
export function requireUser(principal: Principal): User {
  if (principal.kind !== 'anonymous') return principal;
  throw new CairnError('authentication_required', 'Cannot do this for just anybody: sign in or send a bearer token');
}
