/** Serves clients of json-server 0.17 and 1.0 in its own dialect. */
import type { Principal } from '../../auth/access.ts';
import type { Body } from '../../api/body.ts';
import type { Call, Handler, Route, RoutedCollection } from '../../api/call.ts';
import { collectionRoutes, type CollectionOptions } from '../../api/collections.ts';
import { Operations } from '../../api/operations.ts';
import { unstoredReply } from '../../api/replies.ts';
import { declaredCollection } from '../../api/routes.ts';
import { CairnError } from '../../base/errors.ts';
import { isJsonObject, isScalar } from '../../base/json.ts';
import type { JsonValue } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { readId, type RecordId } from '../../base/record-id.ts';
import type {
  Declared,
  Entry,
  Registry,
  TableRules,
  CollectionTools,
} from '../../collections/declared.ts';
import {
  CollectionResource,
  localTarget,
  type Target,
  type EntryDraft,
  type NewEntry,
} from '../../collections/resource.ts';
import { Fields } from '../../http/fields.ts';
import {
  endUnread,
  isSafe,
  isStreamed,
  leavable,
  type Handle,
  type Reply,
  type Request,
} from '../../http/message.ts';
import { anyJson, referenceIn, type Field, type Shape } from '../../schema/field.ts';
import { readMore, toShown } from '../../schema/record.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { asJsonFields, LargeBodies, parseLarge, recordBytesMax, bodyToJson } from './bodies.ts';
import { foreignReader, parseLeniently, readPart } from './query.ts';
import { memberKey, findByText, referenceGroup, referenceTo, findTarget } from './relations.ts';

const groups = {
  // Runs several times in every write.
  [referenceGroup](entry: Entry): string[] {
    const keys: string[] = [];
    for (const members of [entry, readMore(entry)]) {
      for (const name in members) {
        const value = members[name];
        if (name.endsWith('Id') && isScalar(value)) keys.push(memberKey(name, value));
      }
    }
    return keys;
  },
};

export const rules: TableRules = { groups, recordBytesMax };

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

export function createRoutes(
  declared: Declared,
  registry: Registry,
  options: CollectionOptions,
  tools: CollectionTools & { readonly store: Store },
): Route[] {
  const collection = {
    ...withBodies(declaredCollection(declared)),
    readForeign: foreignReader(declared, registry),
  };
  const resource = new Resource(declared, tools, registry);
  const operations = new Operations(collection, resource, tools.store);
  return collectionRoutes(operations, options).map((own): Route => {
    const { operation } = own.of ?? {};
    if (operation === 'list')
      return { ...own, handle: (call) => listPage(call, (asked) => own.handle(asked)) };
    if (operation !== 'remove') return own;
    return {
      ...own,
      async handle(call) {
        await own.handle(call);
        return unstoredReply(200, '{}');
      },
    };
  });
}

const changeBody = <T>(body: Body<T>, change: (sent: JsonValue) => JsonValue): Body<T> => ({
  ...body,
  ...large,
  validate: (sent, by) => body.validate(change(sent), by),
});
const large = { bytesMax: recordBytesMax, parse: parseLarge };

/** The id of a record never changes. */
function withoutId(sent: JsonValue, isGiven = false): JsonValue {
  if (!isJsonObject(sent)) return sent;
  const { id, ...others } = sent;
  return isGiven && id ? sent : others;
}

function assignMembers(fields: Shape, stored: object, sent: JsonValue): JsonValue {
  const before = toShown(fields, stored);
  if (!isJsonObject(sent) || !isJsonObject(before)) return sent;
  const members = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(sent)) {
    const field: Field | undefined = Object.hasOwn(fields, name) ? fields[name] : anyJson;
    const { kind, nullable, optional }: Field = field ?? anyJson;
    // This field cannot be null, so null can only mean to remove it.
    if (value === null && optional && !nullable && kind !== 'json') members.delete(name);
    else if (name !== 'id' || !Object.hasOwn(fields, name)) members.set(name, value);
  }
  return Object.fromEntries(members);
}

/** Removing a record also removes the records that refer to it. */
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
          ...tx.of(from.records).referring(referenceGroup, memberKey(name, id)),
        ]) {
          const other = readId(referrer);
          if (removed.push([from, other]) > limits.referrersMax) throw tooMany;
          new CollectionResource(from, this.#tools).remove(tx, localTarget(other));
        }
      }
    }
  }
}

/** Members with a declared rule are not included. */
const findReferences = (to: Declared, registry: Registry) =>
  [...registry.values()]
    .map((from) => [from, referenceTo(to, from)] as const)
    .filter(([{ fields }, name]) => {
      const field = fields[name];
      const isDeclared = field !== undefined && referenceIn(field) !== undefined;
      return !isDeclared && findTarget(name, registry) === to;
    });

