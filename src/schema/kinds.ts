import { invariant } from '../base/errors.ts';
import { parseJsonNumber, type JsonObject, type JsonValue, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import {
  readBounds,
  emailKey,
  pickHints,
  type BooleanField,
  type ChoiceField,
  type EmailField,
  type Field,
  type ListField,
  type NumberField,
  type PasswordField,
  type TextField,
  type TimestampField,
  type Value,
} from './field.ts';
import {
  characters,
  characterViolation,
  emailGrammar,
  emailLengthMax,
  emailPattern,
  forbiddenIn,
  lengthViolation,
  loneSurrogate,
  notA,
  textPattern,
  tooLong,
  violation,
  type Violation,
} from './rules.ts';

/**
 * A row for each kind of field: the rule of its values, its JSON Schema, and its filters and order.
 * `declaration.ts` has its members. A kind without a row does not compile.
 */
export interface Kind<F extends Field = Field> {
  // Methods, because TypeScript compares methods loosely, so that the rows of all kinds have one
  // type. This is sound: `findKind` returns the row of the field that it is then called with.
  /** Returns how a value violates the field's rule, apart from elements and members. */
  violation(value: JsonValue, field: F): Placed | undefined;
  /** Returns how elements or members violate their rules. */
  violationsWithin?(value: JsonValue, field: F): readonly Placed[];
  /** True if the value follows the rule, apart from bounds. */
  hasType(value: unknown, field: F): boolean;
  type(field: F): TypeSchema;
  /** Returns the members of the JSON Schema that bound values, or a merge patch for them. */
  bounds?(field: F, isPatch?: boolean): JsonObject;
  /** Returns a value within the bounds. */
  example(field: F): Value;
  readonly isUnique?: true;
  readonly operators: readonly Operator[];
  /** Parses a value in a query, which may be out of bounds. Returns a violation for other texts. */
  operand(text: string, field: F): Scalar | Violation;
  /** Returns the key that a value is compared by. Default: the value itself. */
  readonly compared?: (value: Scalar) => Scalar;
  /** True if values contain texts to search. Absent if they never do. */
  isSearched?(field: F): boolean;
}

/**
 * A JSON Schema type. Without one, any value is allowed. An `enum` always has a `type`, for code
 * generators.
 */
interface TypeSchema {
  readonly type?: string;
  /** Instead of `type`, if values have one of several. */
  readonly anyOf?: readonly { readonly type: string }[];
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly 'x-like'?: string;
}

export type Operator =
  'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'in' | 'contains' | 'starts' | 'ends' | 'has';

export const comparisons = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'] as const;

export const isText = (value: unknown): value is string => typeof value === 'string';

export const textBy =
  <F>(rule: (value: string, field: F) => Violation | undefined) =>
  (value: JsonValue, field: F): Violation | undefined =>
    isText(value) ? rule(value, field) : notA('string');

export const texts = {
  hasType: isText,
  type: () => ({ type: 'string' }),
  operators: [...comparisons, 'contains', 'starts', 'ends'],
  operand: (text: string) => text,
} as const;

const text: Kind<TextField> = {
  ...texts,
  violation: textBy((value, field) => {
    const { min, max } = readBounds(field);
    return lengthViolation(value, min, max) ?? characterViolation(value, min, field.multiline);
  }),
  bounds(field) {
    const { min, max } = readBounds(field);
    const { multiline } = field;
    return {
      minLength: min,
      maxLength: max,
      pattern: textPattern(min, multiline),
      ...(min > 0 && visible),
      ...(multiline && { 'x-multiline': true }),
    };
  },
  example(field) {
    const { min, max } = readBounds(field);
    return 'text'.padEnd(min, '.').slice(0, max);
  },
  isUnique: true,
  isSearched: () => true,
};

/** The pattern only approximates this. */
const visible = {
  $comment: 'One character must be visible: no white space, mark or format character.',
};

const email: Kind<EmailField> = {
  ...texts,
  violation: textBy((value) => {
    if (value.length > emailLengthMax) return tooLong(characters(emailLengthMax));
    if (emailGrammar.test(value)) return undefined;
    return violation('not_an_email', 'must be an e-mail address');
  }),
  bounds: () => ({ maxLength: emailLengthMax, pattern: emailPattern }),
  example: () => 'ada@example.org',
  isUnique: true,
  compared: (value) => emailKey(String(value)),
  isSearched: () => true,
};

const timestamp: Kind<TimestampField> = {
  ...texts,
  // Only the form of `Date.toISOString`, so that texts are ordered by time.
  violation: textBy((value) => {
    if (value.length === 24 && new Date(value).toJSON() === value) return undefined;
    return violation('not_a_timestamp', 'must be like 2026-01-31T12:00:00.000Z');
  }),
  type: () => ({ type: 'string', format: 'date-time' }),
  example: () => '2026-01-31T12:00:00.000Z',
  isUnique: true,
  operators: comparisons,
  operand(text) {
    // A date means its first moment. An unencoded "+" arrives as a space.
    const [, date, time = 'T00:00:00Z'] =
      /^(\d{4}-\d\d-\d\d)(T[\d:.]+(?:Z|[+ -]\d\d:\d\d))?$/.exec(text) ?? [];
    const isDay = date !== undefined && new Date(date).toJSON()?.startsWith(date);
    const value = isDay ? new Date(date + time.replace(' ', '+')).toJSON() : null;
    return (
      value ??
      violation(
        'not_a_timestamp',
        'must be like 2026-01-31, 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00',
      )
    );
  },
};

const choice: Kind<ChoiceField> = {
  ...texts,
  violation: textBy((value, { values }) => {
    if (values.includes(value)) return undefined;
    return violation('not_allowed', `must be one of ${values.join(', ')}`);
  }),
  type: ({ values }) => ({ type: 'string', enum: values }),
  example: ({ values }) => values[0] ?? '',
  operators: ['eq', 'ne', 'in'],
  operand: (text, field) => choice.violation(text, field) ?? text,
};

const password: Kind<PasswordField> = {
  ...texts,
  violation: textBy((value, { min = 1, bytesMax = limits.passwordBytesMax }) => {
    if (Buffer.byteLength(value) > bytesMax) return tooLong(`${bytesMax} bytes`);
    return lengthViolation(value, min, Infinity) ?? forbiddenIn(value, [loneSurrogate]);
  }),
  type: () => ({ type: 'string', format: 'password' }),
  bounds: ({ min = 1, bytesMax = limits.passwordBytesMax }) => ({
    minLength: min,
    maxLength: bytesMax,
  }),
  example: ({ min = 1 }) => 'correct horse battery staple'.padEnd(min, ' and so on'),
  operators: [],
};

export const number: Kind<NumberField> = {
  violation(value, field) {
    const { min, max } = readBounds(field);
    const type = field.kind === 'number' ? 'number' : 'whole number';
    if (typeof value !== 'number') return notA(type);
    if (!Number.isFinite(value)) return notFinite;
    if (value < min) return violation('too_small', `must be at least ${min}`);
    if (value > max) return violation('too_large', `must be at most ${max}`);
    return field.kind === 'number' || Number.isInteger(value) ? undefined : notA(type);
  },
  hasType: Number.isFinite,
  type: ({ kind }) => ({ type: kind }),
  bounds(field) {
    const { min, max } = readBounds(field);
    return {
      ...(min > -Number.MAX_VALUE && { minimum: min }),
      ...(max < Number.MAX_VALUE && { maximum: max }),
    };
  },
  example(field) {
    const { min, max } = readBounds(field);
    const isWhole = field.kind === 'integer';
    return Math.min(Math.max(isWhole ? Math.ceil(min) : min, 0), isWhole ? Math.floor(max) : max);
  },
  isUnique: true,
  operators: comparisons,
  operand(text) {
    const value = parseJsonNumber(text);
    if (Number.isFinite(value)) return value;
    // An integer with more digits than a double holds is not a number here.
    return Number.isFinite(Number(text)) && /\d{16}/.test(text) ? tooPrecise : notA('number');
  },
};

const tooPrecise = violation('wrong_type', 'must not have more digits than a double can hold');

const boolean: Kind<BooleanField> = {
  violation: (value) => (typeof value === 'boolean' ? undefined : notTrueOrFalse),
  hasType: (value) => typeof value === 'boolean',
  type: () => ({ type: 'boolean' }),
  example: () => true,
  operators: ['eq', 'ne'],
  operand: (text) => (/^(?:true|false)$/.test(text) ? text === 'true' : notTrueOrFalse),
};
const notTrueOrFalse = violation('wrong_type', 'must be true or false');

const list: Kind<ListField> = {
  violation(value, { max = listLengthMax }) {
    if (!Array.isArray(value)) return notA('list');
    if (value.length <= max) return undefined;
    return violation('too_long', `must have at most ${max} elements`);
  },
  violationsWithin(values, { of }) {
    const found: Placed[] = [];
    for (const [index, one] of Array.isArray(values) ? values.entries() : []) {
      if (found.length > limits.issuesMax) break;
      found.push(...within(`/${index}`, findViolations(of, one)));
    }
    return found;
  },
  hasType: (value, { of }) => Array.isArray(value) && value.every((one) => hasType(of, one)),
  type: () => ({ type: 'array' }),
  bounds({ of, max = listLengthMax }) {
    return { items: valueSchema(of), maxItems: max };
  },
  example: ({ of, max }) => (max === 0 ? [] : [makeExample(of)]),
  operators: ['has'],
  operand: (text, { of }) => findKind(of).operand(text, of),
  isSearched: ({ of }) => isSearched(of),
};

export const notFinite = violation('not_finite', 'must be a finite number');

/** A violation with its place, a JSON Pointer into the value. */
export type Placed = Violation & { readonly place?: string };

const listLengthMax = 50;

type Rows = { readonly [K in Field['kind']]: Kind<Field & { readonly kind: K }> };
/** The kinds that only declared collections have, added when the first one is declared. */
export type FurtherKind = 'reference' | 'id' | 'url' | 'object' | 'json';

const ownRows: Omit<Rows, FurtherKind> = {
  text,
  integer: number,
  number,
  boolean,
  choice,
  email,
  timestamp,
  password,
  list,
};
const rows = new Map<string, Kind>(Object.entries<Kind>(ownRows));

export function addKinds(further: Pick<Rows, FurtherKind>): void {
  for (const [kind, row] of Object.entries<Kind>(further)) rows.set(kind, row);
}

/** Returns the row of a kind; `undefined` for an unknown one. */
export const kindNamed = (kind: string): Kind | undefined => rows.get(kind);

export function findKind({ kind }: Field): Kind {
  const row = rows.get(kind);
  invariant(row !== undefined, `the kind ${kind} is loaded with the collections that have it`);
  return row;
}

/**
 * Returns how a value violates a field's rule, once per element or member, up to the number that is
 * reported. `place` is a JSON Pointer into the value.
 */
export function findViolations(field: Field, value: JsonValue): readonly Placed[] {
  if (value === null && field.nullable) return none;
  const { violation, violationsWithin } = findKind(field);
  const found = violation(value, field);
  return found === undefined ? (violationsWithin?.(value, field) ?? none) : [found];
}

/** Moves violations to their places in an outer value. */
export const within = (place: string, violations: readonly Placed[]): Placed[] =>
  violations.map((each) => ({ ...each, place: place + (each.place ?? '') }));

export const required = violation('required', 'must be given');
export const unknownField = violation('unknown_field', 'must be left out: there is no such field');

const none: readonly Violation[] = [];

export function ruleViolation(field: Field, value: JsonValue): Violation | undefined {
  return findViolations(field, value)[0];
}

export const isSearched = (field: Field): boolean => findKind(field).isSearched?.(field) ?? false;

/** True if a value follows the field's rule, apart from bounds. */
export function hasType(field: Field, value: unknown): boolean {
  return (value === null && field.nullable === true) || findKind(field).hasType(value, field);
}

/** Returns the JSON Schema of a field's value, or of a merge patch for it. */
export function valueSchema(field: Field, isPatch = false): JsonObject {
  const kind = findKind(field);
  const { type, anyOf, enum: values, ...others } = kind.type(field);
  const { nullable, optional, readOnly, writeOnly, set } = field;
  const hints = pickHints(field);
  const takesNull = nullable || (isPatch && optional && !readOnly && !writeOnly);
  return {
    ...(type !== undefined && { type: takesNull ? [type, 'null'] : type }),
    ...(anyOf !== undefined && { anyOf: takesNull ? [...anyOf, { type: 'null' }] : anyOf }),
    ...(values !== undefined && { enum: takesNull ? [...values, null] : values }),
    ...others,
    ...kind.bounds?.(field, isPatch),
    ...(field.description !== undefined && { description: field.description }),
    ...(hints !== undefined && { 'x-hints': { ...hints } }),
    ...(set !== undefined && { 'x-set': set }),
  };
}

/** Returns the declared example, or a value within the bounds. */
export function makeExample(field: Field): Value {
  return field.example ?? findKind(field).example(field);
}
