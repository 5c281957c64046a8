import { CairnError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import { tooLarge } from './exchange.ts';
import { Fields } from './fields.ts';
import { checkHead } from './head.ts';
import type { Handle, Refuse, Reply, Request, StreamedBody } from './message.ts';

/** A request in plain values. */
export interface PlainRequest {
  /** `GET` if absent. */
  readonly method?: string | undefined;
  /** In origin-form, such as `/items/1`. */
  readonly target: string;
  readonly fields?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** The caller's; `127.0.0.1` if absent. */
  readonly address?: string | undefined;
  /** Ends a reply that has no end, such as that of `GET /changes`. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each piece of a streamed body as it comes; `body` is then empty. */
  readonly onPiece?: ((piece: string) => void) | undefined;
}

/** A reply with its whole body. */
export interface PlainReply {
  readonly status: number;
  readonly fields: Fields;
  readonly body: string;
}

/**
 * Asks a handler without a socket or a port. The head is checked like one that arrived on a connection, except for what
 * Node's parser refuses before: characters in names and values of fields, sizes, wrong lengths. `Host` is `localhost`
 * and `Content-Length` is right, unless `fields` say otherwise.
 */
export async function inject(
  handle: Handle, refuse: Refuse, nextId: () => string, plain: PlainRequest,
): Promise<PlainReply> {
  const { method = 'GET', address = '127.0.0.1' } = plain;
  const body = Buffer.from(plain.body ?? '');
  const named = new Map([['host', 'localhost']]);
  if (plain.body !== undefined) named.set('content-length', String(body.length));
  for (const [name, value] of Object.entries(plain.fields ?? {})) named.set(name.toLowerCase(), value);
  const fields = new Fields([...named].flat());
  const id = nextId();
  let reply: Reply;
  try {
    const { target } = checkHead({ method, target: plain.target, fields }, '1.1');
    const request: Request = {
      id, method, target, fields, address,
      signal: plain.signal ?? new AbortController().signal,
      get caller() {
        return callerKey(address, this.userId);
      },
      async receiveBody(bytesMax) {
        if (body.length > bytesMax) throw tooLarge(bytesMax);
        return body;
      },
    };
    reply = await handle(request);
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    reply = refuse(error, id);
  }
  const { body: sent = '', status } = reply;
  const content = typeof sent === 'string' || Buffer.isBuffer(sent) ? sent.toString() : await gather(sent, plain);
  return { status, fields: new Fields([...reply.fields, 'X-Request-Id', id]), body: method === 'HEAD' ? '' : content };
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
