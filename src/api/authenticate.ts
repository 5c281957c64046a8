import {
  anonymous,
  authorize,
  localAdministrator,
  type KeyPrincipal,
  type Principal,
} from '../auth/access.ts';
import type { Tokens } from '../auth/tokens.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { RecordId } from '../base/record-id.ts';
import { isCrossSite, type Origins } from '../http/cross-site.ts';
import { readCookies, serializeCookie } from '../http/fields.ts';
import { isSafe, type Request } from '../http/message.ts';
import type { Sessions } from '../accounts/sessions.ts';
import type { Route } from './call.ts';

export interface Authenticators {
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly allowedOrigins: Origins;
  /**
   * False if callers need no credentials: every caller that `checkLocal` admits is an
   * administrator.
   */
  readonly required: boolean;
  /** Absent if callers need credentials. @throws CairnError `misdirected_request`, `cross_site` */
  readonly checkLocal?: ((request: LocalCall) => void) | undefined;
}

/** The members of a route that decide who its callers are, their access, and if API keys work. */
type ForCallers = Pick<Route, 'access' | 'pages'>;
type ForKeys = Pick<Route, 'method' | 'refusesKeys' | 'of'>;
type ForAccess = ForKeys & Pick<Route, 'access'>;

type LocalCall = Pick<Request, 'method' | 'fields' | 'address'>;

const noOrigins: ReadonlySet<string> = new Set();

export const sessionCookie = 'sid';

/**
 * Returns the secrets of all session cookies. Browsers send several if a path or a parent domain
 * has another cookie of this name.
 * @throws CairnError `malformed_request`
 */
export function readSessionCookies({ fields }: Request): string[] {
  const secrets = readCookies(fields, sessionCookie);
  if (secrets.length <= limits.sessionCookiesMax) return secrets;
  throw new CairnError(
    'malformed_request',
    `Cannot accept the session: over ${limits.sessionCookiesMax} cookies are called sid`,
  );
}

export function setSessionCookie({ basePath }: Request, secret: string): readonly string[] {
  const maxAgeSeconds = secret === '' ? 0 : limits.cookieLifetimeSecondsMax;
  return ['Set-Cookie', serializeCookie(sessionCookie, secret, maxAgeSeconds, basePath || '/')];
}

/**
 * Authenticates the caller. If `Authorization` is sent, only it counts: an invalid token is refused
 * even with a valid cookie.
 * @throws CairnError `invalid_token`, `invalid_session`, `cross_site`, `other_user`,
 *   `malformed_request`
 */
export function authenticate(route: ForCallers, request: Request, by: Authenticators): Principal {
  const isGuarded = route.pages !== undefined || (!by.required && !isSafe(request.method));
  if (isGuarded) checkSite(request, route.pages === 'own' ? noOrigins : by.allowedOrigins);
  if (route.access === 'public') return anonymous;
  // A session belongs to a signed-in user even if credentials are not required.
  if (!by.required && route.access !== 'session') return localAdministrator;
  const authorization = request.fields.get('authorization');
  if (authorization !== undefined) return by.tokens.verify(bearerToken(authorization));
  const secrets = readSessionCookies(request);
  if (secrets.length === 0) return anonymous;
  // Browsers add the cookie to every request, so only this site's own pages may write.
  if (!isSafe(request.method)) checkSite(request, noOrigins);
  const session = by.sessions.resume(secrets, request.fields.get('session-user'));
  checkSessionUser(request, session.userId);
  return session;
}

/**
 * Checks a caller's access to a route before a record is read.
 * @throws CairnError `authentication_required`, `session_required`, `insufficient_scope`,
 *   `not_found`
 */
export function authorizeRoute(route: ForAccess, principal: Principal, id: RecordId): void {
  authorize(route.access, principal, id);
  if (principal.kind === 'key') authorizeKey(route, principal);
  const { operation, collection } = route.of ?? {};
  const isChange = operation === 'replace' || operation === 'patch';
  // The response to a change shows the record.
  if (isChange && collection !== undefined) authorize(collection.access.read, principal, id);
}

/**
 * Checks that an API key may use a route: not one for credentials, nor one that changes users.
 * @throws CairnError `insufficient_scope`
 */
function authorizeKey(route: ForKeys, { isReadOnly }: KeyPrincipal): void {
  const isTaken = takesKeys(route);
  if (isTaken && (route.method === 'GET' || !isReadOnly)) return;
  const reason = isTaken ? 'the API key only reads' : 'API keys reach no credentials';
  throw new CairnError('insufficient_scope', `Cannot authorize the request: ${reason}`);
}

export function takesKeys({ method, refusesKeys, of }: ForKeys): boolean {
  return refusesKeys !== true && (method === 'GET' || of?.collection.isUsers !== true);
}

export const sessionUserField = 'Session-User';

/** True if the caller names this user as the session's, or none. */
export function isSessionUser({ fields }: Pick<Request, 'fields'>, userId: number): boolean {
  const named = fields.get('session-user');
  return named === undefined || named === String(userId);
}

/**
 * Compares a session's owner with the user that the caller names: all tabs of a browser share a
 * cookie, so another one may have signed in someone else.
 * @throws CairnError `other_user`
 */
export function checkSessionUser(request: Request, userId: number): void {
  if (isSessionUser(request, userId)) return;
  throw new CairnError(
    'other_user',
    `Cannot accept the session: it does not belong to the user that ${sessionUserField} names`,
  );
}

/**
 * Returns the token in `Authorization` (RFC 6750 §2.1), after one or more spaces (RFC 9110 §11.4).
 * The scheme is case-insensitive (RFC 9110 §11.1).
 * @throws CairnError `invalid_token`
 */
export function bearerToken(authorization: string): string {
  const { length } = scheme;
  if (authorization.slice(0, length).toLowerCase() === scheme)
    return authorization.slice(length).replace(/^ +/, '');
  const message = 'Cannot accept the access token: the authorization scheme must be "Bearer"';
  throw new CairnError('invalid_token', message);
}

const scheme = 'bearer ';

/** @throws CairnError `cross_site` */
function checkSite(request: Request, allowedOrigins: Origins): void {
  if (!isCrossSite(request.fields, allowedOrigins)) return;
  throw new CairnError(
    'cross_site',
    'Cannot accept the request: a page of another site sent it; such a page uses a token of ' +
      '/tokens, from an origin that --cors-origin allows',
  );
}
