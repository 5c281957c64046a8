import { invariant } from '../base/errors.ts';
import {
  emailKey,
  referenceIn,
  type Field,
  type NumberField,
  type ReferenceField,
  type Shape,
  type Value,
} from '../schema/field.ts';
import { fieldValue, scalarValue } from '../schema/record.ts';
import { storedRecordParser } from '../schema/validate.ts';
import type { Collection, Store, StoredRecord, TableDefinition } from '../store/store.ts';
import { shapeTagOf, type CollectionDeclaration } from './declaration.ts';

/**
 * A record of a declared collection: its fields, and the id of the user who created it,
 * which is stored but never shown. `ownerId` is 0 if the creator was not authenticated.
 */
export interface Entry extends StoredRecord {
  readonly ownerId: number;
  readonly [field: string]: Value;
}

/**
 * A declared collection as it is served: what its operations, its routes, lists, the change feed
 * and the OpenAPI document go by.
 */
export interface Declared extends CollectionDeclaration {
  readonly records: Collection<Entry>;
  /** The fields whose values are unique, with the keys of their indexes. */
  readonly unique: readonly (readonly [field: string, keyOf: KeyOf])[];
  /** The references of its fields, and those to its records. */
  readonly outgoing: readonly Reference[];
  readonly incoming: readonly Reference[];
  /**
   * Whether callers can list their own records: records have owners, and lists need
   * credentials.
   */
  readonly hasOwners: boolean;
  /** Part of each entity tag, where the declaration decides what a record looks like. */
  readonly shapeTag: string;
}

/** Returns the key of a record in a unique index; `undefined` where it takes no part. */
export type KeyOf = (record: object) => string | undefined;

/** A field whose values are ids of records, in its own collection or in another one. */
export interface Reference {
  readonly from: Declared;
  readonly name: string;
  readonly field: ReferenceField;
  readonly to: Declared;
}

/** The declared collections of an app, made of all declarations at once. */
export class Registry {
  readonly all: readonly Declared[];
  readonly #byName: ReadonlyMap<string, Declared>;

  /** Registers their tables with a store that has not started. */
  constructor(store: Store, declarations: readonly CollectionDeclaration[]) {
    const all = declarations.map((declaration) => {
      const { fields, access, isBuiltIn } = declaration;
      const unique = uniqueFields(fields);
      const outgoing: Reference[] = [];
      const incoming: Reference[] = [];
      return {
        ...declaration,
        records: store.collection(tableOf(declaration, unique)),
        unique,
        outgoing,
        incoming,
        hasOwners: access.list !== 'public',
        shapeTag: isBuiltIn ? '' : shapeTagOf(fields),
      };
    });
    const byName = new Map(all.map((each) => [each.name, each]));
    for (const from of all) {
      for (const [name, field] of referencesOf(from.fields)) {
        const to = byName.get(field.to);
        invariant(to !== undefined, `${field.to} is declared, to which ${name} refers`);
        const reference = { from, name, field, to };
        from.outgoing.push(reference);
        to.incoming.push(reference);
      }
    }
    this.all = all;
    this.#byName = byName;
  }

  get(name: string): Declared | undefined {
    return this.#byName.get(name);
  }
}

/** Returns the table of a declared collection. */
function tableOf(
  { name, fields }: CollectionDeclaration,
  unique: Declared['unique'],
): TableDefinition<Entry> {
  const stored: Shape & { readonly ownerId: NumberField } = {
    ...fields,
    ownerId: { kind: 'integer', readOnly: true },
  };
  const references = referencesOf(fields);
  return {
    name,
    parse: storedRecordParser(stored, ({ ownerId }) => Number.isSafeInteger(ownerId)),
    unique: Object.fromEntries(unique),
    groups: Object.fromEntries(
      references.map(([field]) => [field, (entry) => idsIn(entry, field)]),
    ),
    references: Object.fromEntries(references.map(([field, { to }]) => [field, to])),
    without: (entry, field, key) => without(entry, fields, field, key),
  };
}

function referencesOf(fields: Shape): [name: string, field: ReferenceField][] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const reference = referenceIn(field);
    return reference === undefined ? [] : [[name, reference]];
  });
}

/**
 * Returns a record as it is stored without a value; `undefined` where the field is required, and
 * is no list.
 */
export function without(
  record: Entry,
  fields: Shape,
  name: string,
  value: Value,
): Entry | undefined {
  const values = fieldValue(record, name);
  if (typeof values === 'object')
    return { ...record, [name]: values.filter((each) => each !== value) };
  if (fields[name]?.optional !== true) return undefined;
  const changed = { ...record };
  Reflect.deleteProperty(changed, name);
  return changed;
}

export function idsIn(record: object, name: string): number | number[] | undefined {
  const value = fieldValue(record, name);
  if (typeof value === 'object') return value.map(Number);
  return typeof value === 'number' ? value : undefined;
}

function uniqueFields(fields: Shape): Declared['unique'] {
  return Object.entries(fields).flatMap(([field, one]) =>
    'unique' in one && one.unique ? [[field, uniqueKey(field, one)]] : [],
  );
}

/** Returns the key of a field in its unique index. An absent value is no duplicate. */
function uniqueKey(name: string, { kind }: Field): KeyOf {
  return (record) => {
    const value = scalarValue(record, name);
    if (value === undefined) return undefined;
    return kind === 'email' ? emailKey(String(value)) : String(value);
  };
}
