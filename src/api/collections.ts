import { hash } from 'node:crypto';
import { readId, inPath } from '../base/record-id.ts';
import { parseQuery } from '../http/query.ts';
import type { Reply, Request } from '../http/message.ts';
import type { Principal } from '../auth/access.ts';
import type { Prepared } from '../accounts/users.ts';
import type { KeyedRequest } from '../collections/idempotency.ts';
import type { Embedded } from '../collections/declared.ts';
import { capitalized } from '../collections/registry.ts';
import { found, type Target } from '../collections/resource.ts';
import type { ListPool } from '../lists/list-pool.ts';
import { parseRecordQuery, readListQuery } from '../lists/query.ts';
import { readList, readRecord, type List } from '../lists/list.ts';
import { representationWriter } from '../schema/record.ts';
import type { Writes } from '../collections/writes.ts';
import type { StoredRecord } from '../store/store.ts';
import { setSessionCookie } from './authenticate.ts';
import { noContent, notModified, shown, unstoredReply } from './replies.ts';
import { readIdempotencyKey, notKept } from '../http/idempotency-key.ts';
import { isUnchanged, readPrecondition } from './versions.ts';
import { arrayBody, objectBody } from './body.ts';
import {
  withBody,
  type Call,
  type Handler,
  type Operation,
  type Route,
  type RoutedCollection,
} from './call.ts';
import type { Operations } from './operations.ts';
import { linksTo } from './links.ts';
import type { RouteOptions } from './routes.ts';

export interface CollectionOptions extends RouteOptions {
  readonly writes: Writes;
  readonly listPool: ListPool;
}

// prettier-ignore
export function collectionRoutes<N extends object, C>(
  operations: Operations<N, C>,
  options: CollectionOptions,
): Route[] {
  const { collection } = operations;
  const { name, noun, singular, access, bodies, ids, isSingle, isUsers } = collection;
  const path = `/${name}`;
  const identify = (operation: Operation, suffix = capitalized(singular)) =>
    ({ operationId: operation + suffix, of: { collection, operation } });
  const handlers = recordHandlers(operations, options);
  const one = { path: isSingle ? path : `${path}/{id}`, ids, conditional: true };
  const changed = { ...one, requireIfMatch: options.requireIfMatch };
  // Clients of another server add parameters to the path of a single resource, such as the time.
  const single = options.dialect === undefined ? undefined : 'ignored';
  const read: Route = {
    ...identify('read'), method: 'GET', ...one, access: access.read, query: isSingle ? single : 'read',
    handle: handlers.read,
  };
  const replace = withBody({
    ...identify('replace'), method: 'PUT', ...changed, access: access.replace, body: bodies.replace,
    handle: handlers.change,
  });
  const patch = withBody({
    ...identify('patch'), method: 'PATCH', ...changed, access: access.patch, body: bodies.patch,
    handle: handlers.change,
  });
  if (isSingle) return [read, replace, patch];
  const batch = `${path}/batch`;
  const list: Route = {
    ...identify('list', noun), method: 'GET', path, access: access.list, query: 'read', conditional: true,
    handle: listHandler(operations, options),
  };
  const create = withBody({
    ...identify('create'), method: 'POST', path, access: access.create,
    body: isUsers ? bodies.create : objectBody(bodies.create, batch), handle: handlers.create,
  });
  const remove: Route = {
    ...identify('remove'), method: 'DELETE', ...changed, access: access.remove, handle: handlers.remove,
  };
  const routes = [list, create, read, replace, patch, remove];
  if (isUsers) return routes;
  const createMany = withBody({
    ...identify('createMany', noun), method: 'POST', path: batch, access: access.create, body: arrayBody(bodies.create),
    handle: batchHandler(operations, options),
  });
  return [...routes, createMany];
}

function recordHandlers<N extends object, C>(
  operations: Operations<N, C>,
  options: CollectionOptions,
) {
  const { collection, resource, tagOf } = operations;
  const { name, fields } = collection;
  const { writes } = options;
  const write = representationWriter(fields);

  function readTarget({ request, route, principal, id }: Call): Target {
    const precondition = readPrecondition(request, tagOf, route.requireIfMatch === true);
    return { principal, id, precondition, address: request.address };
  }

  async function change(call: Call<C>): Promise<Reply> {
    const { principal, body } = call;
    const target = readTarget(call);
    const prepared = await resource.prepareChange?.(target, body);
    const { record, isNew, renewed } = await writes.write(
      principal,
      (tx) => resource.change(tx, target, body, prepared),
      call.request.caller,
    );
    const tag = tagOf(record.revision);
    if (renewed === undefined) return shown(isNew ? 201 : 200, tag, write(record));
    // The cookie is a credential, so the response is not stored.
    const fields = ['ETag', tag, ...setSessionCookie(call.request, renewed.secret)];
    return unstoredReply(200, write(record), fields);
  }

  async function prepare(
    { request, principal, body }: Call<N>,
    keyed: KeyedRequest | undefined,
    create: (prepared?: Prepared) => Promise<Reply>,
  ): Promise<Reply> {
    // A repetition is not throttled.
    const kept = keyed && writes.replay(keyed);
    return kept ?? create(await resource.prepareCreate?.(principal, body, request.address));
  }

  function readAll({ request }: Call, record: StoredRecord): Reply {
    const tag = tagOf(record.revision);
    return isUnchanged(request, tag) ? notModified(tag) : shown(200, tag, write(record));
  }

  function readSelected({ request, principal, query }: Call, record: StoredRecord): Reply {
    const foreign = collection.readForeign?.(query, 'read');
    const asked = foreign?.query ?? parseRecordQuery(collection, parseQuery(query));
    const embedded = foreign?.embedded ?? embeddedBy(collection, asked.embed, principal);
    const { selection, revisionWith, marksIn, writer } = embedded;
    // A name may have characters that a header cannot have.
    const part = (asked.fields ? hashTogether(asked.fields) : '') + selection;
    // A collection's revision would reveal writes to hidden records.
    const tag =
      marksIn === undefined
        ? tagOf(revisionWith(record.revision), part)
        : tagOf(record.revision, `${part}-${hashTogether(principal.userId, marksIn(record))}`);
    if (isUnchanged(request, tag)) return notModified(tag);
    const writeSelected = representationWriter(fields, asked.fields);
    const embed = writer?.(writeSelected);
    const body =
      embed === undefined
        ? writeSelected(record)
        : readRecord(options.listPool, record, { caller: request, embed });
    return shown(200, tag, body);
  }

  return {
    create(call: Call<N>) {
      const { request, principal, body } = call;
      const keyed = keyedBy(call, collection.isUsers && Object.hasOwn(body, 'password'));
      const create = (prepared?: Prepared): Promise<Reply> =>
        writes.answer(
          principal,
          keyed,
          (tx) => {
            const created = resource.create(tx, principal, body, prepared);
            const location = ['Location', `${request.basePath}/${name}/${inPath(readId(created))}`];
            return shown(201, tagOf(created.revision), write(created), location);
          },
          request.caller,
        );
      return resource.prepareCreate === undefined ? create() : prepare(call, keyed, create);
    },

    read(call: Call) {
      const record = found(operations.read(call.principal, call.id));
      return call.query === '' ? readAll(call, record) : readSelected(call, record);
    },

    change,

    async remove(call: Call) {
      const target = readTarget(call);
      await writes.write(call.principal, (tx) => resource.remove(tx, target), call.request.caller);
      return noContent();
    },
  };
}

