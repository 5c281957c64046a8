import type { IncomingMessage, ServerResponse } from 'node:http';

import { CairnError } from '../base/errors.ts';
import type { Limits } from '../base/limits.ts';
import type { Caller } from './caller.ts';
import { Fields } from './fields.ts';
import { checkHead } from './head.ts';
import type { Reply, Request, StreamedBody } from './message.ts';

/** What all exchanges of a server share. */
export interface ExchangeContext {
  readonly nextId: () => string;
  readonly limits: Limits;
  /** Bodies that are being received, and how much of them is here. */
  readonly arriving: { requests: number; bytes: number };
  /** Takes what a handler or a streamed body threw and should not have. */
  readonly onFailure?: ((error: unknown, request: Request) => void) | undefined;
}

/** How a reply went out. `aborted`: the caller left, or was cut off as a slow reader, before it had all of it. */
export type OnSent = (status: number, bytes: number, aborted: boolean) => void;

const slowReaderUnitBytes = 64 * 1024;
const empty = Buffer.alloc(0);

/** One request on a socket, and the sending of its reply. */
export class Exchange implements Request {
  readonly startedMs: number;
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
  #id: string | undefined;
  /** Of the content, 0 where there is none; `undefined` where it is not told, and until the head is checked. */
  #contentLength: number | undefined;
  /** The caller waits for "100 Continue" before it sends its content. */
  #awaitsContinue: boolean;
  #failure: CairnError | undefined;
  #onFailure: ((failure: CairnError) => void) | undefined;

  constructor(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    peer: Caller,
    startedMs: number,
    context: ExchangeContext,
    awaitsContinue: boolean,
  ) {
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.startedMs = startedMs;
    this.fields = new Fields(incoming.rawHeaders);
    this.method = incoming.method ?? '';
    this.target = incoming.url ?? '';
    this.address = peer.address;
    this.encrypted = peer.encrypted;
    this.#context = context;
    this.#awaitsContinue = awaitsContinue;
  }

  get id(): string {
    return (this.#id ??= this.#context.nextId());
  }

  /** Checks the head and takes over what it comes down to. @throws what `checkHead` throws */
  check(): void {
    const { method, target, fields } = this;
    const head = checkHead({ method, target, version: this.incoming.httpVersion, fields });
    this.target = head.target;
    this.#contentLength = head.contentLength;
  }

  /** Whether content of this request may still arrive. */
  get isArriving(): boolean {
    return !this.incoming.complete;
  }

  /** Little content is left to Node, which skips it and goes on; more of it, or none before a "100", ends the talk. */
  get lingers(): boolean {
    if (this.#contentLength === 0 || this.incoming.complete) return false;
    return this.#awaitsContinue || this.#contentLength === undefined || this.#contentLength > slowReaderUnitBytes;
  }

  async receiveBody(bytesMax: number): Promise<Buffer> {
    if (this.#contentLength === 0) return empty;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#contentLength !== undefined && this.#contentLength > bytesMax) throw tooLarge(bytesMax);
    // A request that waited for its turn may have been left meanwhile, and nothing would ever tell of it again.
    if (this.incoming.destroyed) throw callerLeft();
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
      const settle = (failure: CairnError | undefined): void => {
        arriving.requests -= 1;
        arriving.bytes -= length;
        incoming.off('data', onData).off('end', onEnd).off('close', onClose);
        this.#onFailure = undefined;
        if (failure === undefined) return resolve(body.subarray(0, length));
        incoming.pause();
        reject(failure);
      };
      const onData = (chunk: Buffer): void => {
        if (length + chunk.length > bytesMax) return settle(tooLarge(bytesMax));
        if (arriving.bytes + chunk.length > limits.arrivingBytesMax) return settle(tooManyArrive());
        body = length === 0 ? chunk : append(body, length, chunk);
        length += chunk.length;
        arriving.bytes += chunk.length;
      };
      const onEnd = (): void => settle(undefined);
      const onClose = (): void => settle(callerLeft());
      this.#onFailure = settle;
      incoming.on('data', onData).on('end', onEnd).on('close', onClose);
    });
  }

  /** Tells that no more of the request's content can be read; the reply says so if it is still to be made. */
  fail(failure: CairnError): void {
    this.#failure = failure;
    if (this.#onFailure !== undefined) this.#onFailure(failure);
    else if (this.outgoing.writableEnded) this.incoming.socket.destroy();
  }

  /**
   * Sends the reply; `onSent` is called once, when all of it has been handed to the system or never will be. Returns a
   * promise only for a streamed body, which resolves when no more of it will be written; it never rejects.
   * `close`: the connection ends with this reply; it has to where `lingers` holds.
   */
  send(reply: Reply, close: boolean, onSent: OnSent): Promise<void> | undefined {
    const { outgoing } = this;
    const { status, body } = reply;
    let { fields } = reply;
    if (this.encrypted) fields = fields.concat(['Strict-Transport-Security', 'max-age=31536000']);
    if (close) fields = fields.concat(['Connection', 'close']);
    if (typeof body === 'object' && !Buffer.isBuffer(body)) {
      outgoing.writeHead(status, [...fields]);
      return this.#stream(body, status, onSent);
    }
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    const length = status === 204 || status === 304 ? [] : ['Content-Length', String(bytes)];
    outgoing.writeHead(status, fields.concat(length));
    const content = this.method === 'HEAD' ? undefined : body;
    const sent = content === undefined ? 0 : bytes;
    if (close && this.#contentLength !== 0 && this.isArriving && !this.incoming.socket.readableEnded) {
      this.#linger(content);
      onSent(status, sent, false);
    } else {
      if (content !== undefined) this.#writeWhole(content);
      outgoing.end();
      this.#awaitFlush(status, sent, onSent);
    }
    return undefined;
  }

  /** Head and content in one piece: `end(content)` makes two of them, of which the second is empty. */
  #writeWhole(content: string | Buffer): void {
    const { socket } = this.incoming;
    socket.cork();
    this.outgoing.write(content);
    socket.uncork();
  }

  /** Destroys the connection under a reply that cannot be completed. */
  abandon(): void {
    this.incoming.socket.destroy();
  }

  async #stream(body: StreamedBody, status: number, onSent: OnSent): Promise<void> {
    let bytes = 0;
    try {
      if (this.method === 'HEAD') {
        await body[Symbol.asyncIterator]().return?.();
      } else {
        for await (const chunk of body) {
          if (this.outgoing.destroyed) break;
          bytes += Buffer.byteLength(chunk);
          if (!this.outgoing.write(chunk)) await this.#drained();
        }
      }
    } catch (error) {
      // Nothing but a broken connection tells the caller that content which has begun is not whole.
      this.abandon();
      this.#context.onFailure?.(error, this);
      return onSent(status, bytes, true);
    }
    this.outgoing.end();
    this.#awaitFlush(status, bytes, onSent);
  }

