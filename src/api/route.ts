import type { Access, Principal } from '../auth/access.ts';
import type { ErrorCode } from '../base/errors.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { negotiate } from '../http/accept.ts';
import type { Reply, Request } from '../http/message.ts';
import type { QueryParameter } from '../resources/list-query.ts';
import type { Shape } from '../schema/field.ts';

/** What a body must be. How it is validated and how the OpenAPI document describes it come from the same shape. */
export interface RouteBody {
  readonly shape: Shape;
  readonly purpose: 'create' | 'replace' | 'patch';
  /** What the OpenAPI document calls it. */
  readonly title: string;
  /** What may be sent instead. */
  readonly or?: { readonly shape: Shape; readonly title: string };
  /** The body may be absent. */
  readonly optional?: boolean;
}

export interface RouteReply {
  readonly status: 200 | 201 | 204;
  /** The JSON Schema of the content, named by its `title`; absent where there is none. */
  readonly schema?: JsonObject;
  /** What else the reply carries, such as `Location`. */
  readonly headers?: readonly string[];
}

/**
 * One row of the route table. The router, authorization, 405 and `Allow`, the OpenAPI document, the README's table and
 * the test of who may do what are all made from these rows. A row without `access` does not compile.
 */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly access: Access;
  readonly reply: RouteReply;
  readonly body?: RouteBody;
  /** The parameters of the query; absent where there is none. A page has none of its own, and lets others pass. */
  readonly query?: readonly QueryParameter[];
  /** Whether entity tags and preconditions apply. */
  readonly conditional?: boolean;
  /** Whether a write has to name the version that it changes. */
  readonly requireIfMatch?: boolean | undefined;
  /** The preference that is followed (RFC 7240): to answer without content, or to count all that a list could show. */
  readonly prefer?: 'return=minimal' | 'count=exact';
  /** Whether another site's page is refused although no cookie decides: where one would be given, or taken away. */
  readonly sameSite?: boolean;
  /** Where a browser that asks for a page without a session is sent. */
  readonly signInAt?: string;
  /** What else can go wrong, beside what the other columns imply (`problemsOf`). */
  readonly problems?: readonly ErrorCode[];
}

/** A request that has been matched, authenticated, authorized and read. */
export interface Call {
  readonly request: Request;
  /** The row that was matched. */
  readonly route: Route;
  readonly principal: Principal;
  /** The `{id}` of the path; 0 where the path has none, which no record has. */
  readonly id: number;
  /** As it was sent, without its "?". */
  readonly query: string;
  /** The parsed body; without members where the route takes none, or an optional one is absent. */
  readonly body: JsonValue;
}

/** Does what a route promises. @throws CairnError */
export type Handler = (call: Call) => Reply | Promise<Reply>;

const json = ['application/json'] as const;
const jsonOrPage = ['application/json', 'text/html'] as const;

/** Media types of a patch: a merge patch (RFC 7396) by its own name, or as the JSON that it is. */
export const patchTypes = ['application/merge-patch+json', 'application/json'] as const;

/** What a body may be sent as. */
export function mediaTypesOf({ purpose }: RouteBody): readonly string[] {
  return purpose === 'patch' ? patchTypes : json;
}

/** What the caller wants most of what a route can show; `undefined` where it wants none of it. */
export function preferredType(route: Route, { fields }: Request): 'application/json' | 'text/html' | undefined {
  return negotiate(fields.get('accept'), route.signInAt === undefined ? json : jsonOrPage);
}

/** What any request may meet before its route matters, and what a server may meet at any time. */
const always: readonly ErrorCode[] = [
  'malformed_request',
  'invalid_query',
  'request_timeout',
  'expectation_failed',
  'misdirected_request',
  'fields_too_large',
  'internal',
  'not_implemented',
  'overloaded',
  'draining',
  'http_version_not_supported',
];

const ofCredentials = ['invalid_token', 'invalid_session'] as const;
const ofSignedIn = ['authentication_required', ...ofCredentials] as const;

const byAccess: { readonly [access in Access]: readonly ErrorCode[] } = {
  public: [],
  optional: ofCredentials,
  user: ofSignedIn,
  admin: [...ofSignedIn, 'insufficient_scope'],
  self: ofSignedIn,
  owner: [...ofSignedIn, 'not_owner'],
  session: [...ofSignedIn, 'session_required'],
};

const ofBodies = ['malformed_json', 'content_too_large', 'unsupported_media_type', 'validation_failed'] as const;
const ofWrites = ['storage_full', 'store_failed', 'outcome_unknown', 'cross_site'] as const;

/** Every problem that a route can answer with: what its columns imply, and what the row says itself. */
export function problemsOf(route: Route): ReadonlySet<ErrorCode> {
  const { access, method, path, body, requireIfMatch = false, reply, problems = [] } = route;
  const writes = method !== 'GET';
  const hasTag = route.conditional === true || route.signInAt !== undefined;
  const where = (holds: boolean, ...codes: readonly ErrorCode[]) => (holds ? codes : []);
  return new Set([
    ...always,
    ...byAccess[access],
    ...where(path.includes('{id}'), 'not_found'),
    ...where(reply.schema !== undefined, 'not_acceptable'),
    ...where(body !== undefined, ...ofBodies),
    ...where(writes, ...ofWrites),
    ...where(hasTag || writes, 'precondition_failed'),
    ...where(requireIfMatch, 'precondition_required'),
    ...problems,
  ]);
}
