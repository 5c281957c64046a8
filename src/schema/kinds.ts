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
 * What each kind of field is: a row with the rule of its values, its JSON Schema, and how it
 * is filtered and sorted. `declaration.ts` has its members. A kind without a row does not compile.
 */
export interface Kind<F extends Field = Field> {
  // Methods, because TypeScript compares methods loosely: the rows of all kinds have one type.
  // This is sound, because `findKind` returns the row of the field that is then given.
  /** Returns how a value violates the rule of a field, apart from what is within a list or an object. */
  violation(value: JsonValue, field: F): Placed | undefined;
  /** Returns how the elements or members of a value violate their rules. Absent: it has none. */
  violationsWithin?(value: JsonValue, field: F): readonly Placed[];
  /** True if a value has the type: it fits the rule, apart from bounds. */
  hasType(value: unknown, field: F): boolean;
  /** Returns the JSON Schema without bounds. */
  type(field: F): TypeSchema;
  /** Returns the members of the JSON Schema that bound values, or a merge patch for them. */
  bounds?(field: F, isPatch?: boolean): JsonObject;
  /** Returns a value that the bounds allow. */
  example(field: F): Value;
  /** True if values can be unique. */
  readonly isUnique?: true;
  readonly operators: readonly Operator[];
  /**
   * Parses a value in a query, which may be outside the bounds. Returns a violation of a
   * text that is no such value.
   */
  operand(text: string, field: F): Scalar | Violation;
  /** Returns the key that a value is compared by. Absent: the value itself. */
  readonly compared?: (value: Scalar) => Scalar;
  /** True if values have texts that are searched. Absent: they have none. */
  isSearched?(field: F): boolean;
}

/**
 * A type of JSON Schema; without one, any value is allowed. An `enum` always has a `type`, for
 * code generators.
 */
interface TypeSchema {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly 'x-like'?: string;
}

/** The operators of filters. */
export type Operator =
  'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'in' | 'contains' | 'starts' | 'ends' | 'has';

export const comparisons = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'] as const;

export const isText = (value: unknown): value is string => typeof value === 'string';

/** Returns the check of a text by a rule. */
export const textBy =
  <F>(rule: (value: string, field: F) => Violation | undefined) =>
  (value: JsonValue, field: F): Violation | undefined =>
    isText(value) ? rule(value, field) : notA('string');

/** The members that the rows of texts share. */
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

/** Says what the pattern only approximates. */
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
    // A date stands for its first moment. A "+" that was not encoded arrives as a space.
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

/** The most elements of a list without a declared `max`. */
const listLengthMax = 50;

/** The rows of all kinds. */
type Rows = { readonly [K in Field['kind']]: Kind<Field & { readonly kind: K }> };
/** The kinds that only declared collections have. They are added when the first one is declared. */
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

/** Adds the rows of further kinds. */
export function addKinds(further: Pick<Rows, FurtherKind>): void {
  for (const [kind, row] of Object.entries<Kind>(further)) rows.set(kind, row);
}

/** Returns the row of a kind; `undefined` if there is none. */
export const kindNamed = (kind: string): Kind | undefined => rows.get(kind);

/** Returns the row of a field's kind. */
export function findKind({ kind }: Field): Kind {
  const row = rows.get(kind);
  invariant(row !== undefined, `the kind ${kind} is loaded with the collections that have it`);
  return row;
}

/**
 * Returns how a value violates the rule of a field, once for each element or member and no more
 * than are told; `place` is a JSON Pointer into it.
 */
export function findViolations(field: Field, value: JsonValue): readonly Placed[] {
  if (value === null && field.nullable) return none;
  const { violation, violationsWithin } = findKind(field);
  const found = violation(value, field);
  return found === undefined ? (violationsWithin?.(value, field) ?? none) : [found];
}

/** Returns violations with their places in an outer value. */
export const within = (place: string, violations: readonly Placed[]): Placed[] =>
  violations.map((each) => ({ ...each, place: place + (each.place ?? '') }));

export const required = violation('required', 'must be given');
export const unknownField = violation('unknown_field', 'must be left out: there is no such field');

const none: readonly Violation[] = [];

/** Returns the first violation of the rule of a field. */
export function ruleViolation(field: Field, value: JsonValue): Violation | undefined {
  return findViolations(field, value)[0];
}

/** True if `q` searches the values of a field. */
export const isSearched = (field: Field): boolean => findKind(field).isSearched?.(field) ?? false;

/** True if a value has the type of a field: it fits its rule, apart from its bounds. */
export function hasType(field: Field, value: unknown): boolean {
  return (value === null && field.nullable === true) || findKind(field).hasType(value, field);
}

/** Returns the JSON Schema of a field's value, or of a merge patch for it. */
export function valueSchema(field: Field, isPatch = false): JsonObject {
  const kind = findKind(field);
  const { type, enum: values, ...others } = kind.type(field);
  const { nullable, optional, readOnly, writeOnly, set } = field;
  const hints = pickHints(field);
  const takesNull = nullable || (isPatch && optional && !readOnly && !writeOnly);
  return {
    ...(type !== undefined && { type: takesNull ? [type, 'null'] : type }),
    ...(values !== undefined && { enum: takesNull ? [...values, null] : values }),
    ...others,
    ...kind.bounds?.(field, isPatch),
    ...(field.description !== undefined && { description: field.description }),
    ...(hints !== undefined && { 'x-hints': { ...hints } }),
    ...(set !== undefined && { 'x-set': set }),
  };
}

/** Returns an allowed value of a field: the declared one, or one that its bounds allow. */
export function makeExample(field: Field): Value {
  return field.example ?? findKind(field).example(field);
}
