import { CairnError } from '../base/errors.ts';

/**
 * The role of a user: `admin` manages the installation, `member` uses it, and a declaration may name
 * others, which give access if it names them.
 */
export type Role = string;

/** The roles that every installation has. */
export const roles: readonly Role[] = ['admin', 'member'];

/** Returns true if a value can be a role: a word that means nothing else as an `Access`. */
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

/** A user identified by the `sid` cookie. The session was looked up. */
export interface SessionPrincipal {
  readonly kind: 'session';
  readonly userId: number;
  readonly role: Role;
  readonly sessionId: number;
}

/** A user identified by an API key. All of it was looked up. */
export interface KeyPrincipal {
  readonly kind: 'key';
  readonly userId: number;
  readonly role: Role;
  /** True if the key is good for GET and HEAD only. */
  readonly isReadOnly: boolean;
}

/** A caller on this machine, who may do everything. */
interface LocalPrincipal {
  readonly kind: 'local';
  /** The owner of the records that are created. No user has the id 0. */
  readonly userId: number;
  readonly role: 'admin';
}

/** The caller of commands, and of all requests with `auth=none`. */
export const localAdministrator: LocalPrincipal = { kind: 'local', userId: 0, role: 'admin' };

/** A caller who is signed in, or may do as much. */
type UserPrincipal = TokenPrincipal | SessionPrincipal | KeyPrincipal | LocalPrincipal;

/** A caller without credentials, or on a route that ignores credentials. */
export const anonymous = { kind: 'anonymous', userId: undefined, role: undefined } as const;

/**
 * The caller as far as credentials tell. A caller sends a request: an address,
 * and the user if there is one.
 */
export type Principal = UserPrincipal | typeof anonymous;

/**
 * A word of access.
 *
 * - `public`: everyone. Credentials are ignored, so an expired token does no harm.
 * - `optional`: everyone, but credentials must be valid if they are sent
 * - `user`: authenticated users
 * - `admin`: administrators
 * - `member`, or a declared role: users with this role, and administrators
 * - `self`: administrators and the user whose id is in the path; others get 404
 * - `owner`: administrators and the user who created the record
 * - the name of a field that refers to users: administrators and the users that it names
 * - `session`: users with a session cookie, and who may do everything without
 *
 * Whether `owner` or a field holds is decided when the record is there; until then, everyone who
 * is signed in may be meant.
 */
export type Access = AccessWord | (string & Record<never, never>);

/** The words that are the same on every installation. */
export type AccessWord =
  'public' | 'optional' | 'user' | 'admin' | 'member' | 'self' | 'owner' | 'session';

/** The access to a route: one word, or several of which one must hold. */
export type Cell = Access | readonly Access[];

/** Returns the words of a cell. */
export const listWords = (cell: Cell): readonly Access[] =>
  typeof cell === 'string' ? [cell] : cell;

/** Returns true if a word depends on a record: `owner`, and the name of a field that refers to users. */
export const isByRecord = (word: string): boolean => word === 'owner' || /Ids?$/.test(word);

/** Returns true if a word asks for no role, and for nothing of a record. */
export const isOpen = (word: string): boolean =>
  ['public', 'optional', 'user', 'session'].includes(word);

/** Why a caller has no access. */
const refusals = {
  authentication_required: 'Cannot authorize the request: no credentials were sent',
  session_required: 'Cannot authorize the request: a session cookie is required',
  insufficient_scope: 'Cannot authorize the request: another role is required',
  not_found: 'Cannot find the record: no record has this id',
} as const;

/** A rule's verdict on a caller: `undefined` for access, else why not, or that a record decides. */
type Verdict = keyof typeof refusals | 'by_record' | undefined;

function judgeWord(access: Access, principal: Principal, id?: number | string): Verdict {
  if (access === 'public' || access === 'optional' || principal.kind === 'local') return undefined;
  if (principal.kind === 'anonymous') return 'authentication_required';
  if (access === 'session' && principal.kind !== 'session') return 'session_required';
  if (principal.role === 'admin' || access === 'user' || access === 'session') return undefined;
  if (access === 'self' && id !== undefined)
    return principal.userId === id ? undefined : 'not_found';
  // No role is called so: one that a file was edited to have gives nothing.
  if (isByRecord(access) || access === 'self') return 'by_record';
  return access === principal.role ? undefined : 'insufficient_scope';
}

/** Returns what a rule says of a caller. `id` is the id in the path, for `self`, if it is known. */
export function judge(cell: Cell, principal: Principal, id?: number | string): Verdict {
  if (typeof cell === 'string') return judgeWord(cell, principal, id);
  const verdicts = cell.map((word) => judgeWord(word, principal, id));
  if (verdicts.includes(undefined)) return undefined;
  return verdicts.includes('by_record') ? 'by_record' : verdicts[0];
}

const refused = (code: keyof typeof refusals, more = ''): CairnError =>
  new CairnError(code, refusals[code] + more);

/**
 * Checks the access of `principal` to a route, before a record is looked up. `id` is the id in the
 * path, for `self`.
 * @throws CairnError `authentication_required`, `insufficient_scope`, `session_required`,
 *   `not_found`
 */
export function authorize(cell: Cell, principal: Principal, id: number | string): void {
  const code = judge(cell, principal, id);
  if (code === undefined || code === 'by_record') return;
  throw refused(code, code === 'insufficient_scope' ? `: ${listWords(cell).join(' or ')}` : '');
}

/** Returns the error for an absent record, and for a record hidden from the caller. */
export const notFound = (): CairnError => refused('not_found');

/** Returns a principal. @throws CairnError `authentication_required` if it is anonymous */
export function requireUser(principal: Principal): UserPrincipal {
  if (principal.kind === 'anonymous') throw refused('authentication_required');
  return principal;
}
