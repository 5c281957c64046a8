import type { IncomingMessage, ServerResponse } from 'node:http';

import { CairnError, invariant, toError } from '../base/errors.ts';
import { Holding } from '../base/budget.ts';
import { callerKey } from '../base/network.ts';
import { Fields } from './fields.ts';
import type { Head } from './head.ts';
import type { Reply, Request, RequestEntry } from './message.ts';
import type { Caller, HttpServerOptions, Shared } from './server-options.ts';

/** Created once, because turning requests away in an overload must be cheap. */
export const overloaded = new CairnError(
  'overloaded',
  'Cannot answer the request: too many are in progress, try again later',
  { retryAfterSeconds: 1 },
);
const internal = new CairnError(
  'internal',
  'Cannot answer the request: the server has an internal error',
);

/** Returns the reply to a request that failed. A bug is reported, and not shown. */
export function problemOf(
  thrown: unknown,
  request: Request,
  { problemReply, onError }: Pick<HttpServerOptions, 'problemReply' | 'onError'>,
): Reply {
  const error = toError(thrown);
  if (error instanceof CairnError) return problemReply(error, request);
  onError?.(error, request);
  return problemReply(internal, request);
}

const callerLeft = new CairnError(
  'malformed_request',
  'Cannot read the body: the caller closed the connection',
);
const readBefore =
  'the body was read before Cairn got the request: ' +
  'mount app.handler before anything that reads bodies';
const tooManyArrive = new CairnError(
  'overloaded',
  'Cannot read the body: too many are being received, try again later',
  { retryAfterSeconds: 1 },
);

const tooManyChunks = new CairnError(
  'content_too_large',
  'Cannot read the body: its chunks are too small for so many',
);

export function bodyTooLarge(bytesMax: number): CairnError {
  return new CairnError(
    'content_too_large',
    `Cannot read the body: it is larger than ${bytesMax} bytes`,
  );
}

/** An id that can be written to a log line and a URN (RFC 8141 §2) as it is. */
const requestId = /^[\w.~:=+/@-]{1,128}$/;
const noBytes = Buffer.alloc(0);
/** Beyond so many chunks, they have so many bytes each: to parse one takes as long as to read more. */
const chunksMin = 4096;
const chunkBytesMin = 16;
/** How many chunks of a connection are read before others have their turns. */
const chunksAtOnce = 64;

/** A request and its response, as Node passes them on. */
export interface Arrival {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Whether the caller waits for "100 Continue" before it sends its content. */
  readonly awaitsContinue: boolean;
}

/** One request, its response of Node, and its entry in the log. */
export class Exchange implements Arrival, Request, RequestEntry {
  id: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly fields: Fields;
  readonly method: string;
  readonly basePath: string;
  target: string;
  address: string;
  encrypted: boolean;
  route: string | undefined;
  userId: number | undefined;
  /** 0 until the request is answered. */
  status = 0;
  durationMs = 0;
  bytes = 0;
  /** `undefined` until the head has been checked. */
  head: Head | undefined;
  awaitsContinue: boolean;
  readonly startedMs: number;
  readonly #shared: Shared;
  /** Its place among the requests in flight. */
  #place: Holding | undefined;
  /** The memory of its reply, while that is made. */
  #made: Holding | undefined;
  /** Why the rest of the content cannot be read. */
  #failure: CairnError | undefined;
  /** Breaks off the body; `undefined` unless it is being received. */
  #rejectBody: ((reason: CairnError) => void) | undefined;
  #controller: AbortController | undefined;

  constructor(shared: Shared, peer: Caller, { incoming, outgoing, awaitsContinue }: Arrival) {
    const { options } = shared;
    this.id = options.nextId();
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.fields = new Fields(incoming.rawHeaders, incoming.headers);
    this.method = incoming.method ?? '';
    this.basePath = options.basePath ?? '';
    this.target = incoming.url ?? '';
    this.address = peer.address;
    this.encrypted = peer.encrypted;
    this.awaitsContinue = awaitsContinue;
    this.startedMs = options.clock.elapsed();
    this.#shared = shared;
  }

  get caller(): string {
    return callerKey(this.address, this.userId);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.incoming.socket.destroyed) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Aborts `signal`, which breaks off what is being received, made or sent. */
  abandon(): void {
    this.#controller?.abort();
    this.#rejectBody?.(callerLeft);
  }

  /** Adopts the caller's address and the request id that a trusted proxy sent. */
  adoptForwarded({ address, encrypted }: Caller): void {
    const id = this.fields.get('x-request-id') ?? '';
    if (requestId.test(id)) this.id = id;
    this.address = address;
    this.encrypted = encrypted;
  }

  matched(route: string): void {
    this.route = route;
  }

