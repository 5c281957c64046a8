/** Answers clients of json-server, of its versions 0.17 and 1.0, in their own way. */
import { localAdministrator, type Principal } from '../../auth/access.ts';
import type { Body } from '../../api/body.ts';
import {
  parseId,
  type Endpoint,
  type Handler,
  type Operation,
  type RoutedCollection,
} from '../../api/call.ts';
import {
  batchEndpoints,
  collectionEndpoints,
  type CollectionOptions,
} from '../../api/collections.ts';
import { Operations } from '../../api/operations.ts';
import { shown, unstoredReply } from '../../api/replies.ts';
import { declaredCollection } from '../../api/routes.ts';
import { CairnError } from '../../base/errors.ts';
import { isJsonObject, isScalar } from '../../base/json.ts';
import type { JsonValue, Scalar } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { idOf, recordId, type RecordId } from '../../base/record-id.ts';
import { readerOf, type Reader } from '../../collections/reader.ts';
import type { Declared, Entry, Registry, TableRules } from '../../collections/registry.ts';
import {
  CollectionResource,
  found,
  localTarget,
  type Target,
  type CollectionTools,
  type EntryDraft,
  type NewEntry,
} from '../../collections/resource.ts';
import {
  endUnread,
  isSafe,
  leavable,
  type Handle,
  type Reply,
  type Request,
} from '../../http/message.ts';
import type { Query } from '../../http/query.ts';
import { invalidParameter, onlyCondition, type Filter } from '../../lists/filters.ts';
import { readList, readRecord, type List, type PieceWriter } from '../../lists/list.ts';
import { listParameters } from '../../lists/query.ts';
import { anyJson, referenceIn, type Field, type Shape } from '../../schema/field.ts';
import {
  memberPrefix,
  moreOf,
  readerAt,
  representationOf,
  representationWriter,
  toShown,
} from '../../schema/record.ts';
import type { Store, StoredRecord, Transaction } from '../../store/store.ts';
import { asJson, LargeBodies, parseLarge, recordBytesMax, toJson } from './bodies.ts';
import { isForeign, readNames, parseLeniently, readPart, readQuery, type Part } from './query.ts';
import { knownIn, referenceTo, targetOf } from './relations.ts';

/** The index of what records refer to: each member with a name that ends in `Id`, by its text. */
const referenceGroup = '.refers';
const groupKey = (name: string, id: Scalar): string => `${name} ${id}`;

/** What callers see of a collection: here everybody may do everything. */
const readerFor = (declared: Declared): Reader => readerOf(declared, localAdministrator, 'list');

/** The indexes of the tables of declared collections, besides their own. */
const groups = {
  // Every write runs this, several times.
  [referenceGroup](entry: Entry): string[] {
    const keys: string[] = [];
    for (const members of [entry, moreOf(entry)]) {
      for (const name in members) {
        const value = members[name];
        if (name.endsWith('Id') && isScalar(value)) keys.push(groupKey(name, value));
      }
    }
    return keys;
  },
};

export const rules: TableRules = { groups, recordBytesMax };

/** Returns the filter by id that stands for one by what records refer to: an index answers both. */
function toIdFilter(declared: Declared, filters: readonly Filter[]): Filter[] {
  for (const filter of filters) {
    const { name = '', operator, operands = [] } = onlyCondition(filter) ?? {};
    if (operator !== 'in' || !name.endsWith('Id')) continue;
    const member = name.replace(memberPrefix, '');
    const keys = [...new Set(operands.map((operand) => groupKey(member, operand)))];
    const found = keys.flatMap((key) =>
      readerFor(declared).members(referenceGroup, recordId(key), limits.pageRecordsMax + 1),
    );
    if (found.length > limits.pageRecordsMax) continue;
    return [[{ name: 'id', operator, operands: found.map(idOf) }]];
  }
  return [];
}

/** Returns a collection with bodies as json-server takes them. */
export function withBodies(collection: CollectionRoutes): CollectionRoutes {
  const { create, replace, patch } = collection.bodies;
  const { fields } = collection;
  const bodies = {
    create: changeBody(create, (sent) => withoutId(sent, fields['id']?.kind !== 'integer')),
    replace: changeBody(replace, (sent) => withoutId(sent, !Object.hasOwn(fields, 'id'))),
    patch: {
      ...patch,
      ...large,
      validate: (sent: JsonValue, by: Principal) => ({
        kind: 'patch' as const,
        against: (stored: object) =>
          replace.validate(assignMembers(fields, stored, sent), by).against(stored),
      }),
    },
  };
  return { ...collection, bodies };
}
type CollectionRoutes = RoutedCollection<NewEntry, EntryDraft>;

