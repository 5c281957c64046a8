import { invariant } from '../base/errors.ts';

type FieldValues = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The header fields of a request or a response (RFC 9110 §5). */
export class Fields {
  /** Names and values in turn, as received. */
  readonly raw: readonly string[];
  readonly #values: FieldValues;

  /** `values` are the same fields by name, if already parsed. */
  constructor(raw: readonly string[], values: FieldValues = combine(raw)) {
    this.raw = raw;
    this.#values = values;
  }

  /** Joins repeated values (RFC 9110 §5.3). `name` is in lower case. */
  get(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** Repeated although it must not be (RFC 9110 §5.3). */
  get repeated(): string | undefined {
    if (2 * Object.keys(this.#values).length === this.raw.length) return undefined;
    const names = this.raw.filter((_, index) => index % 2 === 0);
    const lower = names.map((name) => name.toLowerCase());
    return names.find((_, at) => {
      const name = lower[at] ?? '';
      return singular.has(name) && lower.includes(name, at + 1);
    });
  }
}

/**
 * Fields with a single value that decides who sends the request, to which host, if it is a retry,
 * or where its content ends.
 */
// prettier-ignore
const singular = new Set([
  'authorization', 'content-length', 'content-type', 'host', 'idempotency-key', 'origin', 'sec-fetch-site',
  'session-user', 'transfer-encoding',
]);

function combine(raw: readonly string[]): FieldValues {
  const values = new Map<string, string>();
  raw.forEach((value, index) => {
    const name = raw[index - 1]?.toLowerCase() ?? '';
    const before = values.get(name);
    // A proxy may split a cookie field (RFC 9113 §8.2.3).
    const separator = name === 'cookie' ? ';' : ',';
    const joined = before === undefined ? value : `${before}${separator} ${value}`;
    if (index % 2 === 1) values.set(name, joined);
  });
  return Object.fromEntries(values);
}

/**
 * Returns the values of all cookies with this name (RFC 6265 §5.4), exactly as sent. A subdomain
 * can set a second one of the same name.
 */
export function readCookies(fields: Fields, name: string): string[] {
  const values: string[] = [];
  for (const pair of fields.get('cookie')?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    const isNamed = equals !== -1 && pair.slice(0, equals).trim() === name;
    if (isNamed) values.push(pair.slice(equals + 1).trim());
  }
  return values;
}

/** RFC 6265 §4.1.1, `cookie-octet`. */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * Returns the value of a `Set-Cookie` field. The cookie is hidden from scripts, and sent only over
 * secure connections and from this site's pages. A `maxAgeSeconds` of 0 removes it.
 */
export function serializeCookie(
  name: string,
  value: string,
  maxAgeSeconds: number,
  path = '/',
): string {
  invariant(cookieValue.test(value), 'a cookie value has cookie octets only');
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=Strict`;
}