const nothing: Embedded = { selection: '', revisionWith: (own) => own };

/** @throws CairnError `insufficient_scope` */
function embeddedBy<N, C>(
  { references, embeddables }: RoutedCollection<N, C>,
  names: readonly string[],
  principal: Principal,
): Embedded {
  if (names.length === 0) return nothing;
  return references?.embed(names, embeddables, principal) ?? nothing;
}

const hashTogether = (...values: readonly unknown[]): string =>
  hash('sha256', JSON.stringify(values), 'base64url').slice(0, 22);

function batchHandler<N extends object, C>(
  { collection, resource }: Operations<N, C>,
  { writes }: CollectionOptions,
): Handler<readonly N[]> {
  const write = representationWriter(collection.fields);
  return (call) => {
    const { principal, body } = call;
    return writes.answer(
      principal,
      keyedBy(call),
      (tx) => {
        const created = resource.createMany?.(tx, principal, body) ?? [];
        return unstoredReply(201, `[${created.map(write).join(',')}]`);
      },
      call.request.caller,
    );
  };
}

/**
 * Returns the request with its idempotency key; `undefined` without one.
 * @throws CairnError `malformed_request`
 */
function keyedBy({ request, route, sent }: Call, hasPassword = false): KeyedRequest | undefined {
  const key = readIdempotencyKey(request);
  if (key === undefined) return undefined;
  // The body's SHA-256 is kept, and would reveal a short password.
  if (hasPassword) throw notKept('with a password');
  return { caller: request.caller, key, line: `${route.method} ${route.path}`, body: sent };
}

function listHandler<N, C>(operations: Operations<N, C>, options: CollectionOptions): Handler {
  const { collection, tagOf } = operations;
  const { fields } = collection;
  const { records } = operations.resource;
  const source = { fields, records, pool: options.listPool };
  return ({ request, principal, query }) => {
    const foreign = collection.readForeign?.(query, 'list');
    const asked = foreign?.query ?? readListQuery(collection, query, principal.userId);
    const embedded = foreign?.embedded ?? embeddedBy(collection, asked.embed, principal);
    const { selection, revisionWith, marksIn, writer } = embedded;
    const reader = operations.reader(principal, 'list');
    const embed = writer?.(representationWriter(fields, asked.fields));
    const isPreferred = prefersCount(request);
    const withTotal = isPreferred || asked.offset !== undefined;
    // A list that depends on the caller has no tag, because a revision would reveal writes to
    // hidden records. Nor does a list of all records that embeds, because these may change while it
    // is sent.
    const dependsOnCaller = reader.test !== undefined || marksIn !== undefined || asked.isPersonal;
    const hasTag = !dependsOnCaller && (embed === undefined || asked.limit !== undefined);
    // The revision and the list's view are taken in the same turn of the event loop, so the tag
    // fits the list.
    const revision = revisionWith(records.revision);
    const tags = [tagOf(revision, selection), tagOf(revision, `counted${selection}`)] as const;
    const [tag, other] = withTotal ? ([tags[1], tags[0]] as const) : tags;
    if (hasTag && isUnchanged(request, tag, other)) return notModified(tag);
    const reply = (list: List): Reply => {
      const count = list.total === undefined ? [] : ['X-Total-Count', String(list.total)];
      if (isPreferred) count.push('Preference-Applied', 'count=exact');
      const links = foreign?.links(request, list.total ?? 0) ?? linksTo(request, asked, list);
      return shown(200, hasTag ? tag : undefined, list.body, [...links, ...count]);
    };
    const list = readList(source, {
      query: asked,
      reader: reader.test && reader,
      withTotal,
      caller: request,
      embed,
    });
    return list instanceof Promise ? list.then(reply) : reply(list);
  };
}

/** True if the caller prefers an exact count (RFC 7240). */
function prefersCount({ fields }: Request): boolean {
  const preferences = fields.get('prefer')?.toLowerCase().split(',') ?? [];
  return preferences.some((preference) => preference.trim() === 'count=exact');
}
