import type { JsonObject, JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/**
 * The fields of a resource by name, in the order in which they are shown. Fields are data,
 * the same in a program as in a file of declarations.
 */
export interface Shape {
  readonly [name: string]: Field;
}

/**
 * A field: its kind with the bounds of its values, and the members that every kind has.
 * Lengths are in code points, except for `bytesMax` (UTF-8).
 */
export type Field =
  | TextField
  | EmailField
  | TimestampField
  | PasswordField
  | NumberField
  | BooleanField
  | ChoiceField
  | ReferenceField
  | IdField
  | UrlField
  | ListField
  | ObjectField
  | JsonField;

/** The value of a field. */
export type Value = JsonValue;

/**
 * How the page shows a field. Nothing else reads these members, so they are in no entity tag and a
 * store does not look at them.
 */
export interface FieldHints {
  /** The name that people read. */
  readonly label?: string;
  /** `percent` shows 0.2 as 20 %. `image` shows what an address refers to. */
  readonly format?: 'image' | 'percent' | { readonly money: string };
  /** The colors of values of a choice. */
  readonly colors?: { readonly [value: string]: (typeof colorNames)[number] };
}

/** The colors that `colors` can name. */
export const colorNames = [
  'red',
  'orange',
  'yellow',
  'green',
  'teal',
  'blue',
  'purple',
  'pink',
] as const;

/** Returns the hints of a field; `undefined` if it has none. */
export function pickHints({ label, format, colors }: FieldHints): FieldHints | undefined {
  if (label === undefined && format === undefined && colors === undefined) return undefined;
  return { ...(label && { label }), ...(format && { format }), ...(colors && { colors }) };
}

/** The members of every field, with values of type `T`. */
interface FieldOf<T extends Value> extends FieldHints {
  /** True if the field may be left out, and is then absent. */
  readonly optional?: boolean;
  /**
   * True if null is a value. A patch with null stores it, and a PUT without an optional field
   * removes that. Filters, sorting and `unique` take it for an absent value.
   */
  readonly nullable?: boolean;
  /**
   * On creation, an absent field becomes this value, and a PUT without the field keeps the
   * stored one. Stored records without the field get it too.
   */
  readonly default?: T;
  /** The earlier name of the field. Records stored under it are read as the new one. */
  readonly renamedFrom?: string;
  /** Set by the server. It can be sent back as it was read; another value is an issue. */
  readonly readOnly?: boolean;
  /**
   * Who may set the field: `admin`, `member`, declared roles, `owner`. Administrators always may. For
   * others the field keeps its value, and has its default in a new record.
   */
  readonly set?: readonly string[];
  /** Never shown, and not available for sorting and filters. */
  readonly writeOnly?: boolean;
  readonly description?: string;
  /** An allowed value, for the OpenAPI document. */
  readonly example?: T;
}

/** The member of fields with a value that no two records of a collection may share. */
interface Unique {
  readonly unique?: boolean;
}

/**
 * A line of text of `min` (0) to `max` (200) code points, without control characters,
 * bidirectional controls and line separators. If `min` is not 0, at least one character
 * must be visible. `multiline`: line feeds, carriage returns and tabs are allowed.
 */
export interface TextField extends FieldOf<string>, Unique {
  readonly kind: 'text';
  readonly min?: number;
  readonly max?: number;
  readonly multiline?: boolean;
}

/**
 * An address by the rule of HTML's `<input type=email>`, stored as sent, and compared without
 * regard to case.
 */
export interface EmailField extends FieldOf<string>, Unique {
  readonly kind: 'email';
}

/** A UTC time with milliseconds, such as `2026-01-31T12:00:00.000Z` (RFC 3339). */
export interface TimestampField extends FieldOf<string>, Unique {
  readonly kind: 'timestamp';
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
export interface NumberField extends FieldOf<number>, Unique {
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

/** The id of a record of the collection `to`, or of one of the `users`. The name ends in `Id`. */
export interface ReferenceField extends FieldOf<number | string>, Unique {
  readonly kind: 'reference';
  readonly to: string;
  /** The kind of the ids if they are not the numbers of records. Filled in from the target's declaration. */
  readonly ids?: IdKind;
  /**
   * The effect of removing the record that is referred to. `refuse`, the default: it cannot be
   * removed. `remove`: this record is removed with it. `clear`: this field, which must be optional,
   * is removed. Required if the field refers to users.
   */
  readonly onDelete?: 'refuse' | 'remove' | 'clear';
  /** The fields of a user that `embed` shows with the id. Absent: the field embeds no users. */
  readonly show?: 'name';
}

/**
 * The id of a record, which callers may give when they create it: any safe integer, a text of 1 to
 * 128 code points, or either of them and a fraction.
 */
export interface IdField extends FieldOf<number | string> {
  readonly kind: 'id';
  readonly of: IdKind;
}
export type IdKind = 'integer' | 'text' | 'any';

/** An absolute address with `http` or `https` (WHATWG URL), stored as sent. */
export interface UrlField extends FieldOf<string>, Unique {
  readonly kind: 'url';
}

/**
 * A list of at most `max` (50) values. The name of a list of references ends in `Ids`, and
 * their `clear` removes the element.
 */
export interface ListField extends FieldOf<readonly JsonValue[]> {
  readonly kind: 'list';
  readonly of: Field;
  readonly max?: number;
}

/**
 * An object with these members. `additional`: it may have others, each of which is like a
 * `json` field.
 */
export interface ObjectField extends FieldOf<JsonObject> {
  readonly kind: 'object';
  readonly fields: Shape;
  readonly additional?: boolean;
}

/**
 * Any JSON value of at most `bytesMax` (65,536) bytes. `like`: the kind by which filters,
 * sorting and descriptions take it; nothing enforces it.
 */
export interface JsonField extends FieldOf<JsonValue> {
  readonly kind: 'json';
  readonly bytesMax?: number;
  readonly like?: LikeKind;
}

/** The field of a member that is not declared. Only the record bounds it. */
export const anyJson = {
  kind: 'json',
  bytesMax: limits.recordBytesMax,
} as const satisfies JsonField;

/**
 * The field of the additional members of a record. They are shown and sent next to the others, and
 * stored apart, so that none of them can be taken for a member that the server stores. No other field
 * has a name with a dot.
 */
export const moreName = '.more';
export const moreField = {
  kind: 'object',
  fields: {},
  additional: true,
  optional: true,
  writeOnly: true,
} as const satisfies ObjectField;

/** The only field of a single resource that is not an object: it is shown and sent as this value. */
export const valueName = '.value';

/** Returns a shape with additional members, or with the field that is the whole value. */
export const joinShape = (fields: Shape, takesMore: boolean, value?: Field): Shape => ({
  ...fields,
  ...(value && { [valueName]: value }),
  ...(takesMore && { [moreName]: moreField }),
});

/** Returns the parts of a shape, as `joinShape` takes them. */
export function splitShape(shape: Shape): { fields: Shape; takesMore: boolean; value?: Field } {
  const { [moreName]: more, [valueName]: value, ...fields } = shape;
  return { fields, takesMore: more !== undefined, ...(value && { value }) };
}

/** The kinds that a `json` field can be like. */
export const likeKinds = ['text', 'number', 'boolean', 'timestamp', 'email', 'url'] as const;
export type LikeKind = (typeof likeKinds)[number];

/** The values of a field. */
export type ValueOf<F extends Field> =
  | (F extends { readonly nullable: true } ? null : never)
  | (F extends ListField
      ? readonly ValueOf<F['of']>[]
      : F extends ObjectField
        ? Input<F['fields']>
        : F extends JsonField
          ? JsonValue
          : F extends ChoiceField
            ? F['values'][number]
            : F extends NumberField
              ? number
              : F extends ReferenceField | IdField
                ? number | string
                : F extends BooleanField
                  ? boolean
                  : string);

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

/** Returns the field of an id that callers may give. */
export const givenIdField = (of: IdKind): IdField => ({
  kind: 'id',
  of,
  readOnly: true,
  description: 'Given when the record is created, or made by the server; never changed.',
});

/** The bounds of a field that its declaration may leave out. */
export function readBounds(field: TextField | NumberField): { min: number; max: number } {
  const { min = lowest[field.kind], max = highest[field.kind] } = field;
  return { min, max };
}

/** The reference of a field, or of the elements of a list. */
export function referenceIn(field: Field): ReferenceField | undefined {
  const one = field.kind === 'list' ? field.of : field;
  return one.kind === 'reference' ? one : undefined;
}

const lowest = { text: 0, number: -Number.MAX_VALUE, integer: Number.MIN_SAFE_INTEGER };
const highest = { text: 200, number: Number.MAX_VALUE, integer: Number.MAX_SAFE_INTEGER };

/** Returns the form in which e-mail addresses are compared: without regard to case. */
export function emailKey(address: string): string {
  return address.toLowerCase();
}
