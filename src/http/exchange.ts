import type { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { CairnError } from '../base/errors.ts';
import type { Limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import { Fields } from './fields.ts';
import { checkHead } from './head.ts';
import type { Caller, Reply, Request, RequestEntry, StreamedBody } from './message.ts';

/** What all exchanges share: what is asked and told of each. */
export interface ExchangeContext {
  readonly clock: Clock;
  /** Makes request ids (`createRequestIds`). */
  readonly nextId: () => string;
  /** Told of every reply. */
  readonly onAnswered?: ((entry: RequestEntry) => void) | undefined;
  /** Takes what a handler or a streamed body threw and should not have: a bug, for the log alone. */
  readonly onFailure?: ((error: unknown, request: Request) => void) | undefined;
  readonly limits: Limits;
  /** Bodies that are being received, and how much of them is here. */
  readonly arriving: { requests: number; bytes: number };
}

const slowReaderUnitBytes = 64 * 1024;
const empty = Buffer.alloc(0);
const callerLeft = new CairnError('malformed_request', 'Cannot read the body: the caller left');
const tooManyArrive = new CairnError('overloaded', 'Cannot read the body: too much is arriving at the same time', {
  retryAfterSeconds: 1,
});

export function tooLarge(bytesMax: number): CairnError {
  return new CairnError('content_too_large', `Cannot read the body: it is larger than ${bytesMax} bytes`);
}

/** One request on a socket, and the sending of its reply. */
export class Exchange implements Request {
  readonly id: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly fields: Fields;
  readonly method: string;
  target: string;
  address: string;
  encrypted: boolean;
  route: string | undefined;
  userId: number | undefined;
  readonly #context: ExchangeContext;
  readonly #startedMs: number;
  /** Of the content, 0 where there is none; `undefined` where it is not told, and until the head is checked. */
  #contentLength: number | undefined;
  /** The caller waits for "100 Continue" before it sends its content. */
  #awaitsContinue: boolean;
  /** Why no more of the content can be read. */
  #failure: CairnError | undefined;
  /** Told of `#failure` by whoever is reading. */
  #onFailure: ((failure: CairnError) => void) | undefined;

  constructor(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    peer: Caller,
    context: ExchangeContext,
    awaitsContinue: boolean,
  ) {
    this.id = context.nextId();
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.fields = new Fields(incoming.rawHeaders);
    this.method = incoming.method ?? '';
    this.target = incoming.url ?? '';
    this.address = peer.address;
    this.encrypted = peer.encrypted;
    this.#context = context;
    this.#startedMs = context.clock.elapsed();
    this.#awaitsContinue = awaitsContinue;
  }

  /** Checks the head and takes over what it comes down to. @throws what `fail` was told, and what `checkHead` throws */
  check(): void {
    if (this.#failure !== undefined && !this.isArriving) throw this.#failure;
    const head = checkHead(this, this.incoming.httpVersion);
    this.target = head.target;
    this.#contentLength = head.contentLength;
  }

  /** Whether content of this request may still arrive. */
  get isArriving(): boolean {
    return !this.incoming.complete;
  }

  /**
   * Whether nothing can follow this reply on the connection. Little unread content is left to Node, which skips it and
   * goes on; more of it, or none before a "100", ends the talk.
   */
  isLast({ body }: Reply): boolean {
    // Upgrade is ignored (RFC 9110 §7.8), but behind it Node's parser drops the rest of the packet, and would then take
    // for a request what may be the content of one that was dropped.
    if (this.#failure !== undefined || this.fields.get('upgrade') !== undefined || this.#awaitsContinue) return true;
    // HTTP/1.0 has no other end for what is streamed.
    if (isStreamed(body) && this.incoming.httpVersion === '1.0') return true;
    if (this.#contentLength === 0 || this.incoming.complete) return false;
    return this.#contentLength === undefined || this.#contentLength > slowReaderUnitBytes;
  }

  async receiveBody(bytesMax: number): Promise<Buffer> {
    if (this.#contentLength === 0) return empty;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#contentLength !== undefined && this.#contentLength > bytesMax) throw tooLarge(bytesMax);
    // A request that waited for its turn may have been left meanwhile, and nothing would ever tell of it again.
    if (this.incoming.destroyed) throw callerLeft;
    if (this.#awaitsContinue) {
      this.#awaitsContinue = false;
      this.outgoing.writeContinue();
    }
    return await new Promise<Buffer>((resolve, reject) => {
      const { incoming } = this;
      const { arriving, limits } = this.#context;
      let body: Buffer = empty;
      let length = 0;
      arriving.requests += 1;
      const settle = (failure?: CairnError): void => {
        // The stream also closes after its end.
        if (this.#onFailure !== settle) return;
        this.#onFailure = undefined;
        arriving.requests -= 1;
        arriving.bytes -= length;
        if (failure === undefined) return resolve(body.subarray(0, length));
        incoming.off('data', onData).pause();
        reject(failure);
      };
      const onData = (chunk: Buffer): void => {
        const needed = length + chunk.length;
        if (needed > bytesMax) return settle(tooLarge(bytesMax));
        if (arriving.bytes + chunk.length > limits.arrivingBytesMax) return settle(tooManyArrive);
        // Kept apart, chunks of one byte would take hundreds of bytes each.
        if (needed > body.length) body = length === 0 ? chunk : Buffer.concat([body.subarray(0, length)], 2 * needed);
        if (length > 0) chunk.copy(body, length);
        length = needed;
        arriving.bytes += chunk.length;
      };
      this.#onFailure = settle;
      incoming.on('data', onData).on('end', settle).on('close', () => settle(callerLeft));
    });
  }

  /** Tells that no more of the request can be read; the reply says so if it is still to be made. */
  fail(failure: CairnError): void {
    this.#failure = failure;
    if (this.#onFailure !== undefined) this.#onFailure(failure);
    else if (this.outgoing.writableEnded) this.abandon();
  }

  /**
   * Sends the reply. Where the system does not take all of it at once, returns a promise that resolves when it has, or
   * when nobody is there any more; it never rejects. `close`: the connection ends with this reply; it has to where
   * `isLast` says so.
   */
  send({ status, fields, body }: Reply, close: boolean): Promise<void> | undefined {
    const { incoming, outgoing } = this;
    const { socket } = incoming;
    const all = [...fields];
    if (this.encrypted) all.push('Strict-Transport-Security', 'max-age=31536000');
    if (close) all.push('Connection', 'close');
    if (isStreamed(body)) {
      outgoing.writeHead(status, all);
      return this.#stream(body, status);
    }
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    if (status !== 204 && status !== 304) all.push('Content-Length', String(bytes));
    outgoing.writeHead(status, all);
    const content = this.method === 'HEAD' ? undefined : body;
    const sent = content === undefined ? 0 : bytes;
    if (content !== undefined) {
      // Head and content in one piece: `end(content)` makes two of them, of which the second is empty.
      socket.cork();
      outgoing.write(content);
      socket.uncork();
    }
    const lingers = close && this.#contentLength !== 0 && this.isArriving && !socket.readableEnded;
    if (lingers) this.#linger();
    else outgoing.end();
    if (!lingers && outgoing.writableLength > 0) return this.#taken().then(() => this.#answered(status, sent));
    this.#answered(status, sent);
    return undefined;
  }

  /** Destroys the connection under a reply that cannot be completed. */
  abandon(): void {
    this.incoming.socket.destroy();
  }

  #answered(status: number, bytes: number): void {
    const { id, method, route, userId } = this;
    const durationMs = this.#context.clock.elapsed() - this.#startedMs;
    this.#context.onAnswered?.({ id, method, route, status, durationMs, bytes, userId });
  }

  async #stream(body: StreamedBody, status: number): Promise<void> {
    const { incoming, outgoing } = this;
    let bytes = 0;
    try {
      if (this.method === 'HEAD') {
        await body[Symbol.asyncIterator]().return?.();
      } else {
        for await (const chunk of body) {
          if (incoming.socket.destroyed) break;
          bytes += Buffer.byteLength(chunk);
          if (!outgoing.write(chunk)) await this.#taken();
        }
      }
      outgoing.end();
    } catch (error) {
      // Nothing but a broken connection tells the caller that content which has begun is not whole.
      this.abandon();
      this.#context.onFailure?.(error, this);
    }
    await this.#taken();
    this.#answered(status, bytes);
  }

  /**
   * Resolves when the system has taken what was written, or the caller is gone. A reader that takes too long is made to
   * go: Node itself waits for ever.
   */
  async #taken(): Promise<void> {
    const { outgoing } = this;
    const { socket } = this.incoming;
    // Once a CONNECT has arrived behind this request, Node tells the reply no longer what the socket tells.
    const emitters: readonly EventEmitter[] = [outgoing, socket];
    while (outgoing.writableLength > 0 && !socket.destroyed) {
      const units = Math.ceil(outgoing.writableLength / slowReaderUnitBytes);
      const timer = setTimeout(() => this.abandon(), this.#context.limits.slowReaderTimeoutMs * units).unref();
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          for (const emitter of emitters) emitter.off('drain', wake).off('finish', wake).off('close', wake);
          resolve();
        };
        for (const emitter of emitters) emitter.on('drain', wake).on('finish', wake).on('close', wake);
      });
      clearTimeout(timer);
    }
  }

  /**
   * Holds the connection's end back while content still arrives (RFC 9112 §9.6): closing at once would reset the
   * connection, and the caller might never read the reply.
   */
  #linger(): void {
    const { incoming, outgoing } = this;
    const { lingerBytesMax, lingerTimeoutMs } = this.#context.limits;
    outgoing.flushHeaders();
    let length = 0;
    const stop = (): void => {
      clearTimeout(timer);
      incoming.off('data', onData);
      outgoing.end();
      void this.#taken();
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > lingerBytesMax) stop();
    };
    const timer = setTimeout(stop, lingerTimeoutMs).unref();
    this.#onFailure = stop;
    incoming.on('data', onData).once('close', stop).resume();
  }
}

function isStreamed(body: Reply['body']): body is StreamedBody {
  return typeof body === 'object' && !Buffer.isBuffer(body);
}
