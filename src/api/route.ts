import type { Access, Principal } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { negotiate } from '../http/accept.ts';
import type { Reply, Request } from '../http/message.ts';
import type { CollectionAccess } from '../collections/collection.ts';
import type { QueryParameter } from '../lists/filters.ts';
import type { Shape } from '../schema/field.ts';
import type { Body } from './body.ts';

/** What a route can show. */
type MediaType = 'application/json' | 'text/html' | 'text/event-stream';

/** What a route answers when it succeeds. */
export interface RouteReply {
  readonly status: 200 | 201 | 204;
  /** A sentence for the OpenAPI document. */
  readonly description: string;
  /** The JSON Schema of the content. Absent: there is no content. */
  readonly schema?: JsonObject;
  /** The type of the content. Absent: JSON. */
  readonly mediaType?: MediaType;
  /** Fields that the reply carries beside those of every reply, such as `Location`. */
  readonly headers?: readonly string[];
}

/**
 * One row of the route table, with a body of type `B`. The router, authorization, validation, 405 and `Allow`, the
 * OpenAPI document, the README's table and the test of who may do what are all made from these rows. A row without
 * `access` does not compile.
 */
export interface Route<B = unknown> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly access: Access;
  readonly summary: string;
  /** Absent: the route reads no body. */
  readonly body?: Body<B>;
  /** The query's parameters. Absent: a query is refused. Empty: a query is ignored, as for a page. */
  readonly query?: readonly QueryParameter[];
  readonly reply: RouteReply;
  /** Whether entity tags and preconditions apply. */
  readonly conditional?: boolean;
  /** Whether a write has to name the version that it changes (428). */
  readonly requireIfMatch?: boolean | undefined;
  /** The preference that is honoured (RFC 7240): the number of all records that pass the filters. */
  readonly prefer?: 'count=exact';
  /** Whether an `Idempotency-Key` makes it safe to send the request again. */
  readonly retriable?: boolean;
  /** Whether pages of other sites are refused even without a cookie, since one is set or removed here. */
  readonly sameSite?: boolean;
  /** Where a browser without a session is sent to when it asks for a page. */
  readonly signInAt?: string;
  /** The statuses of refusals that the other columns do not imply (`statusesOf`). */
  readonly refusals?: readonly number[];
}

/** What every collection offers; users are a collection, too. */
export type CollectionOperation = keyof CollectionAccess;

/** A collection as its routes see it. A validated body that creates a record is an `N`, one that changes it a `C`. */
export interface RoutedCollection<N, C> {
  readonly name: string;
  readonly singular: string;
  readonly fields: Shape;
  /** Whether a list can be asked for the caller's own records: they have owners, and it looks at credentials. */
  readonly hasOwners?: boolean;
  /** Whether an array of bodies creates as many records. */
  readonly createsMany?: boolean;
  readonly access: { readonly [operation in CollectionOperation]: Access };
  readonly bodies: { readonly create: Body<N>; readonly replace: Body<C>; readonly patch: Body<C> };
  /** Fields of the reply to a change, beside the usual ones. */
  readonly changeHeaders?: readonly string[];
  /** The statuses of refusals of writes that other collections do not have. */
  readonly refusals?: readonly number[];
}

/** A reply with content. */
export function content(status: 200 | 201, description: string, schema: JsonObject, ...headers: string[]): RouteReply {
  return { status, description, schema, headers };
}

/** The reply of a change feed. */
export const eventContent: RouteReply = {
  status: 200,
  description: 'Server-sent events: `created`, `replaced`, `removed`; `reset` where the lists have to be read anew.',
  schema: { type: 'string' },
  mediaType: 'text/event-stream',
  headers: ['X-Accel-Buffering'],
};

export const sinceParameter: QueryParameter = {
  name: 'since',
  description: 'The id of the last event that you know of. `Last-Event-ID` comes before it.',
  schema: { type: 'string' },
};

/** A request that was matched, authenticated, authorized, read and validated. */
export interface Call<B = unknown> {
  readonly request: Request;
  readonly route: Route;
  readonly principal: Principal;
  /** The `{id}` of the path. Where the path has none, it is 0, which no record has. */
  readonly id: number;
  /** The query as it was sent, without its "?". */
  readonly query: string;
  /** The validated body. */
  readonly body: B;
}

/** The type of a route's validated body. */
export type BodyOf<R extends Route> = R extends { readonly body: Body<infer B> } ? B : undefined;

/** Does what the route `R` promises. @throws CairnError */
export type Handler<R extends Route = Route> = (call: Call<BodyOf<R>>) => Reply | Promise<Reply>;

/** A route and its handler. */
export interface Endpoint<B = unknown> {
  readonly route: Route<B>;
  // A method, because TypeScript compares methods loosely: endpoints of different bodies fit into one list. That is
  // sound, since the pipeline gives a handler nothing but what its own route has validated.
  handle(call: Call<B>): Reply | Promise<Reply>;
}

/** Binds routes to their handlers by key. A missing handler, an extra one, or a wrong body does not compile. */
export function bind<R extends { readonly [key in keyof R]: Route }>(
  routes: R,
  handlers: { readonly [key in keyof R]: Handler<R[key]> },
): Endpoint[] {
  const endpoints: Endpoint[] = [];
  for (const key in routes) endpoints.push({ route: routes[key], handle: handlers[key] });
  return endpoints;
}

/** The id in a path or a query; 0, which no record has, for anything else. */
export function parseId(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : 0;
}

/** The JSON Schema of an id. */
export const idSchema: JsonObject = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

const json = ['application/json'] as const;
const jsonOrPage = ['application/json', 'text/html'] as const;

/** The media type that the caller prefers of those that the route can show; `undefined` if it accepts none. */
export function preferredType(route: Route, { fields }: Request): MediaType | undefined {
  const { reply: { mediaType }, signInAt } = route;
  const shown = mediaType !== undefined ? [mediaType] : signInAt === undefined ? json : jsonOrPage;
  return negotiate<MediaType>(fields.get('accept'), shown);
}

