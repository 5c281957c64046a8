import { isJsonObject, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import {
  anyJson,
  type Field,
  type IdField,
  type JsonField,
  type LikeKind,
  type ObjectField,
  type ReferenceField,
  type Shape,
  type UrlField,
} from './field.ts';
import {
  addKinds,
  comparisons,
  makeExample,
  hasType,
  isSearched,
  isText,
  findKind,
  notFinite,
  number,
  required,
  textBy,
  texts,
  unknownField,
  valueSchema,
  findViolations,
  within,
  type Kind,
  type Placed,
} from './kinds.ts';
import {
  characters,
  characterViolation,
  lengthViolation,
  loneSurrogate,
  notA,
  tooLong,
  violation,
  type Violation,
} from './rules.ts';

/** The kinds that only declared collections have, loaded with the checks of declarations. */

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
    of === 'any'
      ? { anyOf: [{ type: 'string' }, { type: 'number' }] }
      : { type: of === 'text' ? 'string' : of },
  bounds: ({ of }) => (of === 'text' ? { minLength: 1, maxLength: idLengthMax } : {}),
  example: ({ of }) => (of === 'text' ? 'a1b2' : 1),
  operators: [...comparisons, 'contains', 'starts', 'ends'],
  operand: (text, { of }) => (of === 'integer' ? number.operand(text, { kind: of }) : text),
};
const idLengthMax = 128;
/** Texts that are another path below the collection, or that URLs resolve. */
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

const object: Kind<ObjectField> = {
  violation: (value) => (isJsonObject(value) ? undefined : notAn('object')),
  violationsWithin(value, { fields, additional }) {
    return isJsonObject(value) ? memberViolations(fields, additional === true, value) : [];
  },
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
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, makeExample(field)])),
  operators: [],
  operand: (text) => text,
  isSearched: ({ fields, additional = false }) =>
    additional || Object.values(fields).some(isSearched),
};
function memberViolations(fields: Shape, additional: boolean, value: JsonObject): Placed[] {
  const missing = Object.keys(fields).filter(
    (name) => !Object.hasOwn(value, name) && fields[name]?.optional !== true,
  );
  const found = missing.map((name): Placed => ({ ...required, place: pointerTo(name) }));
  for (const [name, one] of Object.entries(value)) {
    if (found.length > limits.issuesMax) break;
    const field = Object.hasOwn(fields, name) ? fields[name] : additional ? anyJson : undefined;
    const violations = field === undefined ? [unknownField] : findViolations(field, one);
    found.push(...within(pointerTo(name), violations));
  }
  return found;
}

const notAn = (type: string): Violation => violation('wrong_type', `must be an ${type}`);

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const json: Kind<JsonField> = {
  violation(value, { bytesMax = limits.jsonFieldBytesMax }) {
    const found = jsonViolation(value);
    // A field that may fill a record is checked against the bound of records.
    if (found !== undefined || bytesMax >= limits.recordBytesMax) return found;
    if (Buffer.byteLength(JSON.stringify(value)) <= bytesMax) return undefined;
    return violation('too_large', `must be at most ${bytesMax} bytes of JSON`);
  },
  hasType: (value) => value !== undefined,
  type: ({ like }) => (like === undefined ? {} : { 'x-like': like }),
  example: ({ like = 'text' }) => makeExample(likeFields[like]),
  operators: [...comparisons, 'contains', 'starts', 'ends', 'has'],
  operand: (text, { like }) =>
    like === undefined ? text : findKind(likeFields[like]).operand(text, likeFields[like]),
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

/** Returns why a value cannot be stored as JSON, and where. */
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
const forbiddenSurrogate = violation(loneSurrogate.code, `must not contain ${loneSurrogate.what}`);

addKinds({ reference, id, url, object, json });
