import {
  isJsonObject,
  parseJsonNumber,
  pointerTo,
  type JsonObject,
  type JsonValue,
  type Scalar,
} from '../base/json.ts';
import { limits } from '../base/limits.ts';
import {
  anyJson,
  boundsOf,
  emailKey,
  hintsOf,
  type BooleanField,
  type ChoiceField,
  type EmailField,
  type Field,
  type IdField,
  type JsonField,
  type LikeKind,
  type ListField,
  type NumberField,
  type ObjectField,
  type PasswordField,
  type ReferenceField,
  type TextField,
  type TimestampField,
  type UrlField,
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
  // This is sound, because `kindOf` returns the row of the field that is then given.
  /** Returns how a value violates the rule of a field, apart from what is within a list or an object. */
  violation(value: JsonValue, field: F): Placed | undefined;
  /** Whether a value has the type: it fits the rule, apart from bounds. */
  hasType(value: unknown, field: F): boolean;
  /** Returns the JSON Schema without bounds. */
  type(field: F): TypeSchema;
  /** Returns the members of the JSON Schema that bound values, or a merge patch for them. */
  bounds?(field: F, isPatch?: boolean): JsonObject;
  /** Returns a value that the bounds allow. */
  example(field: F): Value;
  /** Whether values can be unique. */
  readonly isUnique?: true;
  readonly operators: readonly Operator[];
  /**
   * Parses a value in a query, which may be outside the bounds. Returns a violation of a
   * text that is no such value.
   */
  operand(text: string, field: F): Scalar | Violation;
  /** Returns the value by which one is compared. Absent: the value itself. */
  readonly compared?: (value: Scalar) => Scalar;
  /** Whether values have texts that are searched. Absent: they have none. */
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

const comparisons = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'] as const;

const isText = (value: unknown): value is string => typeof value === 'string';

/** Returns the check of a text by a rule. */
const textBy =
  <F>(rule: (value: string, field: F) => Violation | undefined) =>
  (value: JsonValue, field: F): Violation | undefined =>
    isText(value) ? rule(value, field) : notA('string');

/** What the rows of texts share. */
const texts = {
  hasType: isText,
  type: () => ({ type: 'string' }),
  operators: [...comparisons, 'contains', 'starts', 'ends'],
  operand: (text: string) => text,
} as const;

const text: Kind<TextField> = {
  ...texts,
  violation: textBy((value, field) => {
    const { min, max } = boundsOf(field);
    return lengthViolation(value, min, max) ?? characterViolation(value, min, field.multiline);
  }),
  bounds(field) {
    const { min, max } = boundsOf(field);
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
    const { min, max } = boundsOf(field);
    return 'text'.padEnd(min, '.').slice(0, max);
  },
  isUnique: true,
  isSearched: () => true,
};

/** What a pattern only approximates. */
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

const number: Kind<NumberField> = {
  violation(value, field) {
    const { min, max } = boundsOf(field);
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
    const { min, max } = boundsOf(field);
    return {
      ...(min > -Number.MAX_VALUE && { minimum: min }),
      ...(max < Number.MAX_VALUE && { maximum: max }),
    };
  },
  example(field) {
    const { min, max } = boundsOf(field);
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

const reference: Kind<ReferenceField> = {
  violation(value, { ids }) {
    if (ids !== undefined) return id.violation(value, { kind: 'id', of: ids });
    return typeof value === 'number'
      ? number.violation(value, anyId)
      : notA('whole number, the id of a record');
  },
  hasType: (value, { ids }) =>
    ids === undefined ? Number.isFinite(value) : id.hasType(value, { kind: 'id', of: ids }),
  type: ({ ids }) => (ids === undefined ? { type: 'integer' } : id.type({ kind: 'id', of: ids })),
  bounds: ({ to, ids }) => ({
    ...(ids === undefined ? { minimum: 1 } : id.bounds?.({ kind: 'id', of: ids })),
    'x-references': to,
  }),
  example: ({ ids = 'integer' }) => id.example({ kind: 'id', of: ids }),
  isUnique: true,
  operators: ['eq', 'ne', 'in'],
  operand: (text, { ids }) =>
    ids === undefined ? number.operand(text, anyId) : id.operand(text, { kind: 'id', of: ids }),
};
const anyId = { kind: 'integer', min: 1 } as const;

const id: Kind<IdField> = {
  violation(value, { of }) {
    if (typeof value === 'number' && of !== 'text') {
      return number.violation(value, { kind: of === 'integer' ? of : 'number' });
    }
    if (!isText(value) || of === 'integer') return notA(idWords[of]);
    if (notIds.test(value)) return violation('not_allowed', `must not be ${JSON.stringify(value)}`);
    return lengthViolation(value, 1, idLengthMax) ?? characterViolation(value, 0);
  },
  hasType: (value, { of }) =>
    of === 'integer'
      ? Number.isSafeInteger(value)
      : isText(value) || (of === 'any' && Number.isFinite(value)),
  type: ({ of }) =>
    of === 'integer' ? { type: 'integer' } : of === 'text' ? { type: 'string' } : {},
  bounds: ({ of }) => (of === 'text' ? { minLength: 1, maxLength: idLengthMax } : {}),
  example: ({ of }) => (of === 'text' ? 'a1b2' : 1),
  operators: [...comparisons, 'contains', 'starts', 'ends'],
  operand: (text, { of }) => (of === 'integer' ? number.operand(text, { kind: of }) : text),
};
const idLengthMax = 128;
/** What is another path below that of the collection, or is resolved as one. */
const notIds = /^(?:\.\.?|batch)$/;
const idWords = { integer: 'whole number', text: 'string', any: 'string or number' } as const;

const url: Kind<UrlField> = {
  ...texts,
  violation: textBy((value) => {
    if (value.length > limits.urlLengthMax) return tooLong(characters(limits.urlLengthMax));
    if (/^https?:\/\/[^\s\\]+$/i.test(value) && URL.canParse(value)) return undefined;
    return violation('not_a_url', 'must be an absolute http or https address');
  }),
  type: () => ({ type: 'string', format: 'uri' }),
  bounds: () => ({ maxLength: limits.urlLengthMax, pattern: '^[hH][tT][tT][pP][sS]?://' }),
  example: () => 'https://example.org/',
  isUnique: true,
  isSearched: () => true,
};

const list: Kind<ListField> = {
  violation(value, { max = listLengthMax }) {
    if (!Array.isArray(value)) return notA('list');
    if (value.length <= max) return undefined;
    return violation('too_long', `must have at most ${max} elements`);
  },
  hasType: (value, { of }) => Array.isArray(value) && value.every((one) => hasType(of, one)),
  type: () => ({ type: 'array' }),
  bounds({ of, max = listLengthMax }) {
    return { items: valueSchema(of), maxItems: max };
  },
  example: ({ of, max }) => (max === 0 ? [] : [exampleOf(of)]),
  operators: ['has'],
  operand: (text, { of }) => kindOf(of).operand(text, of),
  isSearched: ({ of }) => isSearched(of),
};

const object: Kind<ObjectField> = {
  violation: (value) => (isJsonObject(value) ? undefined : notAn('object')),
  hasType: (value, { fields }) =>
    isObject(value) &&
    Object.entries(fields).every(([name, field]) =>
      Object.hasOwn(value, name) ? hasType(field, value[name]) : field.optional === true,
    ),
  type: () => ({ type: 'object' }),
  bounds({ fields, additional }, isPatch = false) {
    const members = Object.entries(fields);
    const required = members.filter(([, { optional }]) => !optional && !isPatch);
    const schemas = members.map(([name, field]) => [name, valueSchema(field, isPatch)]);
    return {
      properties: Object.fromEntries(schemas),
      ...(required.length > 0 && { required: required.map(([name]) => name) }),
      ...(!additional && { additionalProperties: false }),
    };
  },
  example: ({ fields }) =>
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, exampleOf(field)])),
  operators: [],
  operand: (text) => text,
  isSearched: ({ fields, additional = false }) =>
    additional || Object.values(fields).some(isSearched),
};
const notAn = (type: string): Violation => violation('wrong_type', `must be an ${type}`);

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const json: Kind<JsonField> = {
  violation(value, { bytesMax = limits.jsonFieldBytesMax }) {
    const found = jsonViolation(value);
    // A field that may fill a record is held to the bound of records.
    if (found !== undefined || bytesMax >= limits.recordBytesMax) return found;
    if (Buffer.byteLength(JSON.stringify(value)) <= bytesMax) return undefined;
    return violation('too_large', `must be at most ${bytesMax} bytes of JSON`);
  },
  hasType: (value) => value !== undefined,
  type: ({ like }) => (like === undefined ? {} : { 'x-like': like }),
  example: ({ like = 'text' }) => exampleOf(likeFields[like]),
  operators: [...comparisons, 'contains', 'starts', 'ends', 'has'],
  operand: (text, { like }) =>
    like === undefined ? text : kindOf(likeFields[like]).operand(text, likeFields[like]),
  isSearched: () => true,
};

