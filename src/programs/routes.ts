import { CairnError } from '../base/errors.ts';
import { localAdministrator } from '../auth/access.ts';
import type { Call, Method, Route } from '../api/call.ts';
import { newRecord, rawBody } from '../api/body.ts';
import { noContent, unstoredReply } from '../api/replies.ts';
import { readIdempotencyKey } from '../http/idempotency-key.ts';
import { isScalar, type JsonObject, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { didYouMean } from '../base/likeness.ts';
import type { Registry } from '../collections/declared.ts';
import { anyAccess } from '../collections/declare.ts';
import { OptionError } from '../config/options.ts';
import { keepUnsettable } from '../schema/setters.ts';
import { apiFields, type Reply, type Request } from '../http/message.ts';
import { parseQuery } from '../http/query.ts';
import { invalidParameter, repeated } from '../lists/filters.ts';
import { asJson, fieldMistakes, isObject } from '../schema/declaration.ts';
import type { IdKind, Shape } from '../schema/field.ts';
import { findKind, ruleViolation } from '../schema/kinds.ts';
import type { Transaction } from '../store/store.ts';
import { toCaller, type Caller } from './callers.ts';
import type { Program } from './collection.ts';
import { checkMembers, isThenable, jsonText, refusePromise } from './given.ts';
import type { NoPromise, Stored } from './types.ts';
import { programTransaction, type ProgramTransaction } from './write.ts';

/** A request to your own route: authenticated, authorized, read and validated. */
export interface RouteCall<B, Q, A, I = number | string> {
  /** The caller, for `as`. */
  readonly caller: Caller;
  /**
   * The `{id}` of the path: a number if the collection before it has numeric ids, such as `users`.
   */
  readonly id: I;
  readonly query: Q;
  readonly body: B;
  readonly signal: AbortSignal;
  readonly request: {
    /** The id in the log and in `X-Request-Id`. */
    readonly id: string;
    readonly method: string;
    readonly target: string;
    readonly address: string;
    /** Aborted when the caller leaves and when the app closes. */
    readonly signal: AbortSignal;
    /** Returns a header by its lower-case name. */
    header(name: string): string | undefined;
  };
  readonly app: A;
}

/** Your own route. */
export interface RouteDefinition<
  B extends Shape | 'bytes',
  Q extends Shape,
  A,
  P extends string = string,
> {
  readonly method: Method;
  /** May contain one `{id}`: `/tasks/{id}/finish`. */
  readonly path: P;
  /** `public`, `optional`, `user`, `session`, `admin` or a role. One of several is enough. */
  readonly access: string | readonly string[];
  /** A short description for the OpenAPI document. */
  readonly summary: string;
  /** The query parameters. If absent, a query is refused. */
  readonly query?: Q;
  /**
   * The fields of the JSON body; or `bytes` for any body, as a Buffer. If absent, no body is read.
   */
  readonly body?: B;
  /** The fields of the response, for the OpenAPI document. */
  readonly reply?: Shape;
  /** Returns the response: a value (200, as JSON), nothing (204), `reply(…)` or a `Response`. */
  handle?(call: RouteCall<BodyOf<B>, Stored<Q, []>, A, IdIn<P>>): unknown;
  /**
   * Responds from one transaction, which acts as the program. It is synchronous, may run more than
   * once and does nothing else. With POST, the route accepts an `Idempotency-Key`.
   */
  write?(tx: ProgramTransaction, call: RouteCall<BodyOf<B>, Stored<Q, []>, A, IdIn<P>>): NoPromise;
}

type BodyOf<B> = B extends 'bytes' ? Buffer : Stored<B, []>;

type IdIn<P extends string> = P extends `/users/{id}${string}` ? number : number | string;

export interface OwnRoute<A> extends Omit<
  RouteDefinition<Shape | 'bytes', Shape, A>,
  'handle' | 'write'
> {
  handle?(call: RouteCall<never, never, A, never>): unknown;
  write?(tx: ProgramTransaction, call: RouteCall<never, never, A, never>): unknown;
}

export const routeKinds = {
  method: 'text',
  path: 'text',
  access: 'any',
  summary: 'text',
  query: 'object',
  body: 'any',
  reply: 'object',
  handle: 'function',
  write: 'function',
} as const;
/** The kinds that parameters cannot have: each is a single value, and visible in the log. */
const manyValued: readonly string[] = ['list', 'object', 'json', 'password'];
const methods: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Checks a program's route, which may be plain JavaScript.
 * @throws OptionError that names the member
 */
export function checkRoute(route: OwnRoute<never>, roles: readonly string[]): void {
  checkMembers('defineRoute', route, routeKinds);
  const { method, path, access, summary, handle, write, body } = route;
  const refuse = (option: string, problem: string): never => {
    throw new OptionError(`Cannot use the route ${method} ${path}: ${problem}`, option);
  };
  const words = [...anyAccess, ...roles];
  if (!methods.includes(method)) refuse('method', `method must be one of ${methods.join(', ')}`);
  if (!/^(?:\/[\w.~-]+)+(?:\/\{id\}(?:\/[\w.~-]+)*)?$/.test(path))
    refuse('path', 'path must be like /tasks/{id}/finish');
  const given: readonly unknown[] = [access].flat();
  const wrong = given.findIndex((word) => typeof word !== 'string' || !words.includes(word));
  if (wrong !== -1 || given.length === 0) {
    const meant = didYouMean(String(given[wrong]), words);
    refuse('access', `access must be one or more of ${words.join(', ')}${meant}`);
  }
  if (!summary) refuse('summary', 'summary must be a text');
  if ((handle === undefined) === (write === undefined))
    refuse('handle', 'it needs either handle or write');
  if (body !== undefined && body !== 'bytes' && !isObject(body))
    refuse('body', 'body must be an object of fields, or "bytes"');
  for (const shape of ['query', 'body', 'reply'] as const) {
    const fields = route[shape] ?? {};
    for (const [name, field] of Object.entries(fields === 'bytes' ? {} : fields)) {
      const at = `/${shape}/${name}`;
      const [mistake] = fieldMistakes(asJson(field), at);
      if (mistake !== undefined) refuse(shape, mistake.join(' '));
      if (shape === 'query' && manyValued.includes(field.kind))
        refuse(shape, `${at} must be one value`);
    }
  }
  if (method === 'GET' && (body !== undefined || write !== undefined))
    refuse('method', 'GET has no body and writes nothing');
}

/** A response with its own status or headers. */
export class RouteReply {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>>) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/**
 * Returns a response with a status. A `body` other than text or bytes is sent as JSON.
 *
 * @example
 *     const accepted = reply(202, { queued: true }, { 'retry-after': '5' });
 */
export function reply(
  status: number,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): RouteReply {
  checkMembers('reply', { status, headers }, { status: 'number', headers: 'object' });
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new OptionError(`Cannot use status ${status}: must be from 200 to 599`, 'status');
  return new RouteReply(status, body, headers);
}

export interface RouteTools {
  readonly registry: Registry;
  /** The controllers that abort handlers when the app closes. */
  readonly waiting: Set<AbortController>;
  /** Returns the app, which exists once a request arrives. */
  readonly running: () => Running;
}

export interface Running {
  readonly app: unknown;
  readonly program: Program;
}

export function toRows(routes: readonly OwnRoute<never>[], tools: RouteTools): Route[] {
  return routes.map((own) => {
    const { method, path, access, summary, query, body, reply: shown } = own;
    const isKept = own.write !== undefined && method === 'POST';
    return {
      operationId:
        method.toLowerCase() + path.replaceAll(/\W+(\w?)/g, (_, one: string) => one.toUpperCase()),
      summary,
      tag: path.split('/')[1] ?? '',
      success: { content: shown, ...(isKept && { headers: ['Idempotency-Replayed'] }) },
      method,
      path,
      access,
      ids: idsIn(path, tools.registry),
      ...(body && {
        body: body === 'bytes' ? rawBody : newRecord({ shape: body, keepUnsettable }),
      }),
      query,
      handle: (call) => answer(own, call, tools),
    };
  });
}

/** Returns the kind of a path's `{id}`: an id of the last collection before it, or any text. */
function idsIn(path: string, registry: Registry): IdKind | undefined {
  const [before = ''] = path.split('/{id}');
  const name = before.split('/').findLast((word) => word === 'users' || registry.has(word));
  return name === undefined ? 'text' : registry.get(name)?.ids;
}

function answer(own: OwnRoute<never>, call: Call, tools: RouteTools): Reply | Promise<Reply> {
  const { request, principal } = call;
  const { app, program } = tools.running();
  const closing = new AbortController();
  const given = toHandlerCall(call, parseParameters(own.query, call.query), app, closing.signal);
  // The route's shapes have checked its query and body.
  const typed = given as unknown as RouteCall<never, never, never, never>;
  if (own.write === undefined) {
    const value = own.handle?.(typed);
    if (!isThenable(value) && !(value instanceof Response)) return toReply(value);
    tools.waiting.add(closing);
    return handled(own, value, typed, request).finally(() => tools.waiting.delete(closing));
  }
  const key = call.route.method === 'POST' ? readIdempotencyKey(request) : undefined;
  const line = `${call.route.method} ${request.target}`;
  const keyed =
    key === undefined ? undefined : { caller: request.caller, key, line, body: call.sent };
  const work = (tx: Transaction): Reply => {
    const value = own.write?.(programTransaction(tx, localAdministrator, program), typed);
    refusePromise(value, `The write of ${own.path}`);
    if (value instanceof Response)
      throw new TypeError(`The write of ${own.path} returned a Response: use reply`);
    const answered = toReply(value);
    if (Buffer.isBuffer(answered.body))
      throw new TypeError(
        `The write of ${own.path} returned bytes, which are not kept: use handle`,
      );
    return answered;
  };
  return program.data.writes.answer(principal, keyed, work, request.caller);
}

async function handled(
  own: OwnRoute<never>,
  later: unknown,
  { request }: RouteCall<never, never, never, never>,
  holder: Pick<Request, 'hold'>,
): Promise<Reply> {
  const value = await later;
  if (!(value instanceof Response)) return toReply(value);
  const { status, headers, url } = value;
  if (status === 0) throw new TypeError(`The handle of ${own.path} returned Response.error()`);
  const body = await readBytes(value, request.signal, holder);
  // fetch has decoded the responses that it receives.
  const received = [...headers].filter(([name]) => url === '' || name !== 'content-encoding');
  return sentAs(status, new Headers(received), body);
}

/**
 * Reads a response.
 * @throws TypeError if it is too long; CairnError `draining` if the signal aborts it,
 *   `overloaded` if the caller's share has no room for it
 */
async function readBytes(
  { body }: Response,
  signal: AbortSignal,
  holder: Pick<Request, 'hold'>,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  if (body === null) return Buffer.concat(chunks);
  const reader = body.getReader();
  // Tells the source of the bytes, such as another server, that nobody waits for them.
  const cancel = (): void => void reader.cancel().catch(() => undefined);
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel);
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // A part must not look like the whole.
      if (signal.aborted)
        throw new CairnError('draining', 'Cannot respond: the server is stopping');
      if (done) return Buffer.concat(chunks);
      length += value.length;
      chunks.push(value);
      if (length > limits.responseBytesMax)
        throw new TypeError(`The Response is longer than ${limits.responseBytesMax} bytes`);
      // Concatenation needs the bytes twice.
      holder.hold(2 * length + chunks.length * chunkBytes);
    }
  } catch (error) {
    cancel();
    throw error;
  }
}

