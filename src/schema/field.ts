import type { JsonObject, JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/**
 * The fields of a resource by name, in the order in which they are shown. Fields are data, the same
 * in a program as in a file of declarations.
 */
export interface Shape {
  readonly [name: string]: Field;
}

/** Returns a function that computes its result once for each shape, since every body needs it. */
export function oncePerShape<T>(compute: (shape: Shape) => T): (shape: Shape) => T {
  const results = new WeakMap<Shape, T>();
  return (shape) => {
    let result = results.get(shape);
    if (result === undefined) results.set(shape, (result = compute(shape)));
    return result;
  };
}

/**
 * A field: its kind with the bounds of its values, and the members that every kind has. Lengths are
 * in code points, except for `bytesMax` (UTF-8).
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

export type Value = JsonValue;

/**
 * A field's presentation on the page. Nothing else reads these members, so they are in no entity
 * tag and the store ignores them.
 */
export interface FieldHints {
  /** The name that people read. */
  readonly label?: string;
  /** `percent` shows 0.2 as 20 %. `image` shows the image at an address. */
  readonly format?: 'image' | 'percent' | { readonly money: string };
  /** The colors of a choice's values. */
  readonly colors?: { readonly [value: string]: (typeof colorNames)[number] };
}

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

/** Returns a field's hints; `undefined` if it has none. */
export function pickHints({ label, format, colors }: FieldHints): FieldHints | undefined {
  if (label === undefined && format === undefined && colors === undefined) return undefined;
  return { ...(label && { label }), ...(format && { format }), ...(colors && { colors }) };
}

interface FieldOf<T extends Value> extends FieldHints {
  /** True if the field may be absent. */
  readonly optional?: boolean;
  /**
   * True if null is a value: a patch with null stores it, and a PUT without an optional field
   * removes it. Filters, sorting and `unique` treat it as absent.
   */
  readonly nullable?: boolean;
  /**
   * The value of an absent field on creation and in stored records. A PUT without the field keeps
   * the stored value.
   */
  readonly default?: T;
  /** The field's earlier name. Records stored under it are read under the new one. */
  readonly renamedFrom?: string;
  /** Set by the server. It can be sent back as read; another value is an issue. */
  readonly readOnly?: boolean;
  /**
   * The roles, or `owner`, that may set the field, in addition to administrators. For others it
   * keeps its value, or gets its default in a new record.
   */
  readonly set?: readonly string[];
  /** Never shown, and not available for sorting and filters. */
  readonly writeOnly?: boolean;
  readonly description?: string;
  /** A valid value, for the OpenAPI document. */
  readonly example?: T;
}

interface Unique {
  readonly unique?: boolean;
}

/**
 * A line of text of `min` (0) to `max` (200) code points, without control characters, bidirectional
 * controls and line separators. Unless `min` is 0, at least one character must be visible.
 * `multiline` allows line feeds, carriage returns and tabs.
 */
export interface TextField extends FieldOf<string>, Unique {
  readonly kind: 'text';
  readonly min?: number;
  readonly max?: number;
  readonly multiline?: boolean;
}

/**
 * An address by the rule of HTML's `<input type=email>`, stored as sent, and compared ignoring
 * case.
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
 * A finite number from `min` to `max`, stored exactly as sent. `integer`: a whole number, by
 * default within the safe integers of a double.
 */
export interface NumberField extends FieldOf<number>, Unique {
  readonly kind: 'number' | 'integer';
  readonly min?: number;
  readonly max?: number;
}

export interface BooleanField extends FieldOf<boolean> {
  readonly kind: 'boolean';
}

export interface ChoiceField extends FieldOf<string> {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** The id of a record in the collection `to`, or in `users`. The field's name ends in `Id`. */
export interface ReferenceField extends FieldOf<number | string>, Unique {
  readonly kind: 'reference';
  readonly to: string;
  /** The kind of ids if they are not record numbers, from the target's declaration. */
  readonly ids?: IdKind;
  /**
   * The effect of removing the target. `refuse` (default): its removal is refused. `remove`: this
   * record is removed with it. `clear`: this field, which must be optional, is removed. Required
   * for references to users.
   */
  readonly onDelete?: 'refuse' | 'remove' | 'clear';
  /** The fields of a user that `embed` shows with the id. If absent, the field embeds no users. */
  readonly show?: 'name';
}

/**
 * The id of a record, if callers may choose it on creation: any safe integer, a text of 1 to 128
 * code points, or either of these and fractions.
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
 * A list of at most `max` (50) values. The name of a list of references ends in `Ids`, and `clear`
 * removes the element.
 */
export interface ListField extends FieldOf<readonly JsonValue[]> {
  readonly kind: 'list';
  readonly of: Field;
  readonly max?: number;
}

/**
 * An object with these members. With `additional`, it may have others, each like a `json` field.
 */
export interface ObjectField extends FieldOf<JsonObject> {
  readonly kind: 'object';
  readonly fields: Shape;
  readonly additional?: boolean;
}

/**
 * Any JSON value of at most `bytesMax` (65,536) bytes. Filters, sorting and descriptions treat it
 * as the kind `like`, which nothing enforces.
 */
export interface JsonField extends FieldOf<JsonValue> {
  readonly kind: 'json';
  readonly bytesMax?: number;
  readonly like?: LikeKind;
}

/** The field of an undeclared member, bounded only by the record. */
export const anyJson = {
  kind: 'json',
  bytesMax: limits.recordBytesMax,
} as const satisfies JsonField;

/**
 * The field of a record's additional members. They are shown and sent next to the others but stored
 * apart, so that none can be taken for a member that the server stores. No declared field has a
 * name with a dot.
 */
export const moreName = '.more';
const moreField = {
  kind: 'object',
  fields: {},
  additional: true,
  optional: true,
  writeOnly: true,
} as const satisfies ObjectField;

/**
 * The only field of a single resource that is not an object. It is shown and sent as this value.
 */
export const valueName = '.value';

/** Adds a field for additional members, or for the whole value, to a shape. */
export const joinShape = (fields: Shape, takesMore: boolean, value?: Field): Shape => ({
  ...fields,
  ...(value && { [valueName]: value }),
  ...(takesMore && { [moreName]: moreField }),
});

/** Reverses `joinShape`. */
export function splitShape(shape: Shape): { fields: Shape; takesMore: boolean; value?: Field } {
  const { [moreName]: more, [valueName]: value, ...fields } = shape;
  return { fields, takesMore: more !== undefined, ...(value && { value }) };
}

export const likeKinds = ['text', 'number', 'boolean', 'timestamp', 'email', 'url'] as const;
export type LikeKind = (typeof likeKinds)[number];

export type ValueOf<F extends Field> =
  | (F extends { readonly nullable: true } ? null : never)
  | (F extends ListField
      ? readonly ValueOf<F['of']>[]
      : F extends ObjectField
        ? CompleteInput<F['fields']>
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

/** All fields that callers can set, with defaults filled in. */
export type CompleteInput<S extends Shape> = {
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

/** The field of an id that the server assigns, a positive integer. */
export const idField = {
  kind: 'integer',
  min: 1,
  readOnly: true,
  example: 1,
  description: 'Assigned by the server; never reused.',
} as const satisfies Field;

/** The field of an id that callers may choose. */
export const givenIdField = (of: IdKind): IdField => ({
  kind: 'id',
  of,
  readOnly: true,
  description: 'Given when the record is created, or made by the server; never changed.',
});

/** Returns a field's bounds, which its declaration may leave out. */
export function readBounds(field: TextField | NumberField): { min: number; max: number } {
  const { min = lowest[field.kind], max = highest[field.kind] } = field;
  return { min, max };
}

/** Returns the reference in a field, or in the elements of a list. */
export function referenceIn(field: Field): ReferenceField | undefined {
  const one = field.kind === 'list' ? field.of : field;
  return one.kind === 'reference' ? one : undefined;
}

const lowest = { text: 0, number: -Number.MAX_VALUE, integer: Number.MIN_SAFE_INTEGER };
const highest = { text: 200, number: Number.MAX_VALUE, integer: Number.MAX_SAFE_INTEGER };

/** Returns the form in which e-mail addresses are compared. */
export function emailKey(address: string): string {
  return address.toLowerCase();
}
