import type { IncomingMessage } from 'node:http';
import { LocalRequest } from '../app/local-request.ts';
import { plainAddress } from '../base/network.ts';
import { OptionError } from '../config/options.ts';
import { bodyTooLarge, toProblemReply } from '../http/exchange.ts';
import { checkHead } from '../http/head.ts';
import { endUnread, isStreamed, type Reply, type Request as PlainCall } from '../http/message.ts';
import type { HttpServerOptions } from '../http/server-options.ts';
import { checkMembers, isPlain } from './given.ts';

export interface PlainRequest {
  /** `GET` if absent. */
  readonly method?: string | undefined;
  /** In origin-form, such as `/items/1`. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** The caller's address. Default: `127.0.0.1`. */
  readonly address?: string | undefined;
  /** Ends a response that would not end by itself, such as that to `GET /changes`. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the pieces of a streamed body. `body` is then empty. */
  readonly onPiece?: ((piece: string) => void) | undefined;
}

export interface PlainReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export interface FetchOptions {
  /** The caller's address, which your server knows. Default: `127.0.0.1`. */
  readonly address?: string | undefined;
}

export type InjectOptions = Pick<
  HttpServerOptions,
  'handle' | 'problemReply' | 'nextId' | 'basePath' | 'cors' | 'onError'
>;

const requestKinds = {
  method: 'text',
  target: 'text',
  headers: 'object',
  body: 'any',
  address: 'text',
  signal: 'object',
  onPiece: 'function',
} as const;

/**
 * Sends a request to a handler without a socket or a port. The head is checked as on a connection,
 * except for what Node's parser refuses: characters in header names and values, sizes and wrong
 * lengths. Unless `headers` has them, `Host` is `localhost` and `Content-Length` is computed.
 * @throws OptionError for an unknown member, and a target that is not in origin-form
 */
export async function inject(options: InjectOptions, plain: PlainRequest): Promise<PlainReply> {
  const advice = { fields: '; use headers', url: '; use target', path: '; use target' };
  checkMembers('app.inject', plain, requestKinds, advice);
  const { method = 'GET', target, headers = {}, body, address, signal, onPiece } = plain;
  if (target === undefined || !/^[/*]/.test(target))
    throw new OptionError(`Cannot use target "${target}": it begins with "/"`, 'target');
  if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new OptionError('Cannot use body: it is a text or bytes; use JSON.stringify', 'body');
  if (!isPlain(headers) || Object.values(headers).some((value) => typeof value !== 'string'))
    throw new OptionError('Cannot use headers: it is a plain object of texts', 'headers');
  const content = Buffer.from(body ?? '');
  const named = new Map([['host', 'localhost']]);
  if (body !== undefined) named.set('content-length', String(content.length));
  for (const [name, value] of Object.entries(headers)) named.set(name.toLowerCase(), value);
  const fields = [...named].flat();
  const receive = (): Buffer => content;
  const request = new LocalRequest(options, { method, target, fields, address, receive, signal });
  const reply = await answer(options, request);
  const { body: whole = '' } = reply;
  let text = '';
  if (!isStreamed(whole)) text = whole.toString();
  else if (method === 'HEAD') endUnread(whole);
  else {
    for await (const piece of whole) {
      if (onPiece === undefined) text += piece;
      else onPiece(piece);
    }
  }
  return {
    status: reply.status,
    headers: addFields(new Headers(), reply.fields),
    body: method === 'HEAD' ? '' : text,
  };
}

/**
 * Answers a Fetch API `Request`. `Host` is the URL's host, where `cairn` stands for this machine.
 * @throws OptionError for an unknown member; TypeError if the body has been read
 */
export async function answerFetch(
  options: InjectOptions,
  request: Request,
  given: FetchOptions = {},
): Promise<Response> {
  checkMembers('app.fetch', given, { address: 'text' });
  checkRequest('app.fetch', request);
  if (request.bodyUsed)
    throw new TypeError('Cannot answer the request: its body was read before app.fetch');
  const { method } = request;
  const { pathname, search } = new URL(request.url);
  const fields = listFields(request);
  const receive = (bytesMax: number): Promise<Buffer> => readBody(request, bytesMax);
  const target = pathname + search;
  const { address } = given;
  const call = new LocalRequest(options, { method, target, fields, address, receive, request });
  const reply = await answer(options, call);
  const { body } = reply;
  if (method !== 'HEAD') return toResponse(reply, isStreamed(body) ? toStream(body) : body);
  if (isStreamed(body)) endUnread(body);
  return toResponse(reply, undefined);
}

async function answer(options: InjectOptions, request: LocalRequest): Promise<Reply> {
  const { handle, cors } = options;
  let reply: Reply;
  try {
    request.target = checkHead(request, '1.1').target;
    reply = await handle(request);
  } catch (error) {
    reply = toProblemReply(error, request, options);
  }
  const fields = cors?.withCors(reply.fields, request.fields) ?? reply.fields;
  return { ...reply, fields: [...fields, 'X-Request-Id', request.id] };
}

/** @throws CairnError `content_too_large`; `malformed_request` if the body breaks off */
async function readBody(request: Request, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > bytesMax) throw bodyTooLarge(bytesMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns a body that is produced while it is read. Its reader may cancel. */
function toStream(body: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(Buffer.from(value));
    },
    async cancel() {
      await pieces.return?.();
    },
  });
}

/** @throws TypeError unless this is a `Request`, of any copy of the class */
function checkRequest(what: string, request: unknown): void {
  const { url, headers } = Object(request);
  if (typeof url === 'string' && typeof Object(headers)[Symbol.iterator] === 'function') return;
  throw new TypeError(`Cannot use ${String(request)}: ${what} takes a Request`);
}

/** Returns the part of a request that authentication needs. */
export function toCredentials(
  options: InjectOptions,
  request: Request | IncomingMessage,
): PlainCall {
  const receive = (): Buffer => Buffer.of();
  if (!('rawHeaders' in Object(request))) checkRequest('app.authenticate', request);
  if ('rawHeaders' in request) {
    const { method = 'GET', rawHeaders: fields, socket } = request;
    // A closed socket has no address, and its peer may have been anywhere.
    const address = plainAddress(socket.remoteAddress ?? '');
    return new LocalRequest(options, { method, target: '/', fields, address, receive });
  }
  const { method } = request;
  return new LocalRequest(options, { method, target: '/', fields: listFields(request), receive });
}

function listFields({ url, headers }: Request): string[] {
  const { host } = new URL(url);
  const fields = ['host', host === 'cairn' ? 'localhost' : host];
  for (const [name, value] of headers) if (name !== 'host') fields.push(name, value);
  return fields;
}

function addFields(headers: Headers, fields: readonly string[]): Headers {
  for (let at = 0; at < fields.length; at += 2)
    headers.append(fields[at] ?? '', fields[at + 1] ?? '');
  return headers;
}

function toResponse(
  { status, fields }: Reply,
  body: string | Buffer | ReadableStream<Uint8Array> | undefined,
): Response {
  const headers = addFields(new Headers(), fields);
  // A string would add a Content-Type.
  return new Response(typeof body === 'string' ? Buffer.from(body) : (body ?? null), {
    status,
    headers,
  });
}
