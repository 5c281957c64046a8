import { serializeCookie } from '../http/cookies.ts';
import type { StartedSession } from '../resources/sessions.ts';

/** The name of the session cookie. */
export const sessionCookie = 'sid';

/** The value of the `Set-Cookie` field that hands a session to its browser. */
export function cookieOf({ secret, lifetimeSeconds }: StartedSession): string {
  return serializeCookie(sessionCookie, secret, lifetimeSeconds);
}

/** The value of the `Set-Cookie` field that takes it away again. */
export const noCookie = serializeCookie(sessionCookie, '', 0);
