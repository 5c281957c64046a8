import { invariant } from '../base/errors.ts';
import type { Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/**
 * The fields of a resource by name, in the order in which they are shown. Fields are
 * data: `check.ts` validates by them, and `json-schema.ts` describes them.
 */
export interface Shape {
  readonly [name: string]: Field;
}

/** A field with values of type `T`. Fields do not nest. */
export interface Field<
  T extends Scalar = Scalar,
  P extends Presence = Presence,
  A extends Access = Access,
> {
  readonly rule: Rule;
  readonly presence: P;
  readonly access: A;
  /** An allowed value, for the OpenAPI document. */
  readonly example: T;
  /** The value of a `defaulted` field that is absent on creation. */
  readonly fallback?: T;
  readonly description?: string;
}

/**
 * `required`: must be sent. `defaulted`: can be left out, and is then stored with a
 * default. `optional`: can be left out, and is then absent.
 */
export type Presence = 'required' | 'defaulted' | 'optional';
/** `read-only`: set by the server. `write-only`: never shown. */
export type Access = 'read-write' | 'read-only' | 'write-only';

/** The rule for a value. Lengths are in code points, except for `bytesMax` (UTF-8). */
export type Rule =
  | { readonly kind: 'text'; readonly min: number; readonly max: number }
  | { readonly kind: 'email' }
  | { readonly kind: 'password'; readonly min: number; readonly bytesMax: number }
  | { readonly kind: 'number' | 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'timestamp' };

/** All fields of a resource that callers can set, with defaults filled in. */
export type Input<S extends Shape> = {
  readonly [
    K in keyof S as S[K]['presence'] extends 'optional' ? never : Writable<S, K>
  ]: S[K]['example'];
} & {
  readonly [
    K in keyof S as S[K]['presence'] extends 'optional' ? Writable<S, K> : never
  ]?: S[K]['example'];
};
type Writable<S extends Shape, K extends keyof S> = S[K]['access'] extends 'read-only' ? never : K;

/** A required field that can be read and written. */
type Plain<T extends Scalar> = Field<T, 'required', 'read-write'>;

interface Options<T extends Scalar> {
  readonly example?: T;
  readonly description?: string;
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

/**
 * Returns a line of text of `min` (0) to `max` (200) code points, without control
 * characters, bidirectional controls and line separators. If `min` is not 0, at least one
 * character must be visible.
 */
export function text(options: Options<string> & Bounds = {}): Plain<string> {
  const { min = 0, max = 200 } = options;
  return field({ kind: 'text', min, max }, 'text'.padEnd(min, '.').slice(0, max), options);
}

/**
 * Returns an e-mail address by the rule of HTML's `<input type=email>`, stored as sent.
 */
export function email(options: Options<string> = {}): Plain<string> {
  return field({ kind: 'email' }, 'ada@example.org', options);
}

/**
 * Returns a write-only password of `min` (1) code points to `bytesMax` (1,024) UTF-8
 * bytes.
 */
export function password(
  options: Options<string> & { readonly min?: number; readonly bytesMax?: number } = {},
): Field<string, 'required', 'write-only'> {
  const { min = 1, bytesMax = limits.passwordBytesMax } = options;
  const example = 'correct horse battery staple'.padEnd(min, ' and so on');
  return writeOnly(field({ kind: 'password', min, bytesMax }, example, options));
}

/** Returns a finite number from `min` to `max`, stored exactly as sent. */
export function number(options: Options<number> & Bounds = {}): Plain<number> {
  const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE } = options;
  return field({ kind: 'number', min, max }, Math.min(Math.max(min, 0), max), options);
}

/**
 * Returns a whole number from `min` to `max`, by default the safe integers of a double.
 */
export function integer(options: Options<number> & Bounds = {}): Plain<number> {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = options;
  const example = Math.min(Math.max(Math.ceil(min), 0), Math.floor(max));
  return field({ kind: 'integer', min, max }, example, options);
}

export function boolean(options: Options<boolean> = {}): Plain<boolean> {
  return field({ kind: 'boolean' }, true, options);
}

/** Returns a choice of one of `values`. */
export function choice<const T extends string>(
  values: readonly T[],
  options: Options<T> = {},
): Plain<T> {
  const [first] = values;
  invariant(first !== undefined, 'a choice has at least one value');
  return field({ kind: 'choice', values }, first, options);
}

/**
 * Returns a UTC time with milliseconds, such as `2026-01-31T12:00:00.000Z` (RFC 3339).
 */
export function timestamp(options: Options<string> = {}): Plain<string> {
  return field({ kind: 'timestamp' }, '2026-01-31T12:00:00.000Z', options);
}

/** Returns the identifier of a record, a positive integer that the server assigns. */
export function id(): Field<number, 'required', 'read-only'> {
  return readOnly(
    integer({ min: 1, example: 1, description: 'Assigned by the server; never reused.' }),
  );
}

export function optional<T extends Scalar, A extends Access>(
  field: Field<T, 'required', A>,
): Field<T, 'optional', A> {
  return { ...field, presence: 'optional' };
}

/**
 * Makes a field `defaulted`: on creation an absent field becomes `fallback`, and a PUT
 * without the field keeps the stored value. Stored records without the field get
 * `fallback` too.
 */
export function defaulted<T extends Scalar, A extends Access>(
  field: Field<T, 'required', A>,
  fallback: NoInfer<T>,
): Field<T, 'defaulted', A> {
  return { ...field, presence: 'defaulted', fallback };
}

/**
 * Makes a field read-only. It can be sent back as it was read; another value is an issue.
 */
export function readOnly<T extends Scalar, P extends Presence>(
  field: Field<T, P, 'read-write'>,
): Field<T, P, 'read-only'> {
  return { ...field, access: 'read-only' };
}

/** Makes a field write-only: never shown, and not available for sorting and filters. */
export function writeOnly<T extends Scalar, P extends Presence>(
  field: Field<T, P, 'read-write'>,
): Field<T, P, 'write-only'> {
  return { ...field, access: 'write-only' };
}

/** Returns the form in which e-mail addresses are compared: without regard to case. */
export function emailKey(address: string): string {
  return address.toLowerCase();
}

function field<T extends Scalar>(rule: Rule, example: T, options: Options<T>): Plain<T> {
  return {
    rule,
    presence: 'required',
    access: 'read-write',
    example: options.example ?? example,
    ...(options.description !== undefined && { description: options.description }),
  };
}
