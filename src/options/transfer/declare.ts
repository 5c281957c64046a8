/**
 * Declarations that fit a file. They accept everything that a front end written for json-server
 * sends: every field is any JSON, and additional members may come. Strict ones have the rules that
 * all values satisfy. Notes describe changes to the file's data; an import makes the same ones.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { referenceNames } from '../../collections/nouns.ts';
import { lengthMax } from '../../schema/declaration.ts';
import type { Field } from '../../schema/field.ts';
import { ruleViolation } from '../../schema/kinds.ts';
import type { Member } from './file.ts';

export interface Named {
  readonly name: string;
  readonly given: string;
  readonly value: JsonValue;
}

/**
 * Returns the members with names that collections can have: other characters become `_`, and a name
 * that is taken, even in another case, gets one at its end. Usable names are assigned first,
 * because an import would confuse members of the same name.
 */
export function named(members: readonly Member[], taken: readonly string[]): readonly Named[] {
  const used = new Set(taken.map((name) => name.toLowerCase()));
  const kept = new Set<string>();
  for (const [given] of members) {
    if (usable(given) !== given || used.has(given.toLowerCase())) continue;
    used.add(given.toLowerCase());
    kept.add(given);
  }
  return members.map(([given, value]) => {
    if (kept.has(given)) return { name: given, given, value };
    let name = usable(given);
    for (let count = 1; used.has(name.toLowerCase()); count += 1)
      name = usable(given).slice(0, nameLengthMax - count) + '_'.repeat(count);
    used.add(name.toLowerCase());
    return { name, given, value };
  });
}
const nameLengthMax = 63;
const usable = (given: string): string =>
  given
    .replaceAll(/[^\w-]/gu, '_')
    .replace(/^(?=-|$)/, '_')
    .slice(0, nameLengthMax);

export const areRecords = (value: JsonValue): value is readonly JsonObject[] =>
  Array.isArray(value) && value.every((one: JsonValue) => isJsonObject(one));

function refuseId(id: JsonValue | undefined, used: ReadonlySet<string>): string | undefined {
  if (id === undefined || id === null) return 'has no id';
  if (ruleViolation({ kind: 'id', of: 'any' }, id) !== undefined)
    return 'has an id that no path can name';
  return used.has(String(id)) ? 'has the id of another record' : undefined;
}

/**
 * Removes ids that records cannot have, and counts the reasons. Such records get others when they
 * are stored.
 */
export function withUsableIds(records: readonly JsonObject[]): {
  readonly records: readonly JsonObject[];
  readonly changed: ReadonlyMap<string, number>;
} {
  const used = new Set<string>();
  const changed = new Map<string, number>();
  return {
    changed,
    records: records.map((record) => {
      const id = Object.hasOwn(record, 'id') ? record['id'] : undefined;
      const refusal = refuseId(id, used);
      if (refusal === undefined) {
        used.add(String(id));
        return record;
      }
      changed.set(refusal, (changed.get(refusal) ?? 0) + 1);
      const { id: _, ...others } = record;
      return others;
    }),
  };
}

export function describeNewIds(name: string, changed: ReadonlyMap<string, number>): string[] {
  return Array.from(changed, ([refusal, count]) =>
    count === 1
      ? `${name}: 1 record ${refusal}, and gets another`
      : `${name}: ${count.toLocaleString('en')} records ${refusal.replace('has', 'have')}, and get others`,
  );
}

export interface MadeDeclaration {
  readonly declaration: string;
  readonly notes: readonly string[];
}

