import { limits } from '../base/limits.ts';
import type { Breathe } from '../base/slices.ts';
import { parsePrefer } from '../http/accept.ts';
import { parseQuery } from '../http/head.ts';
import type { Reply, Request } from '../http/message.ts';
import { found, type CollectionResource, type Target } from '../resources/collection.ts';
import { parseFieldsQuery, parseListQuery, type ListQuery } from '../resources/list-query.ts';
import { lister } from '../resources/list.ts';
import type { Users } from '../resources/users.ts';
import { representationWriter } from '../schema/representation.ts';
import type { StoredRecord } from '../store/store.ts';
import { cookieOf } from './authenticate.ts';
import { entityTag, isUnchanged, noContent, notModified, preconditionOf, shown } from './replies.ts';
import type { Call, Handler } from './route.ts';
import type { CollectionOperation, RoutedCollection } from './routes.ts';

export interface CollectionHandlerOptions {
  readonly epoch: () => string;
  /** Shares the loop between long lists and everything else. */
  readonly breathe: Breathe;
}

/** What does the operations of `collectionRoutes`. */
export function collectionHandlers(
  { name, fields }: RoutedCollection,
  resource: Users | CollectionResource,
  { epoch, breathe }: CollectionHandlerOptions,
): { readonly [K in CollectionOperation]: Handler } {
  const write = representationWriter(fields);
  const read = lister<StoredRecord>(fields, resource.records, breathe);

  function targetOf({ request, route, principal, id }: Call): Target {
    const precondition = preconditionOf(request, epoch(), route.requireIfMatch === true);
    return { principal, id, precondition, address: request.address };
  }

  async function change(kind: 'replace' | 'patch', call: Call): Promise<Reply> {
    const { record, renewed } = await resource.change(targetOf(call), kind, call.body);
    return written(call.request, 200, record, renewed === undefined ? [] : ['Set-Cookie', cookieOf(renewed)]);
  }

  /** The record as it was written; without content for whoever has what it sent, and needs no copy (RFC 7240 §4.2). */
  function written(request: Request, status: 200 | 201, record: StoredRecord, fields: readonly string[]): Reply {
    const tag = entityTag(epoch(), record.revision);
    if (!prefers(request, 'return', 'minimal')) return shown(status, tag, write(record), fields);
    return noContent(['ETag', tag, 'Preference-Applied', 'return=minimal', ...fields], status === 200 ? 204 : 201);
  }

  /** What was answered to lists that are short, by their tags and targets. */
  const replies = new Map<string, Reply>();

  async function readList(target: string, asked: ListQuery, tag: string, withTotal: boolean): Promise<Reply> {
    const { body, next, total } = await read(asked, withTotal);
    const link = next === undefined ? [] : ['Link', `<${nextPage(target, next)}>; rel="next"`];
    const count = total === undefined ? [] : ['X-Total-Count', String(total), 'Preference-Applied', 'count=exact'];
    const reply = shown(200, tag, body, [...link, ...count]);
    if (typeof body === 'string' && body.length <= limits.keptListLengthMax) {
      const [oldest] = replies.keys();
      if (oldest !== undefined && replies.size === limits.keptListsMax) replies.delete(oldest);
      replies.set(`${tag} ${target}`, reply);
    }
    return reply;
  }

  return {
    list({ request, query }) {
      const withTotal = prefers(request, 'count', 'exact');
      // Read in the turn of the loop in which the list's view is taken, so the tag is that of what is shown.
      const plain = entityTag(epoch(), resource.records.revision);
      const counted = entityTag(epoch(), resource.records.revision, 'counted');
      const [tag, other] = withTotal ? [counted, plain] : [plain, counted];
      const known = replies.get(`${tag} ${request.target}`);
      if (known !== undefined) return isUnchanged(request, tag, other) ? notModified(tag) : known;
      const asked = parseListQuery(fields, parseQuery(query));
      if (isUnchanged(request, tag, other)) return notModified(tag);
      return readList(request.target, asked, tag, withTotal);
    },

    async create({ request, principal, body }) {
      const record = await resource.create(principal, body, request.address);
      return written(request, 201, record, ['Location', `/${name}/${record.id}`]);
    },

    read({ request, id, query }) {
      const record = found<StoredRecord>(resource.records.get(id));
      const names = query === '' ? undefined : parseFieldsQuery(fields, parseQuery(query));
      const tag = entityTag(epoch(), record.revision, names?.join('-'));
      if (isUnchanged(request, tag)) return notModified(tag);
      return shown(200, tag, (names === undefined ? write : representationWriter(fields, names))(record));
    },

    replace: (call) => change('replace', call),
    patch: (call) => change('patch', call),

    async remove(call) {
      await resource.remove(targetOf(call));
      return noContent();
    },
  };
}

/** The target of the page after this one: what was asked for as it was written, which is no longer than may be. */
function nextPage(target: string, cursor: string): string {
  const [path = '', query = ''] = target.split(/\?(.*)/s);
  const kept = query.split('&').filter((piece) => decodeURIComponent(piece.replace(/=.*/, '')) !== 'cursor');
  // What no URI may hold (RFC 3986 appendix A) could end the link before its time.
  const written = [...kept, `cursor=${cursor}`].join('&').replaceAll(/["<>\\^`{|}]/g, encodeURIComponent);
  return `${path}?${written}`;
}

/** Whether the caller has this preference (RFC 7240 §2). */
function prefers({ fields }: Request, preference: 'return' | 'count', value: string): boolean {
  const prefer = fields.get('prefer');
  return prefer !== undefined && parsePrefer(prefer).get(preference) === value;
}
