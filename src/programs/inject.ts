import { callerKey } from '../base/network.ts';
import { bodyTooLarge, problemOf } from '../http/exchange.ts';
import { Fields } from '../http/fields.ts';
import { checkHead } from '../http/head.ts';
import type { Reply, Request, StreamedBody } from '../http/message.ts';
import type { HttpServerOptions } from '../http/server-options.ts';

/** A request in plain values. */
export interface PlainRequest {
  /** `GET` if absent. */
  readonly method?: string | undefined;
  /** In origin-form, such as `/items/1`. */
  readonly target: string;
  readonly fields?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** The caller's address; `127.0.0.1` if absent. */
  readonly address?: string | undefined;
  /** Ends a reply that has no end, such as that of `GET /changes`. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each piece of a streamed body as it comes. `body` is then empty. */
  readonly onPiece?: ((piece: string) => void) | undefined;
}

/** A reply with its whole body. */
export interface PlainReply {
  readonly status: number;
  readonly fields: Fields;
  readonly body: string;
}

/** The options of an `HttpServer` that matter without a connection. */
export type InjectOptions = Pick<
  HttpServerOptions,
  'handle' | 'problemReply' | 'nextId' | 'basePath' | 'cors' | 'onError'
>;

/**
 * Sends a request to a handler without a socket or a port. The head is checked as on a
 * connection, except for what only Node's parser refuses: characters in names and values
 * of fields, sizes, and wrong lengths. `Host` is `localhost` and `Content-Length` is
 * right, unless `fields` has them.
 */
export async function inject(options: InjectOptions, plain: PlainRequest): Promise<PlainReply> {
  const { handle, cors } = options;
  const request = new InjectedRequest(plain, options);
  let reply: Reply;
  try {
    request.target = checkHead(request, '1.1').target;
    reply = await handle(request);
  } catch (error) {
    reply = problemOf(error, request, options);
  }
  const { body = '', status } = reply;
  const sent =
    typeof body === 'string' || Buffer.isBuffer(body) ? body.toString() : await gather(body, plain);
  const fields = new Fields([
    ...(cors?.withCors(reply.fields, request.fields) ?? reply.fields),
    ...['X-Request-Id', request.id],
  ]);
  return { status, fields, body: request.method === 'HEAD' ? '' : sent };
}

class InjectedRequest implements Request {
  readonly id: string;
  readonly method: string;
  readonly basePath: string;
  readonly address: string;
  readonly fields: Fields;
  readonly signal: AbortSignal;
  target: string;
  caller: string;
  readonly #content: Buffer;

  constructor(plain: PlainRequest, { nextId, basePath = '' }: InjectOptions) {
    const { method = 'GET', target, address = '127.0.0.1', signal, body } = plain;
    this.#content = Buffer.from(body ?? '');
    const named = new Map([['host', 'localhost']]);
    if (body !== undefined) named.set('content-length', String(this.#content.length));
    for (const [name, value] of Object.entries(plain.fields ?? {}))
      named.set(name.toLowerCase(), value);
    this.id = nextId();
    this.method = method;
    this.target = target;
    this.basePath = basePath;
    this.address = address;
    this.caller = callerKey(address, undefined);
    this.fields = new Fields([...named].flat());
    this.signal = signal ?? new AbortController().signal;
  }

  async receiveBody(bytesMax: number): Promise<Buffer> {
    if (this.#content.length > bytesMax) throw bodyTooLarge(bytesMax);
    return this.#content;
  }

  /** No log has an embedder's own requests. */
  matched(): void {}

  /** They count in no share of requests in flight. */
  authenticated(userId: number | undefined): void {
    this.caller = callerKey(this.address, userId);
  }
}

async function gather(body: StreamedBody, { method, onPiece }: PlainRequest): Promise<string> {
  let text = '';
  for await (const piece of body) {
    if (method === 'HEAD') break;
    if (onPiece === undefined) text += piece;
    else onPiece(piece);
  }
  return text;
}
