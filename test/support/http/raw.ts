import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Socket, connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { problemReply } from '../../../src/api/replies.ts';
import { CairnError } from '../../../src/base/errors.ts';
import { systemClock } from '../../../src/base/system.ts';
import { type Handle, type Reply, type RequestEntry, apiFields } from '../../../src/http/message.ts';
import { createRequestIds } from '../../../src/http/request-ids.ts';
import { Router } from '../../../src/http/router.ts';
import type { HttpServerOptions } from '../../../src/http/server-options.ts';
import { HttpServer, type TlsTexts } from '../../../src/http/server.ts';
import { isLockedRun, withTimeout } from '../basics.ts';

/** One reply as it came over a socket. */
export interface RawReply {
  readonly status: number;
  /** By lower-case name; several of one name are joined by ", ". */
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
}

/** A client that sends just the bytes it is told to, and reads replies strictly (RFC 9112). */
export class RawClient {
  readonly socket: Socket;
  /** Resolves when both directions are closed, or the connection broke. */
  readonly closed: Promise<void>;
  #received = '';
  #ended = false;
  #wake: (() => void) | undefined;

  /** Opens a connection to a port, or uses this one, which may be encrypted. */
  constructor(target: number | Socket) {
    const plain = { host: '127.0.0.1', allowHalfOpen: true, noDelay: true };
    this.socket = typeof target === 'number' ? connect({ port: target, ...plain }) : target;
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text) => {
      this.#received += String(text);
      this.#wake?.();
    });
    this.closed = new Promise((resolve) => {
      const done = (): void => {
        this.#ended = true;
        this.#wake?.();
        resolve();
      };
      this.socket.on('end', done).on('close', done).on('error', done);
    });
  }

  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** Bytes received that have not been parsed as a response yet. */
  get unread(): string {
    return this.#received;
  }

  /** Reads the next response to a request with this `method`; 100 Continue counts as one. */
  async reply(method = 'GET'): Promise<RawReply> {
    for (;;) {
      const found = parseReply(this.#received, method, this.#ended);
      if (typeof found !== 'number') {
        this.#received = this.#received.slice(found.length);
        return found.reply;
      }
      // A long reply is not parsed anew with each piece of it, and not shown before something is wrong.
      if (this.#ended) assert.fail(`the connection ended within a reply: ${JSON.stringify(this.#received)}`);
      do await this.#more();
      while (this.#received.length < found && !this.#ended);
    }
  }

  /** Waits for the server to end the connection, and returns what came after the replies that were read. */
  async rest(): Promise<string> {
    await withTimeout(this.closed, 'the server did not end the connection');
    this.socket.destroy();
    return this.#received;
  }

  #more(): Promise<void> {
    const woken = new Promise<void>((resolve) => (this.#wake = resolve));
    return withTimeout(woken, () => `no reply; so far: ${JSON.stringify(this.#received)}`);
  }
}

/**
 * Parses one reply strictly, or returns the least length that the text has when it is complete.
 * @throws AssertionError when it is malformed
 */
export function parseReply(
  text: string,
  method: string,
  ended: boolean,
): { reply: RawReply; length: number } | number {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return text.length + 1;
  const [line = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/.exec(line)?.[1]);
  assert.ok(status >= 100, `a status line: ${JSON.stringify(line)}`);
  const fields = new Map<string, string>();
  for (const field of lines) {
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+): ?([\x20-\x7e\t]*)$/.exec(field) ?? [];
    assert.ok(name !== '', `a field: ${JSON.stringify(field)}`);
    const before = fields.get(name.toLowerCase());
    fields.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`);
  }
  const start = end + 4;
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD') {
    return { reply: { status, fields, body: '' }, length: start };
  }
  if (fields.get('transfer-encoding') === 'chunked') return parseChunks(text, start, status, fields);
  const announced = fields.get('content-length');
  if (announced === undefined) {
    return ended ? { reply: { status, fields, body: text.slice(start) }, length: text.length } : text.length + 1;
  }
  assert.match(announced, /^\d+$/);
  const length = start + Number(announced);
  return text.length < length ? length : { reply: { status, fields, body: text.slice(start, length) }, length };
}

function parseChunks(
  text: string,
  start: number,
  status: number,
  fields: ReadonlyMap<string, string>,
): { reply: RawReply; length: number } | number {
  let body = '';
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return text.length + 1;
    assert.match(text.slice(at, lineEnd), /^[0-9a-f]+$/i);
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const chunkEnd = lineEnd + 2 + size;
    if (text.length < chunkEnd + 2) return chunkEnd + 2;
    assert.equal(text.slice(chunkEnd, chunkEnd + 2), '\r\n');
    body += text.slice(lineEnd + 2, chunkEnd);
    at = chunkEnd + 2;
    if (size === 0) return { reply: { status, fields, body }, length: at };
  }
}

/** A certificate of its own for `name`, by openssl; `undefined` where there is none, or it may not be started. */
export function makeCertificate(
  directory: string, name: string, keyOptions = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
): TlsTexts | undefined {
  if (isLockedRun) return undefined;
  const [keyFile, certFile] = [join(directory, `${name}.key`), join(directory, `${name}.crt`)];
  const made = spawnSync('openssl', [
    'req', '-x509', '-newkey', ...keyOptions, '-nodes', '-days', '2',
    '-subj', `/CN=${name}`, '-keyout', keyFile, '-out', certFile,
  ]);
  if (made.status !== 0) return undefined;
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
}

/** The common name of the certificate that a new connection is met with. */
export async function readGreeting(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

export function textResponse(body: string): Reply {
  return { status: 200, fields: ['Content-Type', 'text/plain', ...apiFields], body };
}

/** Enough of an application to ask a listener everything; `/echo` takes 1,000 bytes of content. */
export function createHandle(routes: Readonly<Record<string, Handle>> = {}): Handle {
  const all: Readonly<Record<string, Handle>> = {
    'GET /items/{id}': (request) => textResponse(`item ${request.target}`),
    'POST /echo': async (request) => textResponse((await request.receiveBody(1000)).toString('latin1')),
    'POST /ignore': () => textResponse('ignored'),
    ...routes,
  };
  const router = new Router(
    Object.entries(all).map(([name, value]) => {
      const [method = '', pattern = ''] = name.split(' ');
      return { method, pattern, value };
    }),
  );
  return (request) => {
    request.matched(request.target);
    const match = router.match(request.method, request.target);
    if (match.kind === 'found') return match.value(request);
    if (match.kind === 'not-found') throw new CairnError('not_found', 'Cannot find it: there is none');
    throw new CairnError('method_not_allowed', 'Cannot do it: no such method', { fields: ['Allow', match.allow] });
  };
}

export interface Listener {
  readonly server: HttpServer;
  readonly port: number;
  /** The log entries of its responses. */
  readonly answered: RequestEntry[];
}

/** Starts a listener on a free port. */
export async function startServer(options: Partial<HttpServerOptions> = {}, tls?: TlsTexts): Promise<Listener> {
  const answered: RequestEntry[] = [];
  let drawn = 0;
  const server = new HttpServer({
    handle: createHandle(),
    problemReply,
    clock: systemClock,
    nextId: createRequestIds((size) => Buffer.alloc(size, (drawn += 1))),
    onAnswered: (entry) => void answered.push(entry),
    ...options,
  });
  const port = await server.listen({ port: 0, host: '127.0.0.1', tls });
  return { server, port, answered };
}
