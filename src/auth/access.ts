import { CairnError } from '../base/errors.ts';

/**
 * A user's role: `admin` manages the installation, `member` uses it. A declaration may name others.
 */
export type Role = string;

export const roles: readonly Role[] = ['admin', 'member'];

/** True if a value can be a role: a word with no other meaning as an `Access`. */
export function isRole(value: unknown): value is Role {
  if (typeof value !== 'string' || !/^[a-z][a-z0-9-]{0,39}$/.test(value)) return false;
  return !['public', 'optional', 'user', 'self', 'owner', 'session'].includes(value);
}

/** A user identified by a bearer token. The user may have changed since it was signed. */
export interface TokenPrincipal {
  readonly kind: 'bearer';
  readonly userId: number;
  readonly role: Role;
  /** When the token was signed, in seconds since the epoch. */
  readonly issuedAt: number;
}

/** A user identified by the `sid` cookie. The session has been looked up. */
export interface SessionPrincipal {
  readonly kind: 'session';
  readonly userId: number;
  readonly role: Role;
  readonly sessionId: number;
}

/** A user identified by an API key. The key has been looked up. */
export interface KeyPrincipal {
  readonly kind: 'key';
  readonly userId: number;
  readonly role: Role;
  /** True if the key allows only GET and HEAD. */
  readonly isReadOnly: boolean;
}

interface LocalPrincipal {
  readonly kind: 'local';
  /** The owner of records that it creates. No user has the id 0. */
  readonly userId: number;
  readonly role: 'admin';
}

/** The caller of commands, and of all requests with `auth=none`. */
export const localAdministrator: LocalPrincipal = { kind: 'local', userId: 0, role: 'admin' };

type UserPrincipal = TokenPrincipal | SessionPrincipal | KeyPrincipal | LocalPrincipal;

/** A caller without credentials, or on a route that ignores credentials. */
export const anonymous = { kind: 'anonymous', userId: undefined, role: undefined } as const;

/** The caller, as far as credentials tell. */
export type Principal = UserPrincipal | typeof anonymous;

/**
 * A word of access:
 * - `public`: everyone. Credentials are ignored, so an expired token does no harm.
 * - `optional`: everyone, but credentials that are sent must be valid
 * - `user`: authenticated users
 * - `admin`: administrators
 * - `member`, or a declared role: users with this role, and administrators
 * - `self`: administrators and the user whose id is in the path; others get 404
 * - `owner`: administrators and the user who created the record
 * - the name of a field that refers to users: administrators and the users that it names
 * - `session`: users with a session cookie, and the local administrator
 *
 * `owner` and fields are decided once the record has been read. Until then, any authenticated user
 * may pass.
 */
export type Access = AccessWord | (string & Record<never, never>);

export type AccessWord =
  'public' | 'optional' | 'user' | 'admin' | 'member' | 'self' | 'owner' | 'session';

/** The access rule of a route: one word, or several if one of them is enough. */
export type Cell = Access | readonly Access[];

export const listWords = (cell: Cell): readonly Access[] =>
  typeof cell === 'string' ? [cell] : cell;

/** True if a word depends on a record: `owner`, and a field that refers to users. */
export const isByRecord = (word: string): boolean => word === 'owner' || /Ids?$/.test(word);

/** True if a word asks for neither a role nor a record. */
export const isOpen = (word: string): boolean =>
  ['public', 'optional', 'user', 'session'].includes(word);

const refusals = {
  authentication_required: 'Cannot authorize the request: no credentials were sent',
  session_required: 'Cannot authorize the request: a session cookie is required',
  insufficient_scope: 'Cannot authorize the request: another role is required',
  not_found: 'Cannot find the record: no record has this id',
} as const;

/** A rule's verdict on a caller: `undefined` grants access, `by_record` leaves it to the record. */
type Verdict = keyof typeof refusals | 'by_record' | undefined;

function judgeWord(access: Access, principal: Principal, id?: number | string): Verdict {
  if (access === 'public' || access === 'optional' || principal.kind === 'local') return undefined;
  if (principal.kind === 'anonymous') return 'authentication_required';
  if (access === 'session' && principal.kind !== 'session') return 'session_required';
  if (principal.role === 'admin' || access === 'user' || access === 'session') return undefined;
  if (access === 'self' && id !== undefined)
    return principal.userId === id ? undefined : 'not_found';
  // These are never role names, so a hand-edited role grants nothing.
  if (isByRecord(access) || access === 'self') return 'by_record';
  return access === principal.role ? undefined : 'insufficient_scope';
}

/** Decides an access rule for a caller. `id` is the id in the path, for `self`, if it is known. */
export function judge(cell: Cell, principal: Principal, id?: number | string): Verdict {
  if (typeof cell === 'string') return judgeWord(cell, principal, id);
  const verdicts = cell.map((word) => judgeWord(word, principal, id));
  if (verdicts.includes(undefined)) return undefined;
  return verdicts.includes('by_record') ? 'by_record' : verdicts[0];
}

const refused = (code: keyof typeof refusals, more = ''): CairnError =>
  new CairnError(code, refusals[code] + more);

/**
 * Checks a caller's access to a route before a record is read. `id` is for `self`.
 * @throws CairnError `authentication_required`, `insufficient_scope`, `session_required`,
 *   `not_found`
 */
export function authorize(cell: Cell, principal: Principal, id: number | string): void {
  const code = judge(cell, principal, id);
  if (code === undefined || code === 'by_record') return;
  throw refused(code, code === 'insufficient_scope' ? `: ${listWords(cell).join(' or ')}` : '');
}

/** The error for a record that is absent, or hidden from the caller. */
export const notFound = (): CairnError => refused('not_found');

/** @throws CairnError `authentication_required` if it is anonymous */
export function requireUser(principal: Principal): UserPrincipal {
  if (principal.kind === 'anonymous') throw refused('authentication_required');
  return principal;
}
