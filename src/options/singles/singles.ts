import { bind, type Call, type Endpoint, type RoutedCollection } from '../../api/call.ts';
import { entityTag, isUnchanged, notModified, preconditionOf, shown } from '../../api/replies.ts';
import { singleRoutes, type RouteOptions } from '../../api/routes.ts';
import type { Reply } from '../../http/message.ts';
import { authorize, notFound } from '../../auth/access.ts';
import type { Clock } from '../../base/system.ts';
import { timesOf } from '../../collections/declaration.ts';
import { singleNumber, type Declared, type Entry } from '../../collections/registry.ts';
import { checkSize, found, type EntryDraft, type NewEntry } from '../../collections/resource.ts';
import type { Writes } from '../../collections/writes.ts';
import { fieldValue, looksSame, representationWriter } from '../../schema/record.ts';
import type { Store, Transaction } from '../../store/store.ts';

/** What single resources need of the app. */
interface Services extends RouteOptions {
  readonly store: Store;
  readonly writes: Writes;
  readonly clock: Clock;
}

/**
 * Returns the endpoints of a single resource: one record at the path of its name, which the first
 * PUT makes, and which stays. It is 404 before. A caller that means to make it sends
 * `If-None-Match: *` (RFC 9110 §13.1.2).
 */
export function singleEndpoints(
  collection: RoutedCollection<NewEntry, EntryDraft>,
  declared: Declared,
  { store, writes, clock, ...options }: Services,
): Endpoint[] {
  const { access, fields, records, shapeTag } = declared;
  const write = representationWriter(fields);
  const tagOf = (revision: number): string => entityTag(store.epoch, revision, shapeTag);

  function set(tx: Transaction, call: Call<EntryDraft>): Entry {
    const { request, route, body } = call;
    const precondition = preconditionOf(request, tagOf, route.requireIfMatch === true);
    const single = tx.of(records);
    const before = single.get(singleNumber);
    // Nobody's change is lost where there is nothing yet: a version need not be named.
    if (before !== undefined) precondition.demand();
    else if (body.kind === 'patch') throw notFound();
    precondition.check(before?.revision);
    const input = body.against(before ?? defaultsOf(declared));
    if (before !== undefined && looksSame(fields, before, input)) return before;
    checkSize(input);
    const createdAt = before && fieldValue(before, 'createdAt');
    const next = { ownerId: 0, ...input, ...timesOf(declared, clock.now(), createdAt) };
    return before === undefined
      ? single.insert(next, singleNumber)
      : single.replace(singleNumber, next);
  }

  async function change(call: Call<EntryDraft>): Promise<Reply> {
    // The reply shows the resource.
    authorize(access.read, call.principal, call.id);
    let isNew = false;
    const record = await writes.write(call.principal, (tx) => {
      isNew = tx.of(records).get(singleNumber) === undefined;
      return set(tx, call);
    });
    return shown(isNew ? 201 : 200, tagOf(record.revision), write(record));
  }

  return bind(singleRoutes(collection, options), {
    read({ request }) {
      const record = found(records.get(singleNumber));
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
