import type { Cell, Principal } from '../auth/access.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import type { Reply, Request } from '../http/message.ts';
import type { CollectionAccess } from '../collections/declaration.ts';
import type { Declared, Embedded } from '../collections/declared.ts';
import type { ListQuery } from '../lists/query.ts';
import type { IdKind, Shape } from '../schema/field.ts';
import type { Body } from './body.ts';

/**
 * One row of the route table, with its handler and a body of type `B`. The router, authorization,
 * validation, 405 and `Allow`, the OpenAPI document, the README's table and the access test are all
 * derived from these rows. A row without `access` does not compile.
 */
export interface Route<B = unknown> {
  /** The operation's name, such as `listItems`. Absent for files of the page. */
  readonly operationId?: string;
  /** True if API keys are refused, because the route is for credentials. */
  readonly refusesKeys?: true;
  readonly of?: { readonly collection: RoutedCollection; readonly operation: Operation };
  /** A summary. This and the following members default to those of its operation. */
  readonly summary?: string;
  /** The group in the OpenAPI document. Default: `sign-in`. */
  readonly tag?: string;
  readonly titles?: readonly string[];
  readonly success?: Success;
  /** The kind of `{id}` in the path. Default: a record's number. */
  readonly ids?: IdKind | undefined;
  readonly method: Method;
  readonly path: string;
  readonly access: Cell;
  /** True if the route is served even when the caller's share, or the whole budget, is used up. */
  readonly isAlwaysServed?: true;
  /** If absent, no body is read. */
  readonly body?: Body<B>;
  /** The parameters, or `read` for a record's. If absent, a query is refused. */
  readonly query?: Shape | 'read' | 'ignored' | undefined;
  /** True if entity tags and preconditions apply. */
  readonly conditional?: boolean;
  /** True if a write must name the revision that it changes (428). */
  readonly requireIfMatch?: boolean | undefined;
  /**
   * The sites whose pages may call even without a cookie: `own` for only this one, because the
   * route sets a cookie; `allowed` to add the allowed origins. Default: any.
   */
  readonly pages?: 'own' | 'allowed';
  // A method, because TypeScript compares methods loosely, so that rows with different bodies fit
  // into one list. This is sound: a handler only gets bodies that its own row has validated.
  handle(call: Call<B>): Reply | Promise<Reply>;
}

export interface Success {
  /** Default: 200. */
  readonly status?: 201 | 204;
  /** The fields of the content, or its schema's title. If absent: any JSON, or nothing with 204. */
  readonly content?: Shape | ContentTitle | undefined;
  /** Default: JSON. */
  readonly mediaType?: string;
  /**
   * Headers that not all responses have, such as `Location`. With `Idempotency-Replayed`, a POST
   * takes an `Idempotency-Key`.
   */
  readonly headers?: readonly string[];
}

/** The schemas that rows of the route table name. */
export type ContentTitle =
  | 'ApiKeys'
  | 'Dashboard'
  | 'Document'
  | 'Health'
  | 'MadeApiKey'
  | 'NewInvitation'
  | 'Sessions'
  | 'StartedSession'
  | 'Status'
  | 'Text'
  | 'Tokens'
  | 'User';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The operations on a collection's records, including the creation of many at once. */
export type Operation = keyof CollectionAccess | 'createMany';

/**
 * A collection, or the users, with the bodies of its routes. `N` is a validated body that creates
 * records; `C` changes one.
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
  /** Reads a query in another server's form; `undefined` if it has Cairn's form. */
  readonly readForeign?: (query: string, operation: 'list' | 'read') => ForeignQuery | undefined;
}

export interface ForeignQuery {
  readonly query: ListQuery;
  readonly embedded?: Embedded | undefined;
  links(request: Request, total: number): string[];
}

export interface Call<B = unknown> {
  readonly request: Request;
  readonly route: Route;
  readonly principal: Principal;
  /** The `{id}` of the path. Without one, and for an invalid one, an id that no record has. */
  readonly id: RecordId;
  readonly query: string;
  /** The body as sent; empty if the route reads none. */
  readonly sent: Buffer;
  readonly body: B;
}

/** @throws CairnError */
export type Handler<B = unknown> = (call: Call<B>) => Reply | Promise<Reply>;

/** Checks at compile time that a handler takes what its row's body validates. */
export const withBody = <B>(route: Route<B> & { readonly body: Body<B> }): Route => route;

/**
 * Decodes a percent-encoded id once, without normalizing it. Invalid UTF-8 is not the id of any
 * record.
 */
export function idInPath(sent: string, ids: IdKind | undefined): RecordId {
  if (ids === undefined) return recordId(parseId(sent));
  try {
    const text = decodeURIComponent(sent);
    // A number has only one spelling.
    const isNumber = ids === 'integer' && String(parseInt(text)) === text;
    return recordId(isNumber && Number.isSafeInteger(Number(text)) ? Number(text) : text);
  } catch {
    return recordId('');
  }
}

/** Parses an id in a path or a query. Returns 0, which no record has, for any other text. */
export function parseId(text: string): number {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : 0;
}
