import { invariant } from '../base/errors.ts';

/** Values of fields by lower-case name, as `IncomingMessage.headers` has them. */
type FieldValues = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The fields of a request (RFC 9110 §5). */
export class Fields {
  /** Names and values in turn, as received. */
  readonly raw: readonly string[];
  readonly #values: FieldValues;

  /** `values` are the same fields by name, where they are known already. */
  constructor(raw: readonly string[], values: FieldValues = combine(raw)) {
    this.raw = raw;
    this.#values = values;
  }

  /** The value of the field with this lower-case name; the values of a repeated one are joined (RFC 9110 §5.3). */
  get(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** The name of a field that occurs twice and must not (RFC 9110 §5.3); `undefined` if there is none. */
  get repeated(): string | undefined {
    if (2 * Object.keys(this.#values).length === this.raw.length) return undefined;
    return singularTwice.exec(this.raw.filter((_, index) => index % 2 === 0).join('\n'))?.[1];
  }
}

/** Two lines with one name, of a field with one value that decides who is asking, for what, or where a message ends. */
const singularTwice =
  /^(authorization|content-length|content-type|cookie|host|origin|sec-fetch-site|transfer-encoding)$[^]*^\1$/im;

function combine(raw: readonly string[]): FieldValues {
  const values = new Map<string, string>();
  raw.forEach((value, index) => {
    const name = raw[index - 1]?.toLowerCase() ?? '';
    const before = values.get(name);
    if (index % 2 === 1) values.set(name, before === undefined ? value : `${before}, ${value}`);
  });
  return Object.fromEntries(values);
}

/** The values of the cookies with this name (RFC 6265 §5.4), exactly as sent. A subdomain may have planted one more. */
export function readCookies(fields: Fields, name: string): string[] {
  const cookies = fields.get('cookie');
  if (cookies === undefined) return [];
  const values: string[] = [];
  for (const pair of cookies.split(';')) {
    const equals = pair.indexOf('=');
    if (equals !== -1 && pair.slice(0, equals).trim() === name) values.push(pair.slice(equals + 1).trim());
  }
  return values;
}

/** RFC 6265 §4.1.1, `cookie-octet`. */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * The value of a `Set-Cookie` field for a cookie that scripts cannot read, that only secure connections carry, and that
 * no other site's request carries. A `maxAgeSeconds` of 0 removes the cookie.
 */
export function serializeCookie(name: string, value: string, maxAgeSeconds: number): string {
  invariant(cookieValue.test(value), 'a cookie value holds cookie octets only');
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=Strict`;
}