/** The memory of a chunk in addition to its bytes. A chunk may be a single byte. */
const chunkBytes = 256;

/** Turns a handler's result into a response. @throws TypeError for anything but JSON */
function toReply(value: unknown): Reply {
  if (value === undefined) return noContent();
  if (!(value instanceof RouteReply)) return unstoredReply(200, jsonText(value));
  const { status, body, headers } = value;
  const named = new Headers({ 'cache-control': 'no-store' });
  const content = toContent(body);
  const isPlain = typeof body === 'string' || body instanceof Uint8Array;
  if (content !== undefined)
    named.set('content-type', isPlain ? 'text/plain; charset=utf-8' : 'application/json');
  // An impossible header value throws here, before anything is written or sent.
  for (const [name, one] of Object.entries(headers)) named.set(name, one);
  return sentAs(status, named, content);
}

/** Returns bytes and text unchanged, and anything else as JSON. @throws TypeError */
function toContent(body: unknown): string | Buffer | undefined {
  if (body === undefined || typeof body === 'string') return body;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return jsonText(body);
}

/**
 * Returns a response without the headers that the sender adds, and without content if its status
 * forbids it.
 */
function sentAs(status: number, headers: Headers, body: string | Buffer | undefined): Reply {
  const fields = [...headers].filter(([name]) => !ofSender.has(name)).flat();
  const content = bodyless.has(status) ? undefined : body;
  // In pairs. The route's headers replace ours, because two policies would both apply.
  const guards = apiFields.filter((_, at) => !headers.has(apiFields[at - (at % 2)] ?? ''));
  return { status, fields: [...fields, ...guards], body: content };
}