  /** Resolves when more can be written, or the caller is gone; a reader that takes too long is made to go. */
  #drained(): Promise<void> {
    const { incoming, outgoing } = this;
    if (outgoing.destroyed) return Promise.resolve();
    const timer = this.#cutOffLater();
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        outgoing.off('drain', settle).off('close', settle);
        incoming.socket.off('drain', settle);
        resolve();
      };
      outgoing.on('drain', settle).on('close', settle);
      // Once a CONNECT has arrived behind this request, Node tells the reply no longer what the socket tells.
      incoming.socket.on('drain', settle);
    });
  }

  /** A small reply is with the system already, and costs neither a timer nor a listener. */
  #awaitFlush(status: number, bytes: number, onSent: OnSent): void {
    const { outgoing } = this;
    if (outgoing.destroyed) return onSent(status, bytes, true);
    if (outgoing.writableLength === 0) return onSent(status, bytes, false);
    const timer = this.#cutOffLater();
    let aborted = true;
    // Node tells of a finish even where the socket was destroyed under the reply.
    outgoing.once('finish', () => (aborted = this.incoming.socket.destroyed));
    outgoing.once('close', () => {
      clearTimeout(timer);
      onSent(status, bytes, aborted);
    });
  }

  /** Node itself waits for a slow reader for ever. */
  #cutOffLater(): NodeJS.Timeout {
    const units = Math.ceil(this.outgoing.writableLength / slowReaderUnitBytes);
    const timeoutMs = this.#context.limits.slowReaderTimeoutMs * Math.max(units, 1);
    return setTimeout(() => this.abandon(), timeoutMs).unref();
  }

  /**
   * Sends the whole reply, but holds the connection's end back while content still arrives (RFC 9112 §9.6): closing at
   * once would reset the connection, and the caller might never read the reply.
   */
  #linger(content: string | Buffer | undefined): void {
    const { incoming, outgoing } = this;
    const { lingerBytesMax, lingerTimeoutMs } = this.#context.limits;
    if (content !== undefined) outgoing.write(content);
    else outgoing.flushHeaders();
    let length = 0;
    const stop = (): void => {
      clearTimeout(timer);
      incoming.off('data', onData);
      outgoing.end();
      this.#awaitFlush(0, 0, () => undefined);
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

/** Puts a chunk behind the first `length` bytes. Kept apart, chunks of one byte would take hundreds of bytes each. */
function append(body: Buffer, length: number, chunk: Buffer): Buffer {
  const needed = length + chunk.length;
  const target = needed <= body.length ? body : Buffer.allocUnsafe(2 * needed);
  if (target !== body) body.copy(target, 0, 0, length);
  chunk.copy(target, length);
  return target;
}

function callerLeft(): CairnError {
  return new CairnError('malformed_request', 'Cannot read the body: the caller left');
}

function tooManyArrive(): CairnError {
  const options = { retryAfterSeconds: 1 };
  return new CairnError('overloaded', 'Cannot read the body: too much is arriving at the same time', options);
}

function tooLarge(bytesMax: number): CairnError {
  return new CairnError('content_too_large', `Cannot read the body: it is larger than ${bytesMax} bytes`);
}