const likeFields: { readonly [like in LikeKind]: Field } = {
  text: { kind: 'text', max: Infinity },
  number: { kind: 'number' },
  boolean: { kind: 'boolean' },
  timestamp: { kind: 'timestamp' },
  email: { kind: 'email' },
  url: { kind: 'url' },
};

/** Returns what keeps a value from being stored as JSON, with its place in the value. */
function jsonViolation(value: JsonValue): Placed | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : notFinite;
  if (typeof value === 'string') return isWellFormed(value) ? undefined : forbiddenSurrogate;
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    // There may be millions of elements.
    for (let at = 0; at < value.length; at += 1) {
      const found = jsonViolation(value[at]);
      if (found !== undefined) return placedBelow(found, String(at));
    }
    return undefined;
  }
  for (const [name, one] of Object.entries(value)) {
    if (!isWellFormed(name)) return forbiddenSurrogate;
    const found = jsonViolation(one);
    if (found !== undefined) return placedBelow(found, name);
  }
  return undefined;
}
const placedBelow = (found: Placed, name: string): Placed => ({
  ...found,
  place: pointerTo(name) + (found.place ?? ''),
});
const isWellFormed = (text: string): boolean => !loneSurrogate.pattern.test(text);
const notFinite = violation('not_finite', 'must be a finite number');
const forbiddenSurrogate = violation(loneSurrogate.code, `must not contain ${loneSurrogate.what}`);