/** The responses without content (RFC 9110 §15.3.5, §15.3.6 and §15.4.5). */
const bodyless: ReadonlySet<number> = new Set([204, 205, 304]);

/** The headers of a connection (RFC 9110 §7.6.1), and the ones that every response gets. */
const ofSender: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'content-length', 'date', 'x-request-id'],
]);

function toHandlerCall(
  { id, principal, route, body, sent, request }: Call,
  query: unknown,
  app: unknown,
  closing: AbortSignal,
): RouteCall<unknown, unknown, unknown> {
  const { fields, method, target, address } = request;
  let signal: AbortSignal | undefined;
  const call: RouteCall<unknown, unknown, unknown> = {
    ...{ id, query, app, body: route.body?.isRaw ? sent : body },
    get caller() {
      return toCaller(principal);
    },
    get signal() {
      return (signal ??= AbortSignal.any([request.signal, closing]));
    },
    request: {
      ...{ id: request.id, method, target, address },
      get signal() {
        return call.signal;
      },
      header: (name) => fields.get(name),
    },
  };
  return call;
}

/** @throws CairnError `invalid_query` */
function parseParameters(shape: Shape | undefined, query: string): JsonObject {
  const values: { [name: string]: Scalar } = {};
  if (shape === undefined) return values;
  for (const [name, texts] of parseQuery(query)) {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    const known = Object.keys(shape).join(', ');
    if (field === undefined)
      throw invalidParameter(name, `is not a known parameter; this path takes ${known}`);
    const [text = '', ...others] = texts;
    if (others.length > 0) throw repeated(name);
    const value = findKind(field).operand(text, field);
    if (!isScalar(value)) throw invalidParameter(name, value.detail);
    const violation = ruleViolation(field, value);
    if (violation !== undefined) throw invalidParameter(name, violation.detail);
    values[name] = value;
  }
  for (const [name, { default: fallback, optional }] of Object.entries(shape)) {
    if (Object.hasOwn(values, name)) continue;
    if (isScalar(fallback)) values[name] = fallback;
    else if (!optional) throw invalidParameter(name, 'is required');
  }
  return values;
}
