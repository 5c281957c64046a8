import { localAdministrator, notFound, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import { recordId, storedKey, type RecordId } from '../base/record-id.ts';
import type { Clock, Random } from '../base/system.ts';
import { uuid7 } from '../base/uuid.ts';
import { atElement, type Draft } from '../schema/validate.ts';
import type { CompleteInput, Shape, Value } from '../schema/field.ts';
import { looksSame } from '../schema/record.ts';
import type { Collection, StoredRecord, Transaction, Unstored } from '../store/store.ts';
import { addTimes } from './declaration.ts';
import { includes, findPermission } from './permissions.ts';
import { readIfAllowed } from './reader.ts';
import { makesTexts, type Declared, type Entry } from './registry.ts';
import { checkSize } from './size.ts';

/** A validated new entry and a change of an entry, as the pipeline makes them from a body. */
export type NewEntry = CompleteInput<Shape>;
export type EntryDraft = Draft<NewEntry>;

/**
 * Checks the revision of the record to change; `undefined` stands for a resource without a revision
 * yet. It runs inside the transaction, where no other write can intervene.
 *
 * A write is decided in this order: authorization (401, 403), 404, the owner (403), 428, 412, the
 * rules of fields (422), and what depends on other records.
 * @throws CairnError `precondition_required` if the installation requires a precondition and the
 *   request has none; `precondition_failed` if the request names another revision
 */
export type Precondition = (revision: number | undefined) => void;

export interface Target {
  readonly principal: Principal;
  readonly id: RecordId;
  readonly precondition: Precondition;
  readonly address?: string;
}

const unconditional: Precondition = () => undefined;

/** Returns the target of a command or program, which may change every record. */
export function localTarget(id: number | string): Target {
  return { principal: localAdministrator, id: recordId(id), precondition: unconditional };
}

/** @throws CairnError `not_found` without a record */
export function found<R extends StoredRecord>(record: R | undefined): R {
  if (record === undefined) throw notFound();
  return record;
}

export interface CollectionTools {
  readonly clock: Clock;
  readonly random: Random;
}

export class CollectionResource {
  readonly collection: Declared;
  readonly records: Collection<Entry>;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(collection: Declared, { clock, random }: CollectionTools) {
    this.collection = collection;
    this.records = collection.records;
    this.#clock = clock;
    this.#random = random;
  }

  /** @throws CairnError `validation_failed`, `not_unique`, and as `checkOwner` */
  create(tx: Transaction, principal: Principal, input: NewEntry): Entry {
    return this.insert(tx, principal, input, tx.of(this.records).nextId);
  }

  /** Creates the entry with this number, which is not in use. @throws CairnError as `create` */
  insert(tx: Transaction, principal: Principal, input: NewEntry, number: number): Entry {
    checkEntry(tx, principal, this.collection, input);
    this.collection.checkOwner(tx, principal);
    const now = this.#clock.now();
    const ownerId = principal.userId ?? 0;
    const records = tx.of(this.records);
    // An imported file may have the times.
    const timed = input['createdAt'] === undefined ? addTimes(this.collection, input, now) : input;
    if (this.collection.ids === undefined) return records.insert({ ownerId, ...timed }, number);
    const { id: given, ...fields } = timed;
    const id = given ?? (makesTexts(this.collection) ? uuid7(now, this.#random) : number);
    const key = storedKey(recordId(id), number);
    return records.insert({ ownerId, ...key, ...fields }, number);
  }

  /** Creates an entry for each element. @throws CairnError as `create` */
  createMany(tx: Transaction, principal: Principal, inputs: readonly NewEntry[]): Entry[] {
    return inputs.map((input, index) => atElement(index, () => this.create(tx, principal, input)));
  }

  /**
   * Replaces or patches a record. A change without effect is not written.
   * @throws CairnError in the order that `Precondition` documents
   */
  change(
    tx: Transaction,
    { principal, id, precondition }: Target,
    draft: EntryDraft,
  ): { readonly record: Entry } {
    const { fields } = this.collection;
    const before = this.#changeable(tx, principal, draft.kind, id);
    precondition(before.revision);
    const input = draft.against(before);
    if (looksSame(fields, before, input)) return { record: before };
    checkEntry(tx, principal, this.collection, input, before);
    const after = { ...this.undeclared(before), ...input };
    const timed = addTimes(this.collection, after, this.#clock.now(), before['createdAt']);
    return { record: tx.of(this.records).replace(before.id, timed) };
  }

  /** @throws CairnError in the order that `Precondition` documents */
  remove(tx: Transaction, { principal, id, precondition }: Target): void {
    const before = this.#changeable(tx, principal, 'remove', id);
    precondition(before.revision);
    const { references } = this.collection;
    if (references === undefined) tx.of(this.records).remove(before.id);
    else references.remove(tx, principal, this.collection, before, this.#clock.now());
  }

  /**
   * The members of a record that are not fields: its owner, and those that only an earlier
   * declaration, or another process's, has.
   */
  protected undeclared(before: Entry): Unstored<Entry> {
    const kept: { [name: string]: Value } = {};
    for (const name in before) {
      const value = before[name];
      if (value !== undefined && !Object.hasOwn(this.collection.fields, name)) kept[name] = value;
    }
    return { ...kept, ownerId: before.ownerId };
  }

  /**
   * Returns a record that the caller may change. An unreadable one is treated as absent.
   * @throws CairnError `not_found`, `not_owner`
   */
  #changeable(
    tx: Transaction,
    principal: Principal,
    operation: 'replace' | 'patch' | 'remove',
    id: RecordId,
  ): Entry {
    const entry = found(readIfAllowed(tx, this.collection, principal, id));
    if (includes(findPermission(this.collection.access, principal, operation), entry)) return entry;
    throw new CairnError('not_owner', 'Cannot change the record: it belongs to another user');
  }
}

/**
 * Checks what depends on other records.
 * @throws CairnError `validation_failed` for a missing record; `not_unique`
 */
export function checkEntry(
  tx: Transaction,
  principal: Principal,
  collection: Declared,
  input: NewEntry,
  before?: Entry,
): void {
  const { fields, ids, references, singular, unique, isBuiltIn, recordBytesMax } = collection;
  if (!isBuiltIn) checkSize(fields, input, recordBytesMax);
  references?.check(tx, principal, collection, input, before);
  const records = tx.of(collection.records);
  const taken: string[] = [];
  const { id: given } = input;
  if (ids && given !== undefined && records.withId(recordId(given)) !== undefined) taken.push('id');
  for (const [field, keyOf] of unique) {
    const key = keyOf(input);
    const holder = key === undefined ? undefined : records.find(field, key);
    if (holder !== undefined && holder.id !== before?.id) taken.push(field);
  }
  if (taken.length === 0) return;
  const issues = taken.map((field) => ({
    pointer: pointerTo(field),
    code: 'not_unique',
    detail: `must be unique: another ${singular} has this value`,
  }));
  const message = `Cannot write the ${singular}: a value is not unique`;
  throw new CairnError('not_unique', message, { issues });
}
