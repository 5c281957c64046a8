import type { Cell, Principal } from '../auth/access.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import type { Reply, Request } from '../http/message.ts';
import type { CollectionAccess } from '../collections/declaration.ts';
import type { Declared, Embedded } from '../collections/registry.ts';
import type { ListQuery } from '../lists/query.ts';
import type { IdKind, Shape } from '../schema/field.ts';
import type { Body } from './body.ts';

/**
 * One row of the route table, with its handler and a body of type `B`. The router, authorization,
 * validation, 405 and `Allow`, the OpenAPI document, the README's table and the access
 * test are all derived from these rows. A row without `access` does not compile.
 */
export interface Route<B = unknown> {
  /** The name of the operation, such as `listItems`. Absent: a file of the page. */
  readonly operationId?: string;
  /** True if API keys are refused, because the route is for credentials. */
  readonly refusesKeys?: true;
  /** The collection to which the route belongs, and the operation on it. Absent: none. */
  readonly of?: { readonly collection: RoutedCollection; readonly operation: Operation };
  /** What it does. Absent: this follows from the operation on the collection, as the rest below. */
  readonly summary?: string;
  /** The group of the route in the OpenAPI document. Absent: `sign-in`. */
  readonly tag?: string;
  /** The titles of the shapes of its body. */
  readonly titles?: readonly string[];
  readonly success?: Success;
  /** True if a program's route takes an `Idempotency-Key`. */
  readonly isKept?: boolean;
  /** The kind of the `{id}` in the path; absent: the number of a record. */
  readonly ids?: IdKind | undefined;
  readonly method: Method;
  readonly path: string;
  readonly access: Cell;
  /** True if the route is served even if the caller's share, or everything, is used up. */
  readonly isAlwaysServed?: true;
  /** Absent: the route reads no body. */
  readonly body?: Body<B>;
  /** The parameters, or `read` if they are a list's. Absent: a query is refused. */
  readonly query?: Shape | 'read' | 'ignored' | undefined;
  /** True if entity tags and preconditions apply. */
  readonly conditional?: boolean;
  /** True if a write must name the version that it changes (428). */
  readonly requireIfMatch?: boolean | undefined;
  /**
   * The sites with pages that may call even without a cookie: only this one, because the route
   * sets a cookie, or also those of allowed origins. Absent: any.
   */
  readonly pages?: 'own' | 'allowed';
  // A method, because TypeScript compares methods loosely: rows with different bodies fit into one
  // list. This is sound, because a handler only gets bodies that its own row has validated.
  handle(call: Call<B>): Reply | Promise<Reply>;
}

/** The response of a route that succeeds. */
export interface Success {
  /** Absent: 200. */
  readonly status?: 201 | 204;
  /** The fields of the content, or the title of its schema. Absent: any JSON, or none with 204. */
  readonly content?: Shape | string | undefined;
  /** Absent: JSON. */
  readonly mediaType?: string;
  /** Header fields that not all responses have, such as `Location`. */
  readonly headers?: readonly string[];
}

/** The methods of routes. HEAD and OPTIONS follow from them. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The operations on a collection: each record by itself, and many at once. */
export type Operation = keyof CollectionAccess | 'createMany';

/**
 * A collection, that of users too, with the bodies of its routes. `N` is a validated body that
 * creates records, `C` one that changes a record.
 */
export interface RoutedCollection<N = unknown, C = unknown> extends Pick<
  Declared,
  | 'name'
  | 'noun'
  | 'singular'
  | 'fields'
  | 'ids'
  | 'hasOwners'
  | 'shapeTag'
  | 'references'
  | 'embeddables'
  | 'isBuiltIn'
  | 'isSingle'
  | 'ownerRemoved'
  | 'display'
  | 'group'
  | 'hidden'
> {
  readonly access: CollectionAccess;
  readonly isUsers?: true;
  readonly bodies: { readonly create: Body<N>; readonly replace: Body<C>; readonly patch: Body<C> };
  /** Reads a query in the words of another server. `undefined`: it is in the words of Cairn. */
  readonly readForeign?: (query: string, operation: 'list' | 'read') => ForeignQuery | undefined;
}

/** A query that clients of another server send. */
export interface ForeignQuery {
  readonly query: ListQuery;
  readonly embedded?: Embedded | undefined;
  /** Returns the `Link` field of a list, as a name and a value, or nothing. */
  links(request: Request, total: number): string[];
}

/** A request that was matched, authenticated, authorized, read and validated. */
export interface Call<B = unknown> {
  readonly request: Request;
  readonly route: Route;
  readonly principal: Principal;
  /**
   * The `{id}` of the path; that of no record, if it is not an id or the path has none. If ids
   * may be texts, it is the text of one.
   */
  readonly id: RecordId;
  /** The query as sent, without its "?". */
  readonly query: string;
  /** The body as it was sent; empty if the route reads none. */
  readonly sent: Buffer;
  /** The validated body. */
  readonly body: B;
}

/** Carries out the operation of a route with a body of `B`. @throws CairnError */
export type Handler<B = unknown> = (call: Call<B>) => Reply | Promise<Reply>;

/** Returns a row with a body: its handler takes what the body validates, or does not compile. */
export const withBody = <B>(route: Route<B> & { readonly body: Body<B> }): Route => route;

/**
 * Returns the id in a path, which was sent percent-encoded. Nothing is decoded twice or normalised;
 * what is no encoding of UTF-8 is the id of no record.
 */
export function idInPath(sent: string, ids: IdKind | undefined): RecordId {
  if (ids === undefined) return recordId(parseId(sent));
  try {
    const text = decodeURIComponent(sent);
    // A number has one spelling.
    const isNumber = ids === 'integer' && String(parseInt(text)) === text;
    return recordId(isNumber && Number.isSafeInteger(Number(text)) ? Number(text) : text);
  } catch {
    return recordId('');
  }
}

/**
 * Parses an id in a path or a query. Returns 0, which no record has, for any other text.
 */
export function parseId(text: string): number {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : 0;
}
