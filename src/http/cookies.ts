import { CairnError } from '../base/errors.ts';
import { invariant } from '../base/invariant.ts';
import type { Fields } from './fields.ts';

/**
 * The value of the cookie with this name (RFC 6265 §5.4), exactly as sent. Two of one name are refused, since which
 * one counts would be anybody's guess, and a subdomain may have planted one of them.
 * @throws CairnError `malformed_request`
 */
export function readCookie(fields: Fields, name: string): string | undefined {
  const cookies = fields.get('cookie');
  if (cookies === undefined) return undefined;
  let value: string | undefined;
  for (const pair of cookies.split(';')) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    if (value !== undefined) {
      throw new CairnError('malformed_request', `Cannot read the cookies: "${name}" occurs twice`);
    }
    value = pair.slice(equals + 1).trim();
  }
  return value;
}

/** RFC 6265 §4.1.1, `cookie-octet`. */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * The value of a `Set-Cookie` field for a cookie that scripts cannot read, that travels over secure connections only,
 * and that no other site's request carries. `maxAgeSeconds` 0 removes it.
 */
export function serializeCookie(name: string, value: string, maxAgeSeconds: number): string {
  invariant(cookieValue.test(value), 'a cookie value holds cookie octets only');
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=Strict`;
}
