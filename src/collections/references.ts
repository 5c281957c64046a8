import { hasAccess, type Principal } from '../auth/access.ts';
import { CairnError, invariant, type Issue } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { validationFailed } from '../schema/validate.ts';
import { referenceIn, type ReferenceField, type Shape, type Value } from '../schema/field.ts';
import { fieldValue, isSameValue } from '../schema/record.ts';
import type { Collection, StoredRecord, Transaction } from '../store/store.ts';
import type { CollectionDeclaration } from './declaration.ts';

/**
 * A record of a declared collection: its fields, and the id of the user who created it,
 * which is stored but never shown. `ownerId` is 0 if the creator was not authenticated.
 */
export interface Entry extends StoredRecord {
  readonly ownerId: number;
  readonly [field: string]: Value;
}

/** The records of a declared collection. */
export interface Entries {
  readonly declaration: CollectionDeclaration;
  readonly fields: Shape;
  readonly records: Collection<Entry>;
  /** Returns a changed record with the time of the change, if its collection has timestamps. */
  withTime(changed: Entry): Entry;
}

/** A field whose values are ids of records, in its own collection or in another one. */
interface Reference {
  readonly from: Entries;
  readonly name: string;
  readonly field: ReferenceField;
}

/** The references of a collection: those of its fields, and those to its records. */
interface References {
  readonly outgoing: readonly Reference[];
  readonly incoming: readonly Reference[];
}

/**
 * The group indexes of a collection for its references: the records that refer to a record
 * are found by its id.
 */
export function referenceIndexes(fields: Shape) {
  const names = referencesOf(fields).map(([name]) => name);
  return Object.fromEntries(names.map((name) => [name, (record: Entry) => idsIn(record, name)]));
}

/** The declared collections of an app, and the references between them. */
export class Relations {
  readonly #all = new Map<string, Entries>();
  readonly #references = new Map<string, References>();

  /** Adds a collection, before the first request. */
  add(entries: Entries): void {
    this.#all.set(entries.declaration.name, entries);
  }

  get(name: string): Entries | undefined {
    return this.#all.get(name);
  }

  /** The references of a collection. All collections have been added. */
  of({ declaration: { name } }: Entries): References {
    const known = this.#references.get(name);
    if (known !== undefined) return known;
    const all = [...this.#all.values()].flatMap((from) =>
      referencesOf(from.fields).map(([name, field]) => ({ from, name, field })),
    );
    const references = {
      outgoing: all.filter(({ from }) => from.declaration.name === name),
      incoming: all.filter(({ field }) => field.to === name),
    };
    this.#references.set(name, references);
    return references;
  }

  /**
   * Checks that each record exists to which a written record refers, and that the caller may
   * read it. References that do not change are not checked again.
   * @throws CairnError `validation_failed` with an issue `no_such_record` for each
   */
  check(
    tx: Transaction,
    principal: Principal,
    entries: Entries,
    input: object,
    before: object = {},
  ): void {
    const issues: Issue[] = [];
    for (const { name, field } of this.of(entries).outgoing) {
      const value = fieldValue(input, name);
      if (value === undefined || isSameValue(value, fieldValue(before, name))) continue;
      const target = this.get(field.to);
      const isReadable =
        target !== undefined && hasAccess(target.declaration.access.read, principal);
      for (const [index, id] of [value].flat().entries()) {
        if (isReadable && tx.of(target.records).get(Number(id)) !== undefined) continue;
        const pointer = pointerTo(name) + (typeof value === 'object' ? `/${index}` : '');
        const detail = `must be the id of a record of ${field.to} that you may read`;
        issues.push({ pointer, code: 'no_such_record', detail });
      }
    }
    if (issues.length > 0) throw validationFailed(issues);
  }

  /**
   * Removes a record, and does with those that refer to it what their fields declare. What
   * is removed or changed is collected first, so the order of references does not matter,
   * and they may be circular.
   * @throws CairnError `still_referenced`
   */
  remove(tx: Transaction, entries: Entries, record: Entry): void {
    const removal = new Removal(entries, record);
    for (const [from, { id }] of removal.removed) {
      for (const reference of this.of(from).incoming) {
        const { records } = reference.from;
        const referrers = tx.of(records).referring(reference.name, id);
        removal.count(referrers.countAtMost);
        for (const referrer of referrers) removal.add(reference, referrer, id);
      }
    }
    removal.write(tx);
  }
}

/** What goes along when a record is removed. */
class Removal {
  /** The removed records, each with its collection. It grows while it is read. */
  readonly removed: [Entries, Entry][] = [];
  readonly #removedKeys = new Set<string>();
  readonly #others: { reference: Reference; referrer: Entry; id: number }[] = [];
  #count = 0;

  constructor(entries: Entries, record: Entry) {
    this.#remove(entries, record);
  }

  /** Counts records that refer. @throws CairnError `still_referenced` if there are too many */
  count(more: number): void {
    this.#count += more;
    if (this.#count <= limits.referrersMax) return;
    const message = `Cannot remove the record: over ${limits.referrersMax} records depend on it`;
    throw new CairnError('still_referenced', `${message}; remove some of them first`);
  }

  /** Adds a record that refers to the removed record with this id. */
  add(reference: Reference, referrer: Entry, id: number): void {
    if (reference.field.onDelete === 'remove') this.#remove(reference.from, referrer);
    else this.#others.push({ reference, referrer, id });
  }

  /** Writes it all, the records that refer before those to which they refer. */
  write(tx: Transaction): void {
    const remaining = this.#others.filter(
      ({ reference, referrer }) => !this.#removedKeys.has(keyOf(reference.from, referrer)),
    );
    const refusing = remaining.filter(({ reference }) => reference.field.onDelete !== 'clear');
    const [first] = refusing;
    if (first !== undefined) {
      const { name } = first.reference.from.declaration;
      const count = refusing.filter(
        ({ reference }) => reference.from === first.reference.from,
      ).length;
      const refer = count === 1 ? '1 record refers' : `${count} records refer`;
      throw new CairnError(
        'still_referenced',
        `Cannot remove the record: ${refer} to it in ${name}`,
      );
    }
    const cleared = new Map<string, Entry>();
    for (const { reference, referrer, id } of remaining) {
      const { from, name } = reference;
      const key = keyOf(from, referrer);
      const before = cleared.get(key) ?? referrer;
      const after = without(before, from.fields, name, id);
      invariant(after !== undefined, 'a reference that is cleared is optional, or in a list');
      cleared.set(key, tx.of(from.records).replace(before.id, from.withTime(after)));
    }
    for (const [{ records }, { id }] of this.removed.toReversed()) tx.of(records).remove(id);
  }

  #remove(entries: Entries, record: Entry): void {
    const key = keyOf(entries, record);
    if (this.#removedKeys.has(key)) return;
    this.#removedKeys.add(key);
    this.removed.push([entries, record]);
  }
}

const keyOf = ({ declaration }: Entries, { id }: Entry): string => `${declaration.name}/${id}`;

export function referencesOf(fields: Shape): [name: string, field: ReferenceField][] {
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
