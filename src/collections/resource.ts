import { localAdministrator, notFound, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import { atElement, type Draft } from '../schema/validate.ts';
import type { CompleteInput, Shape, Value } from '../schema/field.ts';
import { looksSame } from '../schema/record.ts';
import type { Collection, StoredRecord, Transaction, Unstored } from '../store/store.ts';
import type { CollectionTools, Declared, Entry } from './declared.ts';
import { includes, findPermission } from './permissions.ts';
import { readIfAllowed } from './reader.ts';

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

export class CollectionResource {
  readonly collection: Declared;
  readonly records: Collection<Entry>;
  readonly #tools: CollectionTools;

  constructor(collection: Declared, tools: CollectionTools) {
    this.collection = collection;
    this.records = collection.records;
    this.#tools = tools;
  }

  /** @throws CairnError `validation_failed`, `not_unique`, and as `checkOwner` */
  create(tx: Transaction, principal: Principal, input: NewEntry): Entry {
    return this.insert(tx, principal, input, tx.of(this.records).nextId);
  }

  /** Creates the entry with this unused number. @throws CairnError as `create` */
  insert(tx: Transaction, principal: Principal, input: NewEntry, number: number): Entry {
    const { collection, records } = this;
    const { rules } = collection;
    rules?.check(tx, principal, collection, input);
    collection.checkOwner(tx, principal);
    const ownerId = principal.userId ?? 0;
    const added = rules?.toStored(collection, input, number, ownerId, this.#tools);
    return tx.of(records).insert(added ?? { ownerId, ...input }, number);
  }

  /** @throws CairnError as `create` */
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
    const { collection } = this;
    const { fields, rules } = collection;
    const before = this.#changeable(tx, principal, draft.kind, id);
    precondition(before.revision);
    const input = draft.against(before);
    if (looksSame(fields, before, input)) return { record: before };
    rules?.check(tx, principal, collection, input, before);
    const after = { ...this.undeclared(before), ...input };
    const now = this.#tools.clock.now();
    const timed = rules?.addTimes(collection, after, now, before['createdAt']) ?? after;
    return { record: tx.of(this.records).replace(before.id, timed) };
  }

  /** @throws CairnError in the order that `Precondition` documents */
  remove(tx: Transaction, { principal, id, precondition }: Target): void {
    const before = this.#changeable(tx, principal, 'remove', id);
    precondition(before.revision);
    const { references } = this.collection;
    if (references === undefined) tx.of(this.records).remove(before.id);
    else references.remove(tx, principal, this.collection, before, this.#tools.clock.now());
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