/** `taken`: names that the members cannot have. */
export function declareMembers(
  members: readonly Member[],
  taken: readonly string[],
  isStrict: boolean,
): MadeDeclaration {
  const notes: string[] = [];
  const all = named(members, taken);
  const collections = all.map(({ name, given, value }): JsonObject => {
    if (name !== given) notes.push(`${JSON.stringify(given)} is called ${name}`);
    const access = (what: 'single' | 'many') => (isStrict ? {} : { access: open(what) });
    if (!areRecords(value)) return { name, single: true, ...access('single'), value: anyValue };
    const { records, changed } = withUsableIds(value);
    notes.push(...describeNewIds(name, changed));
    const names = namesIn(records);
    const declared = names.filter((each) => isPlain.test(each)).slice(0, fieldsMax);
    const fields = declared.map((field) => {
      const values = listValues(records, field);
      const isOptional = !isStrict || values.length < records.length;
      const rule = isStrict ? guessField(field, values, all) : anyLike(values);
      return [field, { ...rule, ...(isOptional && { optional: true }) }];
    });
    const hasMore = !isStrict || declared.length < names.length;
    const isMade = isStrict && records.every(({ id = 1 }) => fits(madeId, id));
    return {
      name,
      ...(!isMade && { id: { kind: 'any' } }),
      ...(hasMore && { additional: true }),
      ...access('many'),
      fields: Object.fromEntries(fields),
    };
  });
  const declaration = { items: false, ...(!isStrict && { users: false }), collections };
  return { declaration: inLines(declaration), notes };
}

/** Writes a declaration with each field on one line, which is easier to read and to edit. */
const inLines = (declaration: object): string =>
  `${JSON.stringify(declaration, null, 2).replaceAll(fieldInLines, onOneLine)}\n`;
const fieldInLines = /^ {8}".*\{\n(?: {9,}.*\n)* {8}\}/gm;
const onOneLine = (field: string): string => field.replaceAll(/\n */g, ' ');

const anyValue = { kind: 'json', bytesMax: limits.recordBytesMax } as const;
const madeId = { kind: 'integer', min: 1 } as const;

function open(what: 'single' | 'many'): JsonObject {
  const operations = ['list', 'create', 'read', 'replace', 'patch', 'remove'];
  const all = what === 'many' ? operations : ['read', 'replace', 'patch'];
  return Object.fromEntries(all.map((operation) => [operation, 'public']));
}

function namesIn(records: readonly JsonObject[]): string[] {
  const names = new Set<string>();
  for (const record of records) for (const name in record) names.add(name);
  names.delete('id');
  return [...names];
}
/** Other names are additional members, and rarely used in queries. */
const isPlain = /^(?!(?:revision|ownerId)$)[A-Za-z][A-Za-z0-9_]{0,62}$/;
/** Further members are additional: nobody reads such a long declaration. */
const fieldsMax = 200;

/** Guesses for a field's kind, narrowest first. */
const guesses: readonly Field[] = [
  { kind: 'boolean' },
  { kind: 'timestamp' },
  { kind: 'integer' },
  { kind: 'number' },
  { kind: 'email' },
  { kind: 'url' },
  { kind: 'text' },
  { kind: 'text', multiline: true, max: lengthMax },
];

const fits = (field: Field, value: JsonValue): boolean => ruleViolation(field, value) === undefined;

const listValues = (records: readonly JsonObject[], name: string): readonly JsonValue[] =>
  records
    .map((record) => (Object.hasOwn(record, name) ? (record[name] ?? null) : null))
    .filter((value) => value !== null);

const guessKind = (values: readonly JsonValue[]): Field | undefined =>
  guesses.find((guess) => values.length > 0 && values.every((value) => fits(guess, value)));

const guessField = (name: string, values: readonly JsonValue[], all: readonly Named[]): object =>
  guessReference(name, values, all) ?? guessKind(values) ?? anyValue;

/** Any JSON, with a hint about the common type of the values. */
function anyLike(values: readonly JsonValue[]): object {
  const areTexts = values.length > 0 && values.every((value) => typeof value === 'string');
  const { kind = areTexts ? 'text' : undefined } = guessKind(values) ?? {};
  const like = kind === 'integer' ? 'number' : kind;
  return { ...anyValue, ...(like !== undefined && { like }) };
}

/** A field such as `postId` refers to `posts` if all its values are ids of `posts`. */
function guessReference(
  field: string,
  values: readonly JsonValue[],
  all: readonly Named[],
): Field | undefined {
  const to = all.find(({ name }) => referenceNames(name).includes(field));
  if (to === undefined || !areRecords(to.value)) return undefined;
  const ids = new Set(to.value.map(({ id }) => id));
  return values.every((value) => ids.has(value)) ? { kind: 'reference', to: to.name } : undefined;
}
