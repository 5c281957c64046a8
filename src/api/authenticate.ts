import type { Tokens } from '../auth/tokens.ts';
import { anonymous, type Principal } from '../auth/principal.ts';
import { CairnError } from '../base/errors.ts';
import { readCookie } from '../http/cookies.ts';
import { isCrossSite, isSafe } from '../http/cross-site.ts';
import type { Request } from '../http/message.ts';
import type { SignIn } from '../resources/sign-in.ts';
import type { Route } from './route.ts';

/** The name of the session cookie. */
export const sessionCookie = 'sid';

export interface Authenticators {
  readonly tokens: Tokens;
  readonly signIn: SignIn;
  /** Origins whose pages may call although they are another site's. */
  readonly allowedOrigins: ReadonlySet<string>;
}

/**
 * Who is calling. `Authorization`, where it is sent, decides alone: a bad token is refused even beside a good cookie.
 * @throws CairnError `invalid_token`, `invalid_session`, `cross_site`, `malformed_request`
 */
export function authenticate(route: Route, request: Request, by: Authenticators): Principal {
  if (route.sameSite === true) refuseCrossSite(request, by.allowedOrigins);
  if (route.access === 'public') return anonymous;
  const authorization = request.fields.get('authorization');
  if (authorization !== undefined) return by.tokens.verify(bearerToken(authorization));
  const secret = readCookie(request.fields, sessionCookie);
  if (secret === undefined) return anonymous;
  // A browser adds the cookie whoever asks; so whoever asks must be a page of our own.
  if (!isSafe(request.method)) refuseCrossSite(request, by.allowedOrigins);
  return by.signIn.resume(secret);
}

/** The token in an `Authorization` field (RFC 6750 §2.1); the scheme's case does not matter (RFC 9110 §11.1). */
function bearerToken(authorization: string): string {
  const token = /^bearer ([^ ,]+)$/i.exec(authorization)?.[1];
  if (token === undefined) {
    throw new CairnError('invalid_token', 'Cannot accept the Authorization field: it holds no bearer token');
  }
  return token;
}

function refuseCrossSite(request: Request, allowedOrigins: ReadonlySet<string>): void {
  if (!isCrossSite(request.fields, allowedOrigins)) return;
  throw new CairnError('cross_site', 'Cannot do this: the request comes from a page of another site');
}