/** Returns the endpoints of a declared collection. */
export function createEndpoints(
  declared: Declared,
  registry: Registry,
  options: CollectionOptions,
  tools: CollectionTools & { readonly store: Store },
): Endpoint[] {
  const collection = withBodies(declaredCollection(declared));
  const resource = new Resource(declared, tools, registry);
  const operations = new Operations(collection, resource, tools.store);
  const others = dialectHandlers(declared, registry, options);
  const endpoints = collectionEndpoints(operations, options).map((own): Endpoint => {
    const { operation = 'create' } = own.route.of ?? {};
    const handle = others[operation]?.((call) => own.handle(call));
    return handle === undefined ? own : { route: own.route, handle };
  });
  return [...endpoints, ...batchEndpoints(operations, options)];
}

/** Returns a body that is changed before it is validated. */
const changeBody = <T>(body: Body<T>, change: (sent: JsonValue) => JsonValue): Body<T> => ({
  ...body,
  ...large,
  validate: (sent, by) => body.validate(change(sent), by),
});
const large = { bytesMax: recordBytesMax, parse: parseLarge };

/** Returns what was sent without its id: that of a record never changes. */
function withoutId(sent: JsonValue, isGiven = false): JsonValue {
  if (!isJsonObject(sent)) return sent;
  const { id, ...others } = sent;
  return isGiven && id ? sent : others;
}

/** Returns a stored record with the members that were sent in the place of its own. */
function assignMembers(fields: Shape, stored: object, sent: JsonValue): JsonValue {
  const before = toShown(fields, stored);
  if (!isJsonObject(sent) || !isJsonObject(before)) return sent;
  const members = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(sent)) {
    const field: Field | undefined = Object.hasOwn(fields, name) ? fields[name] : anyJson;
    const { kind, nullable, optional }: Field = field ?? anyJson;
    // Null is no value of such a field, so it can only be meant to remove it.
    if (value === null && optional && !nullable && kind !== 'json') members.delete(name);
    else if (name !== 'id' || !Object.hasOwn(fields, name)) members.set(name, value);
  }
  return Object.fromEntries(members);
}

/** The operations, of which a removal takes what refers to the record. */
class Resource extends CollectionResource {
  readonly #registry: Registry;
  readonly #tools: CollectionTools;

  constructor(declared: Declared, tools: CollectionTools, registry: Registry) {
    super(declared, tools);
    this.#registry = registry;
    this.#tools = tools;
  }

