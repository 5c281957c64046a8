import { notFound, requireOwner, type Access, type Principal } from '../auth/access.ts';
import { invariant } from '../base/errors.ts';
import type { JsonObject, Scalar } from '../base/json.ts';
import type { Clock } from '../base/system.ts';
import type { Draft } from '../schema/body.ts';
import { atElement, storedRecordCheck, type Valid } from '../schema/check.ts';
import type { Input, Shape } from '../schema/field.ts';
import { looksSame } from '../schema/representation.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';
import { isDeclared, type CollectionDeclaration } from './collection.ts';
import type { HookedWrites } from './hooks.ts';
import type { Created, IdempotencyKeys, Origin } from './idempotency.ts';

/** A record of a declared collection: its fields, and the user who created it (stored, never shown; 0 is nobody). */
export interface Entry extends StoredRecord {
  readonly ownerId: number;
  readonly [field: string]: Scalar;
}

/** An entry to be created, and a change of one: the pipeline makes them of a body. */
export type NewEntry = Valid<Input<Shape>>;
export type EntryDraft = Draft<Shape>;

/**
 * What a caller requires of the record that a write changes. It is decided inside the transaction, where no other write
 * can come between. The order of the checks is: authorization, 404, 428, 422, 412.
 */
export interface Precondition {
  /** @throws CairnError `precondition_required` where the installation demands a precondition and none was sent */
  demand(): void;
  /** @throws CairnError `precondition_failed` unless the caller named the version with this revision */
  check(revision: number): void;
}

/** Requires nothing. */
export const unconditional: Precondition = { demand: () => {}, check: () => {} };

/** A record that is to be changed, on whose behalf, and on which condition. */
export interface Target {
  readonly principal: Principal;
  readonly id: number;
  readonly precondition: Precondition;
  readonly address?: string;
}

type Timestamps = { readonly [field: string]: Scalar };

/** The record itself. @throws CairnError `not_found` where there is none */
export function found<R extends StoredRecord>(record: R | undefined): R {
  if (record === undefined) throw notFound();
  return record;
}

/** What the resources of an app share. */
export interface ResourceParts {
  readonly store: Store;
  readonly writes: HookedWrites;
  readonly keys: IdempotencyKeys;
  readonly clock: Clock;
}

/** The records of a declared collection, and what is done with them. */
export class CollectionResource {
  readonly declaration: CollectionDeclaration;
  readonly records: Collection<Entry>;
  readonly #writes: HookedWrites;
  readonly #keys: IdempotencyKeys;
  readonly #clock: Clock;

  /** @throws InvariantError for a declaration that `defineCollection` has not checked */
  constructor(declaration: CollectionDeclaration, { store, writes, keys, clock }: ResourceParts) {
    const { name, fields } = declaration;
    invariant(isDeclared(declaration), `"${name}" is not a collection that defineCollection made`);
    const misfit = storedRecordCheck(fields);
    this.declaration = declaration;
    this.records = store.collection<Entry>({
      name,
      parse: (record) => misfit(record) ?? (isEntry(record) ? record : undefined),
    });
    this.#writes = writes;
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * Creates one entry, or several: all or none.
   * @throws CairnError `key_reused`, `write_refused`, and what `Store.write` throws
   */
  create(
    principal: Principal, input: NewEntry | NewEntry[], { attempt }: Origin = {},
  ): Promise<Created<Entry | Entry[]>> {
    const ownerId = principal.userId ?? nobody;
    return this.#writes.write(this.declaration, principal, (transaction, wrote) => {
      const insert = (one: NewEntry, times: Timestamps): Entry => {
        const after = transaction.insert(this.records, { ownerId, ...one, ...times });
        wrote({ after });
        return after;
      };
      return this.#keys.once<Entry | Entry[]>(
        transaction,
        attempt,
        (now) => {
          const times = this.#timestamps(now);
          if (!Array.isArray(input)) return insert(input, times);
          return input.map((one, index) => atElement(index, () => insert(one, times)));
        },
        ({ id, revision }, then) => {
          const times = this.#timestamps(then);
          const recall = (one: NewEntry, index = 0): Entry => ({ ownerId, ...one, ...times, id: id + index, revision });
          return Array.isArray(input) ? input.map(recall) : recall(input);
        },
      );
    });
  }

  /**
   * Replaces or patches a record; what changes nothing is not written.
   * @throws CairnError in the order that `Precondition` tells
   */
  async change({ principal, id, precondition }: Target, draft: EntryDraft): Promise<{ readonly record: Entry }> {
    const access = this.declaration.access[draft.kind];
    const record = await this.#writes.write(this.declaration, principal, (transaction, wrote) => {
      const before = this.#changeable(transaction, principal, access, id);
      precondition.demand();
      const { ownerId, createdAt } = before;
      // A change by others moves `updatedAt`, too. "The record has changed" is then the better answer.
      if (this.declaration.timestamps) precondition.check(before.revision);
      const input = draft.against(before);
      precondition.check(before.revision);
      if (looksSame(this.declaration.fields, before, input)) return before;
      const times = this.#timestamps(this.#clock.now(), createdAt);
      const after = transaction.replace(this.records, id, { ownerId, ...input, ...times });
      wrote({ before, after });
      return after;
    });
    return { record };
  }

  /** @throws CairnError in the order that `Precondition` tells */
  async remove({ principal, id, precondition }: Target): Promise<void> {
    await this.#writes.write(this.declaration, principal, (transaction, wrote) => {
      const before = this.#changeable(transaction, principal, this.declaration.access.remove, id);
      precondition.demand();
      precondition.check(before.revision);
      transaction.remove(this.records, id);
      wrote({ before });
    });
  }

  /** The fields that the server keeps of a record that was created then, or now. */
  #timestamps(now: number, createdAt?: Scalar): Timestamps {
    if (!this.declaration.timestamps) return {};
    const updatedAt = new Date(now).toISOString();
    return { createdAt: createdAt ?? updatedAt, updatedAt };
  }

  /** @throws CairnError `not_found`, `not_owner` */
  #changeable(transaction: Transaction, principal: Principal, access: Access, id: number): Entry {
    const entry = found(transaction.get(this.records, id));
    requireOwner(access, principal, entry.ownerId);
    return entry;
  }
}

const nobody = 0;

function isEntry(record: JsonObject & StoredRecord): record is JsonObject & Entry {
  return Number.isSafeInteger(record['ownerId']);
}