const tooMany = new CairnError(
  'still_referenced',
  `Cannot remove the record: over ${limits.referrersMax} records depend on it; remove some first`,
);

/** Adds an envelope if the query asks for a page of version 1.0. */
async function listPage(call: Call, list: Handler): Promise<Reply> {
  const { page, limit = 1, isEnvelope } = readPart(parseLeniently(call.query));
  const reply = await list(call);
  if (!isEnvelope || reply.status !== 200) return reply;
  const items = Number(new Fields(reply.fields).get('x-total-count'));
  const pages = Math.max(1, Math.ceil(items / limit));
  // A page beyond the last one is the last one.
  if (page > pages) return listPage({ ...call, query: `${call.query}&_page=${pages}` }, list);
  const prev = page > 1 ? page - 1 : null;
  const next = page < pages ? page + 1 : null;
  const places = JSON.stringify({ first: 1, prev, next, last: pages, pages, items });
  return { ...reply, body: wrapBody(`${places.slice(0, -1)},"data":`, reply.body) };
}

function wrapBody(start: string, body: Reply['body']): Reply['body'] {
  if (!isStreamed(body)) return `${start}${String(body)}}`;
  const pieces = async function* () {
    yield start;
    yield* body;
    yield '}';
  };
  return leavable(pieces(), () => endUnread(body));
}

/**
 * Returns a handler that rewrites requests of json-server's clients for `handle`:
 * `/posts/1/comments` means the comments of a post, `/posts/` is `/posts`, and bodies become JSON.
 */
export function translate(handle: Handle, registry: Registry): Handle {
  const largeBodies = new LargeBodies();
  // json-server ignores case, and collection names never differ only in case.
  const names = new Map([...registry.keys()].map((name) => [name.toLowerCase(), name]));
  const inCase = (name: string): string => names.get(name.toLowerCase()) ?? name;
  return (request) => {
    const { method } = request;
    const whole = request.target
      .replace(endForm, '$1')
      .replace(/(?<=^\/)[^/?]+/, inCase)
      .replace(/(?<=^\/[^/?]+\/[^/?]+\/)[^/?]+(?=\?|$)/, inCase);
    // json-server ignores the query of a write.
    const target = isSafe(method) ? whole : whole.replace(/\?.*/s, '');
    const nested = readNestedPath(target, registry);
    const read = nested?.list ?? target;
    if (isSafe(method))
      return handle(read === request.target ? request : withChanges(request, { target: read }));
    let end = (): void => undefined;
    const reply = handle(
      withChanges(request, {
        fields: asJsonFields(request.fields),
        target: nested?.path ?? target,
        async receiveBody(bytesMax) {
          const sent = await request.receiveBody(bytesMax);
          if (sent.length > limits.recordBytesMax)
            end = await largeBodies.enter(request, sent.length);
          const body = bodyToJson(sent, request.fields.get('content-type'));
          return nested === undefined ? body : nested.withReference(body);
        },
      }),
    );
    return Promise.resolve(reply).finally(() => end());
  };
}

function readNestedPath(target: string, registry: Registry) {
  const [, of = '', sent = '', below = '', query = ''] = nestedForm.exec(target) ?? [];
  const [parent, child] = [registry.get(of), registry.get(below)];
  if (!parent || !child || parent.isSingle || child.isSingle) return undefined;
  const name = referenceTo(parent, child);
  const condition = `${name}:eq=${sent.replaceAll(/[+&]/g, encodeURIComponent)}`;
  return {
    list: `/${below}?${condition}&${query}`,
    path: `/${below}`,
    async withReference(body: Buffer): Promise<Buffer> {
      const members = await parseLarge(body).catch(() => undefined);
      if (!isJsonObject(members)) return body;
      const [id = ''] = [...parseLeniently(condition).values()].flat();
      const record = findByText(parent, id);
      const value = record === undefined ? id : readId(record);
      return Buffer.from(JSON.stringify({ ...members, [name]: value }));
    },
  };
}

const endForm = /^(\/[^?]*[^/?])\/(?=\?|$)/;
const nestedForm = /^\/([^/?]+)\/([^/?]+)\/([^/?]+)(?:\?(.*))?$/s;

const withChanges = (request: Request, others: Partial<Request>): Request =>
  new Proxy(request, {
    get(it, name) {
      const value: unknown = Reflect.get(Object.hasOwn(others, name) ? others : it, name);
      return typeof value === 'function' ? value.bind(it) : value;
    },
  });
