import { CairnError } from '../base/errors.ts';
import { tooLarge } from './exchange.ts';
import { Fields } from './fields.ts';
import { checkHead } from './head.ts';
import type { Handle, Refuse } from './message.ts';

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
}

/** A reply with all of its body gathered. */
export interface PlainReply {
  readonly status: number;
  readonly fields: Fields;
  readonly body: string;
}

/**
 * Asks a handler without a socket or a port. The head is checked like one that arrived on a connection, but for what
 * Node's parser would have refused before: characters in names and values of fields, sizes, lengths that are wrong.
 * `Host` is `localhost` and `Content-Length` is right, unless `fields` say otherwise.
 */
export async function inject(
  handle: Handle,
  refuse: Refuse,
  nextId: () => string,
  plain: PlainRequest,
): Promise<PlainReply> {
  const { method = 'GET', address = '127.0.0.1' } = plain;
  const body = Buffer.from(plain.body ?? '');
  const named = Object.entries(plain.fields ?? {});
  const has = (name: string): boolean => named.some(([own]) => own.toLowerCase() === name);
  if (!has('host')) named.push(['Host', 'localhost']);
  if (plain.body !== undefined && !has('content-length')) named.push(['Content-Length', String(body.length)]);
  const fields = new Fields(named.flat());
  const id = nextId();
  const receiveBody = async (bytesMax: number): Promise<Buffer> => {
    if (body.length > bytesMax) throw tooLarge(bytesMax);
    return body;
  };
  let reply;
  try {
    const { target } = checkHead({ method, target: plain.target, fields }, '1.1');
    reply = await handle({ id, method, target, fields, address, receiveBody });
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    reply = refuse(error, id);
  }
  let text = '';
  if (typeof reply.body === 'string' || Buffer.isBuffer(reply.body)) text = reply.body.toString();
  else for await (const chunk of reply.body ?? []) text += chunk;
  return { status: reply.status, fields: new Fields(reply.fields), body: method === 'HEAD' ? '' : text };
}