  authenticated(userId: number | undefined): void {
    this.userId = userId;
    if (!this.#isInShare) throw overloaded;
  }

  /** Whether the caller may have one more request in flight. */
  get #isInShare(): boolean {
    const { exchanges, options } = this.#shared;
    // No caller can have used up its share of so few.
    if (exchanges.sum < options.limits.requestsInFlightPerCallerMax) return true;
    return options.alwaysServedTargets?.has(this.target) || exchanges.hasRoom(this.caller, 1);
  }

  /** Whether nobody reads its content, which may have many chunks. */
  get isUnread(): boolean {
    return this.head?.contentLength === undefined && this.#rejectBody === undefined;
  }

  /** Counts the request as in flight, unless it still waits for its sender. */
  enter(): void {
    if (this.#rejectBody === undefined) this.#place ??= this.#shared.exchanges.take(this.caller, 1);
  }

  /** Ends what `enter` began. */
  leave(): void {
    this.#made?.release();
    this.#place?.release();
    this.#place = undefined;
  }

  turn(): Promise<void> | undefined {
    const { options, isTurnOver, takeTurn } = this.#shared;
    if (!isTurnOver || options.alwaysServedTargets?.has(this.target)) return undefined;
    this.hold(options.limits.fieldsBytesMax);
    return takeTurn(this.caller);
  }

  hold(bytes: number): void {
    const breakOff = (): void => void this.incoming.socket.destroy();
    this.#made ??= new Holding(this.#shared.memory, this.caller, breakOff);
    if (!this.#made.resize(bytes)) throw overloaded;
  }

  receiveBody(bytesMax: number): Promise<Buffer> {
    // An error that is thrown in here rejects the promise.
    return new Promise((resolve, reject) => {
      const { incoming } = this;
      const { contentLength = bytesMax } = this.head ?? {};
      if (contentLength > bytesMax) throw bodyTooLarge(bytesMax);
      if (contentLength === 0) return resolve(noBytes);
      if (this.#failure !== undefined) throw this.#failure;
      invariant(!incoming.readableEnded, readBefore);
      if (incoming.destroyed) throw callerLeft;
      if (this.awaitsContinue) this.outgoing.writeContinue();
      this.awaitsContinue = false;
      // It may have waited for something else before, such as the commits of another process.
      this.leave();
      this.#collect(contentLength, bytesMax, resolve, reject);
    });
  }

  /** Collects the chunks of the body in one buffer, which counts in the caller's share. */
  #collect(
    contentLength: number,
    bytesMax: number,
    resolve: (body: Buffer) => void,
    reject: (reason: CairnError) => void,
  ): void {
    const { incoming } = this;
    const { memory, reading, takeTurn, options } = this.#shared;
    const { uncountedBodyBytesMax } = options.limits;
    let chunks = 0;
    let body: Buffer = noBytes;
    let length = 0;
    let holding: Holding | undefined;
    const fail = (this.#rejectBody = (reason: CairnError): void => {
      incoming.off('data', append).off('end', end);
      holding?.release();
      this.#rejectBody = undefined;
      reject(reason);
    });
    const append = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > bytesMax) return fail(bodyTooLarge(bytesMax));
      chunks += 1;
      // Node's parser passes on thousands that have arrived one by one, before it reads others.
      if (chunks === chunksAtOnce) reading.pauseNetwork(incoming.socket);
      if (chunks > chunksMin + needed / chunkBytesMin) return fail(tooManyChunks);
      if (needed > body.length) {
        const size = Math.min(Math.max(2 * needed, uncountedBodyBytesMax), contentLength);
        if (size > uncountedBodyBytesMax) {
          holding ??= new Holding(memory, this.caller, () => this.#rejectBody?.(tooManyArrive));
          if (!holding.resize(size)) return fail(tooManyArrive);
        }
        // One buffer that grows, because a list of one-byte chunks needs hundreds of
        // bytes for each. What has all come at once need not be copied.
        const isWhole = length === 0 && needed === contentLength;
        body = isWhole ? chunk : Buffer.concat([body], size);
      }
      if (body !== chunk) chunk.copy(body, length);
      length = needed;
    };
    const end = (): void => {
      this.#rejectBody = undefined;
      if (holding === undefined) settle();
      else void takeTurn(holding.caller).then(settle);
    };
    const settle = (): void => {
      holding?.release();
      // Many others may have become in flight while the body arrived.
      if (!this.#isInShare) return reject(overloaded);
      this.enter();
      resolve(length === body.length ? body : body.subarray(0, length));
    };
    incoming.on('data', append).on('end', end);
  }

  /**
   * Makes reading the rest of the content fail, so that the reply says why, unless it was
   * sent.
   */
  failBody(failure: CairnError): void {
    if (this.incoming.complete) return;
    this.#failure = failure;
    this.#rejectBody?.(failure);
  }

  /** Completes the entry, and reports it. */
  report(status: number, bytes: number): void {
    const { clock, onAnswered } = this.#shared.options;
    this.status = status;
    this.bytes = bytes;
    this.durationMs = clock.elapsed() - this.startedMs;
    onAnswered?.(this);
  }
}
