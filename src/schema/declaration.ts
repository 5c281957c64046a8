import { isJsonObject, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { didYouMean } from '../base/likeness.ts';
import { anyJson, colorNames, likeKinds, type Field, type Shape } from './field.ts';
import { makeExample, kindNamed, ruleViolation, findViolations } from './kinds.ts';
import './further-kinds.ts';
import { hasSetters } from './setters.ts';

/**
 * Checks declarations from a file, or from a program that may be plain JavaScript. A declaration is
 * a value like any other: its members have kinds, whose rules find all mistakes at once. Only rules
 * about several members are checked by hand.
 */

/** A mistake: a JSON Pointer to its place, and a phrase that follows it. */
export type Mistake = readonly [pointer: string, problem: string];

export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns a declaration as JSON, with null for what JSON cannot write. Absent members may be
 * undefined.
 */
export function asJson(value: unknown): JsonValue {
  // JSON would have null for these numbers.
  const isWrong = (one: unknown) => typeof one === 'number' && !Number.isFinite(one);
  try {
    return JSON.parse(
      JSON.stringify(value, (_, one: unknown) => (isWrong(one) ? String(one) : one)) ?? 'null',
    );
  } catch {
    return null;
  }
}

export const lengthMax = 1_000_000;

export const flag = { kind: 'boolean', optional: true } as const satisfies Field;
export const word = { kind: 'text', min: 1, max: 200, optional: true } as const satisfies Field;
/** Any value, to be checked by hand. */
export const anything = { ...anyJson, optional: true, nullable: true } as const satisfies Field;
const length = { kind: 'integer', min: 0, max: lengthMax, optional: true } as const;
const number = { kind: 'number', optional: true } as const;
export const oneOf = (...values: string[]): Field => ({ kind: 'choice', values, optional: true });
const words = (max: number): Field => ({
  kind: 'list',
  of: { kind: 'text', min: 1, max },
  max: 1000,
});

/** The members of each kind's declaration. `undefined` if the kind cannot be declared. */
const ownMembers: { readonly [kind in Field['kind']]: Shape | undefined } = {
  text: { min: length, max: length, multiline: flag },
  integer: { min: number, max: number },
  number: { min: number, max: number },
  boolean: {},
  choice: { values: words(200) },
  email: {},
  timestamp: {},
  password: undefined,
  reference: {
    to: { ...word, optional: false },
    onDelete: oneOf('refuse', 'remove', 'clear'),
    show: oneOf('name'),
  },
  id: undefined,
  url: {},
  list: { of: anything, max: length },
  object: { fields: anything, additional: flag },
  json: { bytesMax: { ...length, max: limits.recordBytesMax }, like: oneOf(...likeKinds) },
};

/** The members of a declaration in a list, in an object and in a record. */
const inList: Shape = { kind: anything, nullable: flag };
const inObject: Shape = {
  ...inList,
  optional: flag,
  description: { ...word, max: 1000 },
  set: { ...words(40), optional: true },
  label: word,
  format: anything,
  colors: { kind: 'object', fields: {}, additional: true, optional: true },
};
const inRecord: Shape = { ...inObject, default: anything, example: anything, renamedFrom: word };

/** Words of JSON Schema and of other servers, with Cairn's word for the same thing. */
const foreign = new Map(
  Object.entries({
    string: 'text',
    bool: 'boolean',
    int: 'integer',
    float: 'number',
    double: 'number',
    date: 'timestamp',
    datetime: 'timestamp',
    'date-time': 'timestamp',
    enum: 'choice',
    array: 'list',
    relation: 'reference',
    uri: 'url',
    any: 'json',
    type: '"kind"',
    required: 'nothing: a field is required unless it is "optional"',
    items: '"of"',
    properties: '"fields"',
    minimum: '"min"',
    maximum: '"max"',
    minLength: '"min"',
    maxLength: '"max"',
    additionalProperties: '"additional"',
    write: '"create", "replace" and "patch"',
    update: '"replace" and "patch"',
    delete: '"remove"',
  }),
);

const meant = (written: string, known: readonly string[]): string =>
  foreign.has(written) ? `: write ${foreign.get(written)}` : didYouMean(written, known);

/** Finds mistakes of an object that has exactly these members. */
export function mistakesIn(shape: Shape, value: JsonValue | undefined, at: string): Mistake[] {
  if (!isJsonObject(value)) return [[at, 'must be an object']];
  return findViolations({ kind: 'object', fields: shape }, value).map(
    ({ code, detail, place = '' }) => {
      if (code !== 'unknown_field') return [at + place, detail];
      const name = place.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
      const known = Object.keys(shape);
      const hint = meant(name, known) || `; the members are ${known.join(', ')}`;
      return [at + place, `is not a known member${hint}`];
    },
  );
}

/** Finds mistakes of a field whose values callers set and see. */
export const fieldMistakes = (value: JsonValue | undefined, at: string): Mistake[] =>
  findMistakes(value, at, inRecord);

function findMistakes(value: JsonValue | undefined, at: string, common: Shape): Mistake[] {
  if (!isJsonObject(value)) return [[at, 'must be an object with a "kind"']];
  const { kind } = value;
  const rows = Object.entries(ownMembers).filter(
    ([name, row]) => row !== undefined && !(common === inObject && name === 'reference'),
  );
  const [, own] = rows.find(([name]) => name === kind) ?? [];
  if (own === undefined) {
    const known = rows.map(([name]) => name);
    const not = kind === undefined ? '' : `, not ${JSON.stringify(kind)}`;
    const hint = foreign.get(String(kind ?? value['type']));
    const advice = hint ? `: write "${hint}"` : didYouMean(String(kind), known);
    return [[`${at}/kind`, `must be one of ${known.join(', ')}${not}${advice}`]];
  }
  const canBeUnique = common === inRecord && kindNamed(String(kind))?.isUnique === true;
  const unique = canBeUnique ? { unique: flag } : {};
  const mistakes = mistakesIn({ ...common, ...own, ...unique }, value, at);
  const { of, fields, format } = value;
  if (kind === 'list') mistakes.push(...findMistakes(of, `${at}/of`, inList));
  if (kind === 'object') mistakes.push(...nestedMistakes(fields, `${at}/fields`));
  for (const member of ['values', 'set'])
    if (Array.isArray(value[member]) && value[member].length === 0)
      mistakes.push([`${at}/${member}`, 'must have at least one value']);
  if (format !== undefined) mistakes.push(...formatMistakes(value, `${at}/format`));
  mistakes.push(...colorMistakes(value, `${at}/colors`));
  if (mistakes.length > 0 || common !== inRecord) return mistakes;
  // The members have been checked against the field's kind.
  const field = value as unknown as Field;
  return contradictionsIn(field).map(([pointer, problem]) => [at + pointer, problem]);
}

/** Finds mistakes of an object's fields, which cannot refer to records or have a default. */
function nestedMistakes(fields: JsonValue | undefined, at: string): Mistake[] {
  if (!isJsonObject(fields)) return [[at, 'must be an object that names the fields']];
  return Object.entries(fields).flatMap(([name, field]): Mistake[] => {
    const place = at + pointerTo(name);
    return isFieldName.test(name) ? findMistakes(field, place, inObject) : [[place, nameRule]];
  });
}

/** Matches field names. `__proto__` is excluded because assigning it does not create a member. */
export const isFieldName = /^(?!__proto__$)[^\p{Cc}\p{Cs}\u2028\u2029.]{1,64}$/u;
export const nameRule = 'needs a name of 1 to 64 characters without control characters and dots';

function formatMistakes({ kind, like, format }: JsonObject, at: string): Mistake[] {
  const shown = kind === 'json' ? like : kind;
  const isMoney =
    isJsonObject(format) &&
    Object.keys(format).join() === 'money' &&
    /^[A-Z]{3}$/.test(String(format['money']));
  if (format !== 'image' && format !== 'percent' && !isMoney)
    return [[at, 'must be "image", "percent" or a currency, such as {"money": "EUR"}']];
  const suits = format === 'image' ? ['text', 'url'] : ['number', 'integer'];
  if (suits.includes(String(shown))) return [];
  return [[at, `must be left out: it is for the kinds ${suits.join(' and ')}`]];
}

function colorMistakes({ values, colors }: JsonObject, at: string): Mistake[] {
  return Object.entries(isJsonObject(colors) ? colors : {}).flatMap(([value, color]): Mistake[] => {
    const place = at + pointerTo(value);
    if (!Array.isArray(values) || !values.includes(value))
      return [[place, 'must be one of the values of a choice']];
    const isKnown = colorNames.some((name) => name === color);
    return isKnown ? [] : [[place, `must be one of ${colorNames.join(', ')}`]];
  });
}

const hasSettersWithin = (field: Field): boolean =>
  field.kind === 'list' ? hasSettersWithin(field.of) : hasSetters({ field });

/**
 * True if a reference is nested deeper in a field than an element of a list, where it could not be
 * maintained.
 */
function refersWithin(field: Field, depth = 0): boolean {
  if (field.kind === 'reference') return depth > 1;
  if (field.kind === 'list') return refersWithin(field.of, depth + 1);
  return (
    field.kind === 'object' &&
    Object.values(field.fields).some((one) => refersWithin(one, depth + 2))
  );
}

/** Finds contradictions between a field's default or example and its rule. */
function contradictionsIn(field: Field): Mistake[] {
  const { example, default: fallback, ...rule } = field;
  if (ruleViolation(field, makeExample(rule)) !== undefined)
    return [['', 'has bounds that no value can satisfy']];
  if (field.kind === 'list' && hasSettersWithin(field.of))
    return [['', 'must not have "set" within a list: declare it for the list']];
  if (refersWithin(field))
    return [
      ['', 'must not have references within: declare a field of this kind, or a list of them'],
    ];
  if (field.optional && fallback !== undefined)
    return [['/default', 'must be left out if the field is optional']];
  if (field.kind === 'reference' && fallback !== undefined)
    return [['/default', 'must be left out: no record needs to have this id']];
  if (field.kind === 'reference' && field.onDelete === 'clear' && !field.optional)
    return [['/onDelete', 'must not be clear unless the field is optional']];
  if ('unique' in field && field.unique && fallback !== undefined)
    return [['/default', 'must be left out if the field is unique']];
  return Object.entries({ example, default: fallback }).flatMap(([member, value]): Mistake[] => {
    const violation = value === undefined ? undefined : ruleViolation(field, value);
    return violation === undefined ? [] : [[pointerTo(member), violation.detail]];
  });
}
