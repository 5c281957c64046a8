/** What a user may do. `admin` looks after the installation, `member` uses it. */
export type Role = 'admin' | 'member';

/** The two roles, for checks of untrusted input. */
export const roles: readonly Role[] = ['admin', 'member'];

/** Nobody in particular: no credentials were sent, or the route never looks at them. */
export interface Anonymous {
  readonly kind: 'anonymous';
}

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

/** The authenticated actor of a request, or anonymous. */
export type Principal = Anonymous | TokenBearer | SessionHolder;

export type User = TokenBearer | SessionHolder;

export const anonymous: Anonymous = { kind: 'anonymous' };

/** Whoever calls where authentication is switched off. No user has this id, and no token may have it. */
export const everybody: TokenBearer = { kind: 'bearer', userId: 0, role: 'admin' };
