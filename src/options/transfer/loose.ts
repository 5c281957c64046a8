/**
 * Declarations that refuse nothing which a front end written for json-server sends: every field is
 * any JSON, and others may come. Where a file cannot be taken as it is, a note says what is changed;
 * an import changes the same.
 */
import {
  isJsonObject,
  isScalar,
  type JsonObject,
  type JsonValue,
  type Scalar,
} from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { likeKinds, type Field, type LikeKind } from '../../schema/field.ts';
import { ruleViolation } from '../../schema/kinds.ts';
import type { Member } from './file.ts';

/** A member of a file with the name that it gets here. */
export interface Named {
  readonly name: string;
  readonly given: string;
  readonly value: JsonValue;
}

/**
 * Returns the members with names that collections can have: other characters become `_`, and a
 * name that is taken, also in another case, gets one at its end.
 */
export function named(members: readonly Member[], taken: readonly string[]): readonly Named[] {
  const used = new Set(taken.map((name) => name.toLowerCase()));
  return members.map(([given, value]) => {
    let name = given
      .replaceAll(/[^\w-]/gu, '_')
      .replace(/^(?=-|$)/, '_')
      .slice(0, nameLengthMax);
    while (used.has(name.toLowerCase())) name = `${name.slice(0, nameLengthMax - 1)}_`;
    used.add(name.toLowerCase());
    return { name, given, value };
  });
}
const nameLengthMax = 63;

/** Whether a member of a file is a collection, and not one value. */
export const areRecords = (value: JsonValue): value is readonly JsonObject[] =>
  Array.isArray(value) && value.every((one: JsonValue) => isJsonObject(one));

/** Returns why a value cannot be the id of a record; `undefined` if it can. */
function refusalOf(id: JsonValue | undefined, used: ReadonlySet<string>): string | undefined {
  if (id === undefined || id === null) return 'has no id';
  if (ruleViolation({ kind: 'id', of: 'any' }, id) !== undefined)
    return 'has an id that no path can name';
  return used.has(String(id)) ? 'has the id of another record' : undefined;
}

/**
 * Returns the records without the ids that they cannot have, and what was wrong with these. They
 * get others when they are stored.
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
      const refusal = refusalOf(id, used);
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

/** Returns a line for each cause why records get other ids. */
export function notesOf(name: string, changed: ReadonlyMap<string, number>): string[] {
  return Array.from(changed, ([refusal, count]) =>
    count === 1
      ? `${name}: 1 record ${refusal}, and gets another`
      : `${name}: ${count.toLocaleString('en')} records ${refusal.replace('has', 'have')}, and get others`,
  );
}

/** What a file is declared as. */
export interface LooseDeclaration {
  /** For `--collections`. */
  readonly declaration: JsonObject;
  /** What is changed, a line each. */
  readonly notes: readonly string[];
}

/** Declares the members of a file. `taken`: names that they cannot have. */
export function declareLoosely(
  members: readonly Member[],
  taken: readonly string[],
): LooseDeclaration {
  const notes: string[] = [];
  const collections = named(members, taken).map(({ name, given, value }): JsonObject => {
    if (name !== given) notes.push(`${JSON.stringify(given)} is called ${name}`);
    if (!areRecords(value)) return { name, single: true, access: open('single'), value: anyValue };
    const { records, changed } = withUsableIds(value);
    notes.push(...notesOf(name, changed));
    return {
      name,
      id: { kind: 'any' },
      additional: true,
      access: open('many'),
      fields: fieldsOf(records),
    };
  });
  return { declaration: { items: false, users: false, collections }, notes };
}

const anyValue: JsonObject = { kind: 'json', bytesMax: limits.recordBytesMax };

/** Everyone may do everything. */
function open(what: 'single' | 'many'): JsonObject {
  const operations = ['list', 'create', 'read', 'replace', 'patch', 'remove'];
  const all = what === 'many' ? operations : ['read', 'replace', 'patch'];
  return Object.fromEntries(all.map((operation) => [operation, 'public']));
}

/** Declares the members that filters can name; the others are additional. */
function fieldsOf(records: readonly JsonObject[]): JsonObject {
  const columns = new Map<string, LikeKind | 'mixed' | undefined>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      if (!isPlain.test(name) || reserved.has(name)) continue;
      const known = columns.get(name);
      if (known === undefined && columns.size >= fieldsMax && !columns.has(name)) continue;
      const like = value === null ? known : isScalar(value) ? likeOf(value, known) : 'mixed';
      columns.set(name, known === 'mixed' ? known : like);
    }
  }
  return Object.fromEntries(
    Array.from(columns, ([name, like]) => {
      const kind = like === undefined || like === 'mixed' ? {} : { like };
      return [name, { ...anyValue, ...kind, optional: true }];
    }),
  );
}
/** Other names are additional, and seldom in a query. */
const isPlain = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const reserved: ReadonlySet<string> = new Set(['id', 'revision', 'ownerId']);
/** Beyond these, members are additional: nobody reads so long a declaration. */
const fieldsMax = 200;

/** Returns what values are like, the narrowest first, where those before were like `known`. */
function likeOf(value: Scalar, known: LikeKind | 'mixed' | undefined): LikeKind | 'mixed' {
  const fits = (like: LikeKind): boolean => {
    const field: Field =
      like === 'text' ? { kind: like, max: Infinity, multiline: true } : { kind: like };
    return (
      typeof value === typesOf[like] &&
      (like === 'text' || ruleViolation(field, value) === undefined)
    );
  };
  const narrow = narrowFirst.find(fits) ?? 'mixed';
  if (known === undefined || known === narrow) return narrow;
  const areTexts = known !== 'mixed' && narrow !== 'mixed' && typesOf[known] === 'string';
  return areTexts && typesOf[narrow] === 'string' ? 'text' : 'mixed';
}
const typesOf: { readonly [like in LikeKind]: string } = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  timestamp: 'string',
  email: 'string',
  url: 'string',
};
const narrowFirst = likeKinds.toSorted((a, b) => Number(a === 'text') - Number(b === 'text'));
