import { CairnError, invariant } from '../base/errors.ts';

/**
 * The fields of one request (RFC 9110 §5), as received. Repetition is never hidden: a field that must not be repeated
 * but is, is refused before the request is handled (`head.ts`), and any other repeated field is combined.
 */
export class Fields {
  /** Names and values in turn, as received. */
  readonly raw: readonly string[];

  constructor(raw: readonly string[]) {
    this.raw = raw;
  }

  /** The value of the field with this lower-case name, several joined by ", " (RFC 9110 §5.3); else `undefined`. */
  get(name: string): string | undefined {
    const raw = this.raw;
    let value: string | undefined;
    for (let index = 0; index < raw.length; index += 2) {
      // A request has few fields, so no map of them pays for itself.
      const candidate = raw[index];
      if (candidate === undefined || !isNamed(candidate, name)) continue;
      const next = raw[index + 1];
      value = value === undefined ? next : `${value}, ${next}`;
    }
    return value;
  }
}

/** Whether a field has this lower-case name: compared in place, since this runs for every field of every request. */
function isNamed(candidate: string, name: string): boolean {
  if (candidate.length !== name.length) return false;
  for (let index = 0; index < name.length; index += 1) {
    const code = candidate.charCodeAt(index);
    const wanted = name.charCodeAt(index);
    // Bit 5 tells an ASCII letter's case; the other characters of a token differ from each other without it.
    if (code !== wanted && (code | 0x20) !== wanted) return false;
  }
  return true;
}

/** Fields that carry one value and decide who is asking, for what, or where a message ends: never repeated. */
const singular = [
  'authorization',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'origin',
  'sec-fetch-site',
  'transfer-encoding',
];
const singularByLength: { readonly name: string; readonly bit: number }[][] = [];
for (const [index, name] of singular.entries()) (singularByLength[name.length] ??= []).push({ name, bit: 1 << index });

/** The lower-case name of the first field that occurs twice and must not (RFC 9110 §5.3); else `undefined`. */
export function repeatedField(raw: readonly string[]): string | undefined {
  let seen = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const candidate = raw[index] ?? '';
    const sameLength = singularByLength[candidate.length];
    if (sameLength === undefined) continue;
    for (const { name, bit } of sameLength) {
      if (!isNamed(candidate, name)) continue;
      if ((seen & bit) !== 0) return name;
      seen |= bit;
    }
  }
  return undefined;
}

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
