import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { CairnError } from '../base/errors.ts';
import { callerKey, plainAddress, type TrustedProxies } from '../base/network.ts';
import type { Limits } from '../base/limits.ts';
import type { Shares } from '../base/shares.ts';
import type { Clock } from '../base/system.ts';
import { resolveCaller, type Caller } from './caller.ts';
import { Fields } from './fields.ts';
import { checkHead, type Head } from './head.ts';
import type { Handle, Refuse, Reply, Request, RequestEntry } from './message.ts';

/** What an `Exchanger` answers requests with. */
export interface ExchangerOptions {
  readonly clock: Clock;
  /** Creates request ids (`createRequestIds`). */
  readonly nextId: () => string;
  readonly proxies: TrustedProxies;
  /** `Request.basePath`; empty if absent. */
  readonly basePath?: string | undefined;
  readonly handle: Handle;
  readonly refuse: Refuse;
  /** Called after each reply. */
  readonly onAnswered?: ((entry: RequestEntry) => void) | undefined;
  /**
   * Called with each error that is not a `CairnError`, which is a bug. The caller is not
   * told of it.
   */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /**
   * Called once, with the address of a peer that sends `X-Forwarded-For` and is not
   * trusted.
   */
  readonly onUntrustedProxy?: ((address: string) => void) | undefined;
  /** Targets that are answered under any load, such as `/livez`. */
  readonly alwaysServedTargets?: ReadonlySet<string> | undefined;
  /** Bounds that replace those of `limits`. */
  readonly limits?: Partial<Limits> | undefined;
}

/** The bodies that are being received. */
export interface Arriving {
  /** How many requests are waiting for their body. */
  count: number;
  /** The memory for bodies of signed-in users. */
  readonly fromUsers: Shares;
  /** The memory for bodies of all other callers. */
  readonly fromOthers: Shares;
  /** A body up to this size is always received, and is not counted. */
  readonly uncountedBytesMax: number;
}

const callerLeft = new CairnError(
  'malformed_request',
  'Cannot read the body: the caller closed the connection',
);
const tooManyArrive = new CairnError(
  'overloaded',
  'Cannot read the body: too many are being received, try again later',
  { retryAfterSeconds: 1 },
);

/** An id that can be written to a log line and a URN (RFC 8141 §2) as it is. */
const requestId = /^[\w.~:=+/@-]{1,128}$/;

export function tooLarge(bytesMax: number): CairnError {
  return new CairnError(
    'content_too_large',
    `Cannot read the body: it is larger than ${bytesMax} bytes`,
  );
}

/** The state of a connection. */
export class Connection {
  readonly peer: Caller;
  /** Whether the peer is a trusted proxy. */
  readonly isProxy: boolean;
  latest: Exchange | undefined;
  /** Whether the connection ends with the reply to the latest request. */
  isClosing = false;
  /** Whether further requests have arrived, which are ignored. */
  isFollowed = false;
  /**
   * Bytes of ignored requests, and of replies that the system may not have accepted yet.
   */
  piledBytes = 0;

  constructor(socket: Socket, { proxies }: ExchangerOptions) {
    const address = plainAddress(socket.remoteAddress ?? '');
    this.peer = { address, encrypted: 'encrypted' in socket };
    this.isProxy = proxies(this.peer.address);
    socket.once('close', () => this.latest?.abandon());
  }

  /** Whether the reply to the latest request is still being created or streamed. */
  get isBusy(): boolean {
    return this.latest?.outgoing.writableEnded === false;
  }
}

/**
 * A request that arrived on a connection, with the response of Node that its reply is
 * sent by.
 */
export class Exchange implements Request {
  readonly connection: Connection;
  id: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly startedMs: number;
  readonly fields: Fields;
  readonly method: string;
  readonly basePath: string;
  target: string;
  address: string;
  encrypted: boolean;
  route: string | undefined;
  userId: number | undefined;
  /** `undefined` until the head has been checked. */
  head: Head | undefined;
  /** Whether the caller waits for "100 Continue" before it sends its content. */
  awaitsContinue = false;
  /** The reply, while it is held back. */
  held: Reply | undefined;
  readonly #arriving: Arriving;
  /** Why the rest of the content cannot be read. */
  #failure: CairnError | undefined;
  #rejectBody: (reason: CairnError) => void = () => undefined;
  #controller: AbortController | undefined;

  constructor(
    connection: Connection,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    arriving: Arriving,
    { nextId, clock, basePath = '' }: ExchangerOptions,
  ) {
    this.connection = connection;
    this.id = nextId();
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.startedMs = clock.elapsed();
    this.fields = new Fields(incoming.rawHeaders, incoming.headers);
    this.method = incoming.method ?? '';
    this.basePath = basePath;
    this.target = incoming.url ?? '';
    this.address = connection.peer.address;
    this.encrypted = connection.peer.encrypted;
    this.#arriving = arriving;
  }

  get caller(): string {
    return callerKey(this.address, this.userId);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.incoming.socket.destroyed) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Reports that the connection was closed. */
  abandon(): void {
    this.#controller?.abort();
  }

  /** Checks the head. @throws CairnError as `checkHead` does */
  check(): void {
    this.head = checkHead(this, this.incoming.httpVersion);
    this.target = this.head.target;
  }

  /** Adopts the caller's address and the request id that a trusted proxy sent. */
  believe(proxies: TrustedProxies): void {
    const id = this.fields.get('x-request-id') ?? '';
    if (requestId.test(id)) this.id = id;
    Object.assign(this, resolveCaller(this.connection.peer, this.fields, proxies));
  }

  async receiveBody(bytesMax: number): Promise<Buffer> {
    const { incoming, caller } = this;
    const arriving = this.#arriving;
    const memory = this.userId === undefined ? arriving.fromOthers : arriving.fromUsers;
    const { contentLength = bytesMax } = this.head ?? {};
    if (contentLength > bytesMax) throw tooLarge(bytesMax);
    let body = Buffer.alloc(0);
    if (contentLength === 0) return body;
    if (this.#failure !== undefined) throw this.#failure;
    if (incoming.destroyed) throw callerLeft;
    if (this.awaitsContinue) this.outgoing.writeContinue();
    this.awaitsContinue = false;
    let length = 0;
    let counted = 0;
    const append = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > bytesMax) return this.#rejectBody(tooLarge(bytesMax));
      if (needed > body.length) {
        // One buffer that grows, because a list of one-byte chunks needs hundreds of
        // bytes for each.
        const size = Math.min(Math.max(2 * needed, arriving.uncountedBytesMax), contentLength);
        const more = size > arriving.uncountedBytesMax ? size - counted : 0;
        if (!memory.take(caller, more)) return this.#rejectBody(tooManyArrive);
        counted += more;
        body = Buffer.concat([body], size);
      }
      chunk.copy(body, length);
      length = needed;
    };
    arriving.count += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#rejectBody = reject;
        incoming
          .on('data', append)
          .once('end', resolve)
          .once('close', () => reject(callerLeft));
      });
    } finally {
      incoming.off('data', append);
      memory.give(caller, counted);
      arriving.count -= 1;
    }
    return body.subarray(0, length);
  }

  /**
   * Makes reading the rest of the content fail, so that the reply says why, unless it was
   * sent.
   */
  failBody(failure: CairnError): void {
    if (this.incoming.complete) return;
    this.#failure = failure;
    this.#rejectBody(failure);
  }
}