  override remove(tx: Transaction, target: Target): void {
    super.remove(tx, target);
    const removed: [Declared, RecordId][] = [[this.collection, target.id]];
    const referring = new Map<Declared, readonly (readonly [from: Declared, name: string])[]>();
    for (const [to, id] of removed) {
      const found = referring.get(to) ?? findReferences(to, this.#registry);
      referring.set(to, found);
      for (const [from, name] of found) {
        for (const referrer of [
          ...tx.of(from.records).referring(referenceGroup, groupKey(name, id)),
        ]) {
          const other = idOf(referrer);
          if (removed.push([from, other]) > limits.referrersMax) throw tooMany;
          new CollectionResource(from, this.#tools).remove(tx, localTarget(other));
        }
      }
    }
  }
}

/** Returns the members that refer to a collection and have no rule of their own. */
const findReferences = (to: Declared, registry: Registry) =>
  [...registry.values()]
    .map((from) => [from, referenceTo(to, from)] as const)
    .filter(([{ fields }, name]) => {
      const field = fields[name];
      const isDeclared = field !== undefined && referenceIn(field) !== undefined;
      return !isDeclared && targetOf(name, registry) === to;
    });

const tooMany = new CairnError(
  'still_referenced',
  `Cannot remove the record: over ${limits.referrersMax} records depend on it; remove some first`,
);

/** Returns the handlers of the operations that are answered in another way than Cairn's. */
function dialectHandlers(
  declared: Declared,
  registry: Registry,
  { listPool: pool }: CollectionOptions,
): { readonly [operation in Operation]?: (own: Handler) => Handler } {
  const { fields, records } = declared;
  const isKnown = knownIn(declared);
  const own: readonly string[] = listParameters(declared).filter((name) => name !== 'q');
  /** Records of json-server may have members that are called as parameters of Cairn. */
  const isTaken = (name: string): boolean => own.includes(name) && isKnown(name);
  const isOwnName = (name: string): boolean => own.includes(name) && !isKnown(name);
  return {
    list: (listed) => async (call) => {
      const query = parseLeniently(call.query);
      const names = [...query.keys()];
      const isOwn =
        names.some(isOwnName) && !names.some((name) => isForeign(name) || isTaken(name));
      if (isOwn || names.length === 0) return listed(call);
      const asked = readQuery(declared, query, isKnown);
      const filters = [...toIdFilter(declared, asked.filters), ...asked.filters];
      const part = readPart(query);
      const embed = createEmbedding(declared, registry, query);
      const read = async (offset = part?.offset): Promise<List> =>
        readList(
          { fields, records, pool },
          {
            query: { ...asked, filters, limit: part?.limit, offset },
            withTotal: part !== undefined,
            caller: call.request,
            embed,
          },
        );
      const list = await read();
      return part === undefined
        ? shown(200, undefined, list.body)
        : partResponse(call.request, part, list, read);
    },

    read: (one) => (call) => {
      const query = parseLeniently(call.query);
      const embed = createEmbedding(declared, registry, query);
      if (embed !== undefined) {
        const record = found(readerFor(declared).withId(call.id));
        return shown(200, undefined, readRecord(pool, record, { caller: call.request, embed }));
      }
      const isMeant = [...query.keys()].some(isOwnName);
      return one(isMeant ? call : { ...call, query: '' });
    },

    remove: (removed) => async (call) => {
      await removed(call);
      return unstoredReply(200, '{}');
    },
  };
}

/** Returns the reply with a part of a list. `read` reads another one. */
async function partResponse(
  request: Request,
  { limit, page, isEnvelope }: Part,
  list: List,
  read: (offset: number) => Promise<List>,
): Promise<Reply> {
  const { body, total = 0 } = list;
  const count = ['X-Total-Count', String(total)];
  const last = Math.ceil(total / limit);
  if (page === undefined) return shown(200, undefined, body, count);
  if (!isEnvelope) {
    const isOne = last < 2 || page > last;
    return shown(200, undefined, body, [
      ...(isOne ? [] : pageLinks(request, page, last)),
      ...count,
    ]);
  }
  const pages = Math.max(1, last);
  const at = Math.min(page, pages);
  const { body: data } = at === page ? list : await read((at - 1) * limit);
  const places = { first: 1, prev: at > 1 ? at - 1 : null, next: at < pages ? at + 1 : null };
  const envelope = JSON.stringify({ ...places, last: pages, pages, items: total });
  return shown(200, undefined, wrapBody(`${envelope.slice(0, -1)},"data":`, data), count);
}

function wrapBody(start: string, body: List['body']): List['body'] {
  if (typeof body === 'string') return `${start}${body}}`;
  const pieces = async function* () {
    yield start;
    yield* body;
    yield '}';
  };
  return leavable(pieces(), () => endUnread(body));
}

/**
 * Returns the `Link` field of a page, as a name and a value, with whole addresses: pages of other
 * origins follow them.
 */
function pageLinks(request: Request, page: number, last: number): string[] {
  const { fields, basePath, target, encrypted } = request;
  const origin = `${encrypted ? 'https' : 'http'}://${fields.get('host') ?? ''}`;
  const numbers = { first: 1, prev: page - 1, next: page + 1, last };
  const links = Object.entries(numbers).flatMap(([relation, number]) => {
    if (number < 1 || number > last) return [];
    const path = target
      .replace(/([?&]_page=)[^&]*/, `$1${number}`)
      .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent);
    return `<${origin}${basePath}${path}>; rel="${relation}"`;
  });
  return ['Link', links.join(', ')];
}

/**
 * Returns the writer of records with what a query embeds; `undefined` if it embeds nothing.
 * @throws CairnError `invalid_query` for what is no collection, nor one of its records
 */
function createEmbedding(
  declared: Declared,
  registry: Registry,
  query: Query,
): PieceWriter | undefined {
  const { fields } = declared;
  const parts = ['_embed', '_expand'].flatMap((parameter) =>
    [...new Set(readNames(query, parameter))].map((member) => {
      const one = targetOf(`${member}Id`, registry);
      const isMeant = parameter === '_expand' || knownIn(declared)(`${member}Id`);
      const many = isMeant && one !== undefined ? undefined : registry.get(member);
      const of = many ?? one;
      if (of === undefined)
        throw invalidParameter(parameter, `must name some of ${[...registry.keys()].join(', ')}`);
      const idIn = readerAt(fields, `${member}Id`);
      const read = (record: StoredRecord): StoredRecord[] =>
        many === undefined
          ? [readerFor(of).withId(toId(of, String(idIn(record))))].flatMap((found) => found ?? [])
          : readerFor(many).members(
              referenceGroup,
              recordId(groupKey(referenceTo(declared, many), idOf(record))),
              limits.pageRecordsMax,
            );
      return { member, isOne: many === undefined, read, write: representationWriter(of.fields) };
    }),
  );
  if (parts.length === 0) return undefined;
  return function* writeWithEmbedded(record) {
    const own = new Map(Object.entries(representationOf(fields, record)));
    for (const { member } of parts) own.delete(member);
    yield JSON.stringify(Object.fromEntries(own)).slice(0, -1);
    for (const { member, isOne, read, write } of parts) {
      const records = read(record);
      if (isOne && records.length === 0) continue;
      yield `,${JSON.stringify(member)}:${isOne ? '' : '['}`;
      for (const [index, each] of records.entries()) yield (index > 0 ? ',' : '') + write(each);
      if (!isOne) yield ']';
    }
    yield '}';
  };
}

/**
 * Returns what takes requests before `handle`: `/posts/1/comments` is about the comments of a post,
 * `/posts/` is `/posts`, and bodies are those of json-server.
 */
export function translate(handle: Handle, registry: Registry): Handle {
  const largeBodies = new LargeBodies();
  // No two names differ only in case, and json-server does not tell the cases apart.
  const names = new Map([...registry.keys()].map((name) => [name.toLowerCase(), name]));
  const inCase = (name: string): string => names.get(name.toLowerCase()) ?? name;
  return (request) => {
    const { method } = request;
    const whole = request.target
      .replace(endForm, '$1')
      .replace(/(?<=^\/)[^/?]+/, inCase)
      .replace(/(?<=^\/[^/?]+\/[^/?]+\/)[^/?]+(?=\?|$)/, inCase);
    // json-server passes over the query of a write.
    const target = isSafe(method) ? whole : whole.replace(/\?.*/s, '');
    const nested = readNestedPath(target, registry);
    const isRead = method === 'GET' || method === 'HEAD';
    if (nested !== undefined && isRead)
      return handle(withChanges(request, { target: nested.list }));
    if (isSafe(method))
      return handle(target === request.target ? request : withChanges(request, { target }));
    let end = (): void => undefined;
    const reply = handle(
      withChanges(request, {
        fields: asJson(request.fields),
        target: nested?.path ?? target,
        async receiveBody(bytesMax) {
          const sent = await request.receiveBody(bytesMax);
          if (sent.length > limits.recordBytesMax)
            end = await largeBodies.enter(request, sent.length);
          const body = toJson(sent, request.fields.get('content-type'));
          return nested === undefined ? body : nested.withReference(body);
        },
      }),
    );
    return Promise.resolve(reply).finally(() => end());
  };
}

/** What a path such as `/posts/1/comments` is about. */
interface Nested {
  /** The target that lists the records. */
  readonly list: string;
  /** The path that creates one. */
  readonly path: string;
  /** Returns the body of a new record with its reference. */
  withReference(body: Buffer): Promise<Buffer>;
}

function readNestedPath(target: string, registry: Registry): Nested | undefined {
  const [, of = '', sent = '', below = '', query = ''] = nestedForm.exec(target) ?? [];
  const [parent, child] = [registry.get(of), registry.get(below)];
  if (!parent || !child || parent.isSingle || child.isSingle) return undefined;
  const name = referenceTo(parent, child);
  const condition = `${name}:eq=${sent.replaceAll(/[+&]/g, encodeURIComponent)}`;
  return {
    list: `/${below}?${condition}&${query}`,
    path: `/${below}`,
    async withReference(body) {
      const members = await parseLarge(body).catch(() => undefined);
      if (!isJsonObject(members)) return body;
      const [id = ''] = [...parseLeniently(condition).values()].flat();
      const record = readerFor(parent).withId(toId(parent, id));
      const value = record === undefined ? id : idOf(record);
      return Buffer.from(JSON.stringify({ ...members, [name]: value }));
    },
  };
}

/** Returns the id of a collection that a text stands for. */
const toId = ({ ids }: Declared, text: string): RecordId =>
  recordId(ids === undefined ? parseId(text) : text);

/** The slash at the end of a path, which `/posts/` and `/posts/1/` have. */
const endForm = /^(\/[^?]*[^/?])\/(?=\?|$)/;
const nestedForm = /^\/([^/?]+)\/([^/?]+)\/([^/?]+)(?:\?(.*))?$/s;

/** Returns a request with other values. */
function withChanges(request: Request, others: Partial<Request>): Request {
  const { id, method, basePath, address, fields, target } = request;
  return {
    ...{ id, method, basePath, address, fields, target },
    get caller() {
      return request.caller;
    },
    get signal() {
      return request.signal;
    },
    get encrypted() {
      return request.encrypted ?? false;
    },
    ...(request.abandon && { abandon: () => request.abandon?.() }),
    receiveBody: (bytesMax) => request.receiveBody(bytesMax),
    hold: (bytes) => request.hold(bytes),
    matched: (route) => request.matched(route),
    authenticated: (userId) => request.authenticated(userId),
    ...others,
  };
}
