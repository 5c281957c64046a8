import { bind, type Call, type Endpoint, type RoutedCollection } from '../../api/call.ts';
import { entityTag, isUnchanged, notModified, preconditionOf, shown } from '../../api/replies.ts';
import { singleRoutes, type RouteOptions } from '../../api/routes.ts';
import type { Reply } from '../../http/message.ts';
import { authorize, notFound } from '../../auth/access.ts';
import type { Clock } from '../../base/system.ts';
import { recordId } from '../../base/record-id.ts';
import { timesOf } from '../../collections/declaration.ts';
import { readerOf } from '../../collections/reader.ts';
import { singleNumber, type Declared, type Entry } from '../../collections/registry.ts';
import {
  checkSize,
  CollectionResource,
  found,
  type CollectionTools,
  type EntryDraft,
  type NewEntry,
  type Target,
} from '../../collections/resource.ts';
import type { Writes } from '../../collections/writes.ts';
import { fieldValue, looksSame, representationWriter } from '../../schema/record.ts';
import type { Store, Transaction } from '../../store/store.ts';

/**
 * One record at the path of a name, which the first PUT makes, and which stays. It is 404 before. A
 * caller that means to make it sends `If-None-Match: *` (RFC 9110 §13.1.2).
 */
export class SingleResource extends CollectionResource {
  readonly #clock: Clock;

  constructor(declared: Declared, tools: CollectionTools) {
    super(declared, tools);
    this.#clock = tools.clock;
  }

  /** Sets the resource, which has one id. @throws CairnError as that of a collection */
  override change(
    tx: Transaction,
    { precondition }: Target,
    draft: EntryDraft,
  ): { readonly record: Entry } {
    const { collection } = this;
    const single = tx.of(this.records);
    const before = single.get(singleNumber);
    // Nobody's change is lost where there is nothing yet: a version need not be named.
    if (before !== undefined) precondition.demand();
    else if (draft.kind === 'patch') throw notFound();
    precondition.check(before?.revision);
    const input = draft.against(before ?? defaultsOf(collection));
    if (before !== undefined && looksSame(collection.fields, before, input))
      return { record: before };
    checkSize(input);
    const createdAt = before && fieldValue(before, 'createdAt');
    const next = { ownerId: 0, ...input, ...timesOf(collection, this.#clock.now(), createdAt) };
    const record =
      before === undefined ? single.insert(next, singleNumber) : single.replace(singleNumber, next);
    return { record };
  }
}

/** What single resources need of the app. */
interface Services extends RouteOptions, CollectionTools {
  readonly store: Store;
  readonly writes: Writes;
}

/** Returns the endpoints of a single resource. */
export function singleEndpoints(
  collection: RoutedCollection<NewEntry, EntryDraft>,
  declared: Declared,
  { store, writes, ...options }: Services,
): Endpoint[] {
  const { access, fields, records, shapeTag } = declared;
  const resource = new SingleResource(declared, options);
  const write = representationWriter(fields);
  const tagOf = (revision: number): string => entityTag(store.epoch, revision, shapeTag);

  async function change({ request, route, principal, id, body }: Call<EntryDraft>): Promise<Reply> {
    // The reply shows the resource.
    authorize(access.read, principal, id);
    const precondition = preconditionOf(request, tagOf, route.requireIfMatch === true);
    let isNew = false;
    const { record } = await writes.write(principal, (tx) => {
      isNew = tx.of(records).get(singleNumber) === undefined;
      return resource.change(tx, { principal, id, precondition }, body);
    });
    return shown(isNew ? 201 : 200, tagOf(record.revision), write(record));
  }

  return bind(singleRoutes(collection, options), {
    read({ request, principal }) {
      const record = found(readerOf(declared, principal, 'read').withId(recordId(singleNumber)));
      const tag = tagOf(record.revision);
      return isUnchanged(request, tag) ? notModified(tag) : shown(200, tag, write(record));
    },
    replace: change,
    patch: change,
  });
}

/** Returns the values that fields have where nothing was written yet. */
function defaultsOf({ fields }: Declared): object {
  const all = Object.entries(fields).map(([name, field]) => [name, field.default]);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}
