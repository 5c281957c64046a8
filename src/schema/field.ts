import { invariant } from '../base/errors.ts';
import type { Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/**
 * Fields as data that can be looked at: `check.ts` validates by them, `json-schema.ts` describes them. A shape names
 * the fields of a resource in the order in which they are shown.
 */
export interface Shape {
  readonly [name: string]: Field;
}

/** One field, whose values are of type `T`. Fields do not nest. */
export interface Field<T extends Scalar = Scalar, P extends Presence = Presence, A extends Access = Access> {
  readonly rule: Rule;
  readonly presence: P;
  readonly access: A;
  /** Shown in the OpenAPI document; it keeps the rule. */
  readonly example: T;
  /** What a `defaulted` field is when it is left out on creation. */
  readonly fallback?: T;
  readonly description?: string;
}

/**
 * `required`: always sent, always there. `defaulted`: may be left out and is always there. `optional`: may be left
 * out and may be absent.
 */
export type Presence = 'required' | 'defaulted' | 'optional';
/** `read-only`: the server sets it. `write-only`: it is never shown. */
export type Access = 'read-write' | 'read-only' | 'write-only';

/** What a value must be. Lengths are in code points, except a password's, whose upper bound is in UTF-8 bytes. */
export type Rule =
  | { readonly kind: 'text'; readonly min: number; readonly max: number }
  | { readonly kind: 'email' }
  | { readonly kind: 'password'; readonly min: number; readonly bytesMax: number }
  | { readonly kind: 'number' | 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'timestamp' };

/** What a caller may set of such a resource, complete: what was left out has been filled in where that is possible. */
export type Input<S extends Shape> = {
  readonly [K in keyof S as S[K]['presence'] extends 'optional' ? never : Writable<S, K>]: S[K]['example'];
} & {
  readonly [K in keyof S as S[K]['presence'] extends 'optional' ? Writable<S, K> : never]?: S[K]['example'];
};
type Writable<S extends Shape, K extends keyof S> = S[K]['access'] extends 'read-only' ? never : K;

/** A field as it is made first: always sent and always there, to be read and to be written. */
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
 * One line of text, of `min` (0) to `max` (200) code points, without control characters, bidirectional controls and
 * line separators. If `min` is not 0, at least one character can be seen.
 */
export function text(options: Options<string> & Bounds = {}): Plain<string> {
  const { min = 0, max = 200 } = options;
  return field({ kind: 'text', min, max }, 'text'.padEnd(min, '.').slice(0, max), options);
}

/** An e-mail address by the rule of HTML's `<input type=email>`, kept as it was typed; see `emailKey`. */
export function email(options: Options<string> = {}): Plain<string> {
  return field({ kind: 'email' }, 'ada@example.org', options);
}

/** Write-only; at least `min` (1) code points and at most `bytesMax` (1,024) bytes of UTF-8. */
export function password(
  options: Options<string> & { readonly min?: number; readonly bytesMax?: number } = {},
): Field<string, 'required', 'write-only'> {
  const { min = 1, bytesMax = limits.passwordBytesMax } = options;
  const example = 'correct horse battery staple'.padEnd(min, ' and so on');
  return writeOnly(field({ kind: 'password', min, bytesMax }, example, options));
}

/** A finite number from `min` to `max`, kept exactly as it was sent. */
export function number(options: Options<number> & Bounds = {}): Plain<number> {
  const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE } = options;
  return field({ kind: 'number', min, max }, Math.min(Math.max(min, 0), max), options);
}

/** A whole number from `min` to `max`, at most what a double counts without gaps. */
export function integer(options: Options<number> & Bounds = {}): Plain<number> {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = options;
  const example = Math.min(Math.max(Math.ceil(min), 0), Math.floor(max));
  return field({ kind: 'integer', min, max }, example, options);
}

export function boolean(options: Options<boolean> = {}): Plain<boolean> {
  return field({ kind: 'boolean' }, true, options);
}

/** One of `values`. */
export function choice<const T extends string>(values: readonly T[], options: Options<T> = {}): Plain<T> {
  const [first] = values;
  invariant(first !== undefined, 'a choice has at least one value');
  return field({ kind: 'choice', values }, first, options);
}

/** A moment in UTC with milliseconds, as in `2026-01-31T12:00:00.000Z` (RFC 3339). */
export function timestamp(options: Options<string> = {}): Plain<string> {
  return field({ kind: 'timestamp' }, '2026-01-31T12:00:00.000Z', options);
}

/** The identifier that the server gives to a record: a positive integer. */
export function id(): Field<number, 'required', 'read-only'> {
  return readOnly(integer({ min: 1, example: 1, description: 'Given by the server; never used again.' }));
}

export function optional<T extends Scalar, A extends Access>(field: Field<T, 'required', A>): Field<T, 'optional', A> {
  return { ...field, presence: 'optional' };
}

/**
 * On creation a field that is left out is `fallback`; a PUT that leaves it out keeps what is stored. A stored record
 * that is older than the field has it with `fallback`, too.
 */
export function defaulted<T extends Scalar, A extends Access>(
  field: Field<T, 'required', A>,
  fallback: NoInfer<T>,
): Field<T, 'defaulted', A> {
  return { ...field, presence: 'defaulted', fallback };
}

/** The server sets it. It may be sent back as it was read; another value is an issue. */
export function readOnly<T extends Scalar, P extends Presence>(
  field: Field<T, P, 'read-write'>,
): Field<T, P, 'read-only'> {
  return { ...field, access: 'read-only' };
}

/** It is never shown, and so it cannot be listed, sorted or filtered by. */
export function writeOnly<T extends Scalar, P extends Presence>(
  field: Field<T, P, 'read-write'>,
): Field<T, P, 'write-only'> {
  return { ...field, access: 'write-only' };
}

/** The form in which e-mail addresses are compared: nobody expects two mailboxes to differ in case alone. */
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
