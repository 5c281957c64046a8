import { invalidToken } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { idField, type NumberField, type Shape } from '../schema/field.ts';
import { storedRecordParser } from '../schema/stored.ts';
import type { Collection, Store, StoredRecord } from '../store/store.ts';
import type { CollectionDeclaration } from './declaration.ts';
import type {
  Declared,
  DescribedFields,
  Embeddable,
  Entry,
  Reference,
  ReferenceRules,
  Registry,
  TableRules,
  ReferenceTarget,
} from './declared.ts';

/**
 * Returns the users as a target of references, the same for all callers: with the name, for fields
 * that show it.
 */
export const targetUsers = (records: Collection<StoredRecord>): ReferenceTarget => ({
  name: 'users',
  singular: 'user',
  isUsers: true,
  records,
  fields: { id: idField, name: { kind: 'text' } },
  access: { list: 'optional', read: 'optional' },
  shapeTag: '',
  incoming: [],
});

export const withOwner = (fields: Shape): Shape & { readonly ownerId: NumberField } => ({
  ...fields,
  ownerId: { kind: 'integer', readOnly: true },
});
export const isOwned = ({ ownerId }: { readonly ownerId: number }): boolean =>
  Number.isSafeInteger(ownerId);

/** Derives properties from a declaration's fields. `countsOwners`: owners have a limit. */
type Describe = (declaration: CollectionDeclaration, countsOwners: boolean) => DescribedFields;

/** Describes `items`, whose records are stored as shown. */
const describeItems: Describe = ({ fields }, countsOwners) => ({
  ids: undefined,
  shapeTag: '',
  table: {
    parse: storedRecordParser(withOwner(fields), isOwned),
    groups: countsOwners ? { ownerId: ({ ownerId }) => ownerId } : {},
  },
});
let describeDeclared: Describe | undefined;

/** Adds the description of declared collections, loaded with the checks of declarations. */
export function addDescription(describe: Describe): void {
  describeDeclared = describe;
}

interface RegistryOptions {
  readonly store: Store;
  readonly declarations: readonly CollectionDeclaration[];
  /** Absent on a server without users. */
  readonly users?: ReferenceTarget | undefined;
  readonly references?: ReferenceRules | undefined;
  /** The most records that a caller may own. If absent, unlimited. */
  readonly recordsPerOwner?: number | undefined;
  readonly rules?: TableRules | undefined;
}

/** Registers the tables of all declarations with a store that has not started. */
export function makeRegistry(options: RegistryOptions): Registry {
  const { store, declarations, users, references, recordsPerOwner } = options;
  const { groups = {}, recordBytesMax = limits.recordBytesMax } = options.rules ?? {};
  const tables: Collection<Entry>[] = [];
  const checkOwner = createOwnerCheck(tables, options);
  const nouns = new Set<string>();
  const all = declarations.map((declaration) => {
    const { name, access, isBuiltIn } = declaration;
    let noun = capitalized(name);
    while (nouns.has(noun)) noun += '_';
    nouns.add(noun);
    const describe = isBuiltIn ? describeItems : describeDeclared;
    invariant(describe !== undefined, 'declared collections are described by what declares them');
    const { table, ...described } = describe(declaration, recordsPerOwner !== undefined);
    const records = store.collection({ ...table, name, groups: { ...table.groups, ...groups } });
    tables.push(records);
    return {
      ...declaration,
      ...described,
      singular: declaration.singular ?? name,
      records,
      recordBytesMax,
      noun,
      outgoing: new Array<Reference>(),
      incoming: new Array<Reference>(),
      references,
      embeddables: new Array<Embeddable>(),
      hasOwners: access.list !== 'public',
      checkOwner,
    };
  });
  const registry = new Map(all.map((each) => [each.name, each]));
  references?.link(registry, users);
  return registry;
}

/** Returns a check that a caller was not removed, and may own one more record in these tables. */
function createOwnerCheck(
  tables: readonly Collection<Entry>[],
  { users, recordsPerOwner }: RegistryOptions,
): Declared['checkOwner'] {
  return (tx, { userId: ownerId = 0, role }) => {
    const others = users && tx.of(users.records);
    // User ids are never reused, but the token of a removed user lives on for a while.
    const wasGiven = others !== undefined && ownerId > 0 && ownerId < others.nextId;
    if (wasGiven && others.get(ownerId) === undefined) throw invalidToken();
    if (recordsPerOwner === undefined || role === 'admin') return;
    let owned = 0;
    for (const table of tables) owned += tx.of(table).referring('ownerId', ownerId).countAtMost;
    if (owned < recordsPerOwner) return;
    const message = `Cannot write: you own ${owned} records, and may own ${recordsPerOwner}`;
    throw new CairnError('too_many_records', `${message}: remove some`);
  };
}

/** `items` → `Items`, `spare-parts` → `SpareParts`. */
export function capitalized(name: string): string {
  return name.replaceAll(/(?:^|-)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
