import { anonymous, everybody, type Principal } from '../auth/access.ts';
import type { Tokens } from '../auth/tokens.ts';
import { CairnError } from '../base/errors.ts';
import { isLoopback } from '../base/network.ts';
import { hostOf, isCrossSite, isSafe } from '../http/cross-site.ts';
import { readCookie, serializeCookie } from '../http/fields.ts';
import type { Request } from '../http/message.ts';
import type { StartedSession } from '../resources/sessions.ts';
import type { SignIn } from '../resources/sign-in.ts';
import type { Route } from './route.ts';

/** The name of the session cookie. */
export const sessionCookie = 'sid';

/** The value of the `Set-Cookie` field that hands a session to its browser. */
export function cookieOf({ secret, lifetimeSeconds }: StartedSession): string {
  return serializeCookie(sessionCookie, secret, lifetimeSeconds);
}

/** The value of the `Set-Cookie` field that takes it away again. */
export const noCookie = serializeCookie(sessionCookie, '', 0);

export interface Authenticators {
  readonly tokens: Tokens;
  readonly signIn: SignIn;
  /** Origins whose pages may call although they are another site's. */
  readonly allowedOrigins: ReadonlySet<string>;
  /** Whether callers have to authenticate at all; where not, everybody on this machine is an administrator. */
  readonly required: boolean;
}

/**
 * Who is calling. `Authorization`, where it is sent, decides alone: a bad token is refused even beside a good cookie.
 * @throws CairnError `invalid_token`, `invalid_session`, `cross_site`, `malformed_request`
 */
export function authenticate(route: Route, request: Request, by: Authenticators): Principal {
  const isGuarded = route.sameSite === true || (!by.required && !isSafe(request.method));
  if (isGuarded) refuseCrossSite(request, by.allowedOrigins);
  if (route.access === 'public') return anonymous;
  // A session is one that a person has begun, also where nobody has to authenticate.
  if (!by.required && route.access !== 'session') return everybody;
  const authorization = request.fields.get('authorization');
  if (authorization !== undefined) return by.tokens.verify(bearerToken(authorization));
  const secret = readCookie(request.fields, sessionCookie);
  if (secret === undefined) return anonymous;
  // A browser adds the cookie whoever asks; so whoever asks must be a page of our own.
  if (!isSafe(request.method)) refuseCrossSite(request, by.allowedOrigins);
  return by.signIn.resume(secret);
}

/** The token in `Authorization` (RFC 6750 §2.1), whose scheme may be written in any case (RFC 9110 §11.1). */
function bearerToken(authorization: string): string {
  if (authorization.slice(0, scheme.length).toLowerCase() === scheme) return authorization.slice(scheme.length);
  throw new CairnError('invalid_token', 'Cannot accept the access token: "Bearer" has to stand before it');
}

const scheme = 'bearer ';

/**
 * Without authentication only this machine is answered, by a name of its own, whatever it asks for. A page of another
 * site can give its own name this machine's address, and would then pass for a local one; and an embedder's own server
 * may be reached from other machines.
 * @throws CairnError `misdirected_request`
 */
export function refuseForeigners({ fields, address }: Request): void {
  if (isLoopback(hostOf(fields.get('host') ?? '')) && isLoopback(address)) return;
  throw new CairnError('misdirected_request', 'Cannot answer without authentication: the host is not a loopback one');
}

function refuseCrossSite(request: Request, allowedOrigins: ReadonlySet<string>): void {
  if (!isCrossSite(request.fields, allowedOrigins)) return;
  throw new CairnError('cross_site', 'Cannot do this: the request comes from a page of another site');
}
