import { CairnError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import { tooLarge, type ExchangerOptions } from './exchange.ts';
import { Fields } from './fields.ts';
import { checkHead } from './head.ts';
import type { Reply, Request, StreamedBody } from './message.ts';

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

/** The options of an `Exchanger` that matter without a connection. */
export type InjectOptions = Pick<ExchangerOptions, 'handle' | 'refuse' | 'nextId' | 'basePath'>;

/**
 * Sends a request to a handler without a socket or a port. The head is checked as on a
 * connection, except for what only Node's parser refuses: characters in names and values
 * of fields, sizes, and wrong lengths. `Host` is `localhost` and `Content-Length` is
 * right, unless `fields` has them.
 */
export async function inject(options: InjectOptions, plain: PlainRequest): Promise<PlainReply> {
  const { handle, refuse, nextId, basePath = '' } = options;
  const { method = 'GET', address = '127.0.0.1' } = plain;
  const content = Buffer.from(plain.body ?? '');
  const named = new Map([['host', 'localhost']]);
  if (plain.body !== undefined) named.set('content-length', String(content.length));
  for (const [name, value] of Object.entries(plain.fields ?? {}))
    named.set(name.toLowerCase(), value);
  const request: Request = {
    id: nextId(),
    method,
    target: plain.target,
    basePath,
    address,
    fields: new Fields([...named].flat()),
    signal: plain.signal ?? new AbortController().signal,
    get caller() {
      return callerKey(address, this.userId);
    },
    async receiveBody(bytesMax) {
      if (content.length > bytesMax) throw tooLarge(bytesMax);
      return content;
    },
  };
  let reply: Reply;
  try {
    const { target } = checkHead(request, '1.1');
    reply = await handle(Object.assign(request, { target }));
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    reply = refuse(error, request);
  }
  const { body = '', status } = reply;
  const sent =
    typeof body === 'string' || Buffer.isBuffer(body) ? body.toString() : await gather(body, plain);
  const fields = new Fields([...reply.fields, 'X-Request-Id', request.id]);
  return { status, fields, body: method === 'HEAD' ? '' : sent };
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
