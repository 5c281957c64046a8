import type { IncomingMessage, ServerResponse } from 'node:http';

import { Reservation } from '../base/budget.ts';
import { CairnError, invariant, toError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import { Fields } from './fields.ts';
import type { Head } from './head.ts';
import type { Reply, Request, RequestEntry } from './message.ts';
import type { Peer, HttpServerOptions, Shared } from './server-options.ts';

/** Created once, because refusing requests in an overload must be cheap. */
export const overloaded = new CairnError(
  'overloaded',
  'Cannot answer the request: too many are in progress, try again later',
  { retryAfterSeconds: 1 },
);
const internal = new CairnError(
  'internal',
  'Cannot answer the request: the server has an internal error',
);

/** Reports a bug without showing it to the caller. */
export function toProblemReply(
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
  'Cannot read the body: it has too many chunks that are too small',
);

export function bodyTooLarge(bytesMax: number): CairnError {
  return new CairnError(
    'content_too_large',
    `Cannot read the body: it is larger than ${bytesMax} bytes`,
  );
}

/** Needs no escaping in a log line or a URN (RFC 8141 §2). */
const requestId = /^[\w.~:=+/@-]{1,128}$/;
/** The number of chunks that may have any size, and the least average size of further ones. */
const [freeChunks, chunkBytesMin] = [4096, 16];

export function areTooSmall(pieces: number, bytes: number): boolean {
  return pieces > freeChunks + bytes / chunkBytesMin;
}

const chunkBytes = 256;
/** The chunks from a connection before its network's other connections take turns with it. */
const chunksAtOnce = 64;
/** A body is in memory as chunks, as one buffer and as its parsed value. */
const bodyCopies = 3;

const noBytes = Buffer.alloc(0);

export interface Arrival {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/**
 * One request, Node's response to it, and its log entry.
 *
 * An exchange is open from the request until its response has been sent. Meanwhile it may hold
 * memory, in one reservation that follows its use: first the body, then the data for the response,
 * then the response. `close` gives it back.
 */
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
  status = 0;
  durationMs = 0;
  bytes = 0;
  head: Head | undefined;
  readonly startedMs: number;
  readonly #shared: Shared;
  readonly #open: Set<Exchange>;
  #memory: Reservation | undefined;
  #place: Reservation | undefined;
  #failure: CairnError | undefined;
  /** `undefined` unless a body is being received. */
  #rejectBody: ((reason: CairnError) => void) | undefined;
  #controller: AbortController | undefined;

  constructor(shared: Shared, peer: Peer, open: Set<Exchange>, { incoming, outgoing }: Arrival) {
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
    this.startedMs = options.clock.elapsed();
    this.#shared = shared;
    this.#open = open;
  }

  get caller(): string {
    return callerKey(this.address, this.userId);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.incoming.socket.destroyed) this.#controller.abort();
    return this.#controller.signal;
  }

  get reserved(): number {
    return this.#memory?.amount ?? 0;
  }

  /** Makes a stopping server wait until `close`. */
  open(): void {
    if (this.#open.has(this)) return;
    this.#open.add(this);
    this.#shared.openExchanges += 1;
  }

  close(): void {
    if (!this.#open.delete(this)) return;
    this.#memory?.release();
    this.#shared.openExchanges -= 1;
    this.#shared.notifyIdle();
  }

  /**
   * Sets the memory held in all. Returns false if there is no room, or if the connection has ended,
   * because nothing would give the memory back.
   */
  reserve(bytes: number): boolean {
    if (this.incoming.socket.destroyed) return false;
    this.open();
    this.#memory ??= new Reservation(this.#shared.memory, this.caller, () => this.#evict());
    return this.#memory.resize(bytes);
  }

  #evict(): void {
    if (this.#rejectBody === undefined) this.incoming.socket.destroy();
    else this.#rejectBody(tooManyArrive);
  }

  /** Ends receiving, producing and sending. */
  abandon(): void {
    this.#controller?.abort();
    this.#rejectBody?.(callerLeft);
  }

  /** Adopts the address and the request id that a trusted proxy sent. */
  adoptForwarded({ address, encrypted }: Peer): void {
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

  /** True if the caller may have one more request in flight. */
  get #isInShare(): boolean {
    const { exchanges, options } = this.#shared;
    const { requestsInFlightMax, requestsInFlightPerCallerMax } = options.limits;
    // With so few in flight, no caller can have used up its share.
    if (exchanges.sum < Math.min(requestsInFlightMax, requestsInFlightPerCallerMax)) return true;
    if (options.alwaysServedTargets?.has(this.target)) return true;
    const place = exchanges.take(this.caller, 1);
    place?.release();
    return place !== undefined;
  }

  /** True if nobody reads the content, which may have many chunks. */
  get isUnread(): boolean {
    return this.head?.contentLength === undefined && this.#rejectBody === undefined;
  }

  /** Does nothing while the body is arriving. */
  enter(): void {
    if (this.#rejectBody === undefined) this.#place ??= this.#shared.exchanges.take(this.caller, 1);
  }

  /** Undoes `enter`. `close` does not, because the work goes on if the caller leaves. */
  leave(): void {
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
    if (!this.reserve(bytes)) throw overloaded;
  }

  receiveBody(bytesMax: number): Promise<Buffer> {
    // An error that is thrown at once rejects the promise.
    return new Promise((resolve, reject) => {
      const { incoming } = this;
      const announced = this.head?.contentLength;
      if ((announced ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
      if (announced === 0) return resolve(noBytes);
      if (this.#failure !== undefined) throw this.#failure;
      invariant(!incoming.readableEnded, readBefore);
      if (incoming.destroyed) throw callerLeft;
      // It may already have waited for something else, such as another process's commits.
      this.leave();
      const chunks: Buffer[] = [];
      let length = 0;
      const receive = (chunk: Buffer): void => {
        length += chunk.length;
        chunks.push(chunk);
        // Node's parser passes on thousands of buffered chunks before it reads other connections.
        if (chunks.length === chunksAtOnce) this.#shared.reading.pauseNetwork(incoming.socket);
        const refusal = this.#reserveBody(chunks.length, length, bytesMax);
        if (refusal !== undefined) refuse(refusal);
      };
      // The connection keeps the message, which would keep the body by its listeners.
      const forget = (): void => {
        incoming.off('data', receive).off('end', end);
        this.#rejectBody = undefined;
      };
      const refuse = (this.#rejectBody = (reason: CairnError): void => {
        forget();
        reject(reason);
      });
      const end = (): void => {
        forget();
        // Parsing a long body takes milliseconds.
        if (this.reserved > 0) void this.#shared.takeTurn(this.caller).then(pass);
        else pass();
      };
      const pass = (): void => {
        // Others may have come in flight while the body arrived.
        if (!this.#isInShare) return reject(overloaded);
        this.enter();
        const [first = noBytes] = chunks;
        resolve(chunks.length > 1 ? Buffer.concat(chunks, length) : first);
      };
      incoming.on('data', receive).on('end', end);
    });
  }

  /** Reserves memory for the body so far. Returns the error if it is refused. */
  #reserveBody(chunks: number, length: number, bytesMax: number): CairnError | undefined {
    if (length > bytesMax) return bodyTooLarge(bytesMax);
    if (areTooSmall(chunks, length)) return tooManyChunks;
    const held = length + chunks * chunkBytes;
    if (held <= this.#shared.options.limits.uncountedBodyBytesMax + chunkBytes) return undefined;
    return this.reserve(bodyCopies * held) ? undefined : tooManyArrive;
  }

  /** The response gives the reason. */
  failBody(failure: CairnError): void {
    if (this.incoming.complete) return;
    this.#failure = failure;
    this.#rejectBody?.(failure);
  }

  report(status: number, bytes: number): void {
    const { clock, onAnswered } = this.#shared.options;
    this.status = status;
    this.bytes = bytes;
    this.durationMs = clock.elapsed() - this.startedMs;
    onAnswered?.(this);
  }
}
