import type { Scalar } from '../base/json.ts';

/**
 * The fields of a resource by name, in the order in which they are shown. Fields are data,
 * the same in a program as in a file of declarations: `check.ts` validates by them, and
 * `json-schema.ts` describes them.
 */
export interface Shape {
  readonly [name: string]: Field;
}

/**
 * A field: its kind with the bounds of its values, and the members that every kind has.
 * Fields do not nest. Lengths are in code points, except for `bytesMax` (UTF-8).
 */
export type Field =
  TextField | PlainField | PasswordField | NumberField | BooleanField | ChoiceField;

/** The members of every field, with values of type `T`. */
interface FieldOf<T extends Scalar> {
  /** Whether the field may be left out, and is then absent. */
  readonly optional?: boolean;
  /**
   * On creation, an absent field becomes this value, and a PUT without the field keeps the
   * stored one. Stored records without the field get it too.
   */
  readonly default?: T;
  /** Set by the server. It can be sent back as it was read; another value is an issue. */
  readonly readOnly?: boolean;
  /** Never shown, and not available for sorting and filters. */
  readonly writeOnly?: boolean;
  readonly description?: string;
  /** An allowed value, for the OpenAPI document. */
  readonly example?: T;
}

/**
 * A line of text of `min` (0) to `max` (200) code points, without control characters,
 * bidirectional controls and line separators. If `min` is not 0, at least one character
 * must be visible.
 */
export interface TextField extends FieldOf<string> {
  readonly kind: 'text';
  readonly min?: number;
  readonly max?: number;
}

/**
 * `email`: an address by the rule of HTML's `<input type=email>`, stored as sent.
 * `timestamp`: a UTC time with milliseconds, such as `2026-01-31T12:00:00.000Z` (RFC 3339).
 */
export interface PlainField extends FieldOf<string> {
  readonly kind: 'email' | 'timestamp';
}

/** A password of `min` (1) code points to `bytesMax` (1,024) UTF-8 bytes. */
export interface PasswordField extends FieldOf<string> {
  readonly kind: 'password';
  readonly min?: number;
  readonly bytesMax?: number;
}

/**
 * A finite number from `min` to `max`, stored exactly as sent. `integer`: a whole one, by
 * default any of the safe integers of a double.
 */
export interface NumberField extends FieldOf<number> {
  readonly kind: 'number' | 'integer';
  readonly min?: number;
  readonly max?: number;
}

export interface BooleanField extends FieldOf<boolean> {
  readonly kind: 'boolean';
}

/** One of `values`. */
export interface ChoiceField extends FieldOf<string> {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** The values of a field. */
export type ValueOf<F extends Field> = F extends ChoiceField
  ? F['values'][number]
  : F extends NumberField
    ? number
    : F extends BooleanField
      ? boolean
      : string;

/** All fields of a resource that callers can set, with defaults filled in. */
export type Input<S extends Shape> = {
  readonly [K in keyof S as S[K] extends Optional ? never : Writable<S, K>]: ValueOf<S[K]>;
} & {
  readonly [K in keyof S as S[K] extends Optional ? Writable<S, K> : never]?: ValueOf<S[K]>;
};
interface Optional {
  readonly optional: true;
}
type Writable<S extends Shape, K> = K extends keyof S
  ? S[K] extends { readonly readOnly: true }
    ? never
    : K
  : never;

/** The field of the identifier of a record, a positive integer that the server assigns. */
export const idField = {
  kind: 'integer',
  min: 1,
  readOnly: true,
  example: 1,
  description: 'Assigned by the server; never reused.',
} as const satisfies Field;

/** The bounds of a field whose declaration may leave them out. */
export function boundsOf(field: TextField | NumberField): { min: number; max: number } {
  const { min = lowest[field.kind], max = highest[field.kind] } = field;
  return { min, max };
}

const lowest = { text: 0, number: -Number.MAX_VALUE, integer: Number.MIN_SAFE_INTEGER };
const highest = { text: 200, number: Number.MAX_VALUE, integer: Number.MAX_SAFE_INTEGER };

/** Returns the form in which e-mail addresses are compared: without regard to case. */
export function emailKey(address: string): string {
  return address.toLowerCase();
}