/** A violation with its place, a JSON Pointer into the value. */
export type Placed = Violation & { readonly place?: string };

/** The most elements of a list where its declaration does not say it. */
const listLengthMax = 50;

export const kinds: { readonly [K in Field['kind']]: Kind<Field & { readonly kind: K }> } = {
  text,
  integer: number,
  number,
  boolean,
  choice,
  email,
  timestamp,
  password,
  reference,
  id,
  url,
  list,
  object,
  json,
};

/** Returns the row of a field's kind. */
export function kindOf({ kind }: Field): Kind {
  return kinds[kind];
}

/**
 * Returns how a value violates the rule of a field, once for each element or member and no more
 * than are told; `place` is a JSON Pointer into it.
 */
export function violationsOf(field: Field, value: JsonValue): readonly Placed[] {
  if (value === null && field.nullable) return none;
  const found = kindOf(field).violation(value, field);
  if (found !== undefined) return [found];
  if (field.kind === 'list' && Array.isArray(value)) {
    return elementViolations(field, value);
  }
  return field.kind === 'object' && isJsonObject(value) ? memberViolations(field, value) : none;
}

function elementViolations({ of }: ListField, values: readonly JsonValue[]): Placed[] {
  const found: Placed[] = [];
  for (const [index, one] of values.entries()) {
    if (found.length > limits.issuesMax) break;
    found.push(...within(`/${index}`, violationsOf(of, one)));
  }
  return found;
}

/** Returns how the members of an object violate its rules. */
function memberViolations({ fields, additional }: ObjectField, value: JsonObject): Placed[] {
  const missing = Object.keys(fields).filter(
    (name) => !Object.hasOwn(value, name) && fields[name]?.optional !== true,
  );
  const found = missing.map((name): Placed => ({ ...required, place: pointerTo(name) }));
  for (const [name, one] of Object.entries(value)) {
    if (found.length > limits.issuesMax) break;
    const field = Object.hasOwn(fields, name) ? fields[name] : additional ? anyJson : undefined;
    const violations = field === undefined ? [unknownField] : violationsOf(field, one);
    found.push(...within(pointerTo(name), violations));
  }
  return found;
}

const within = (place: string, violations: readonly Placed[]): Placed[] =>
  violations.map((each) => ({ ...each, place: place + (each.place ?? '') }));

export const required = violation('required', 'must be given');
export const unknownField = violation('unknown_field', 'must be left out: there is no such field');

const none: readonly Violation[] = [];

/** Returns the first violation of the rule of a field. */
export function ruleViolation(field: Field, value: JsonValue): Violation | undefined {
  return violationsOf(field, value)[0];
}

/** Whether `q` searches the values of a field. */
export const isSearched = (field: Field): boolean => kindOf(field).isSearched?.(field) ?? false;

/** Whether a value has the type of a field: it fits its rule, apart from its bounds. */
export function hasType(field: Field, value: unknown): boolean {
  return (value === null && field.nullable === true) || kindOf(field).hasType(value, field);
}

/** Returns the JSON Schema of a field's value, or of a merge patch for it. */
export function valueSchema(field: Field, isPatch = false): JsonObject {
  const kind = kindOf(field);
  const { type, enum: values, ...others } = kind.type(field);
  const { nullable, optional, readOnly, writeOnly, set } = field;
  const hints = hintsOf(field);
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
export function exampleOf(field: Field): Value {
  return field.example ?? kindOf(field).example(field);
}
