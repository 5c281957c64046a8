import type { Route } from '../../api/call.ts';
import { collectionRoutes, type CollectionOptions } from '../../api/collections.ts';
import type { Operations } from '../../api/operations.ts';
import { notFound } from '../../auth/access.ts';
import type { Clock } from '../../base/system.ts';
import { recordId } from '../../base/record-id.ts';
import { addTimes, singleNumber, checkSize } from '../../collections/declared-rules.ts';
import type { Declared, Entry, CollectionTools } from '../../collections/declared.ts';
import {
  CollectionResource,
  type EntryDraft,
  type NewEntry,
  type Target,
} from '../../collections/resource.ts';
import { fieldValue, looksSame } from '../../schema/record.ts';
import { collectDefaults } from '../../schema/validate.ts';
import type { Transaction } from '../../store/store.ts';

/**
 * One record at the path of its name, created by the first PUT and never removed. Before that it is
 * 404. To create it only if absent, a caller sends `If-None-Match: *` (RFC 9110 §13.1.2).
 */
export class SingleResource extends CollectionResource {
  readonly #clock: Clock;

  constructor(declared: Declared, tools: CollectionTools) {
    super(declared, tools);
    this.#clock = tools.clock;
  }

  /** Sets the resource, whose id never changes. @throws CairnError as for a collection */
  override change(
    tx: Transaction,
    { precondition }: Target,
    draft: EntryDraft,
  ): { readonly record: Entry; readonly isNew?: boolean } {
    const { collection } = this;
    const single = tx.of(this.records);
    const before = single.get(singleNumber);
    if (before === undefined && draft.kind === 'patch') throw notFound();
    precondition(before?.revision);
    const input = draft.against(before ?? collectDefaults(collection.fields));
    if (before !== undefined && looksSame(collection.fields, before, input))
      return { record: before };
    checkSize(collection.fields, input, collection.recordBytesMax);
    const createdAt = before && fieldValue(before, 'createdAt');
    const set = addTimes(collection, input, this.#clock.now(), createdAt);
    if (before === undefined)
      return { record: single.insert({ ownerId: 0, ...set }, singleNumber), isNew: true };
    return { record: single.replace(singleNumber, { ...this.undeclared(before), ...set }) };
  }
}

export function singleRoutes(
  operations: Operations<NewEntry, EntryDraft>,
  options: CollectionOptions,
): Route[] {
  const id = recordId(singleNumber);
  return collectionRoutes(operations, options).map((one) => ({
    ...one,
    handle: (call) => one.handle({ ...call, id, query: '' }),
  }));
}
