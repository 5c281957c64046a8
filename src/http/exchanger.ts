import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { CairnError } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import { parseTrustedProxies, plainAddress, resolveCaller, type Caller, type TrustedProxies } from './caller.ts';
import { Exchange, type ExchangeContext } from './exchange.ts';
import { apiFields, type Handle, type Refuse, type Reply, type Request } from './message.ts';

/** What is remembered of a socket between its requests. */
export class Connection {
  readonly socket: Socket;
  /** The other end of the socket, before any proxy is believed. */
  readonly peer: Caller;
  /** Whether `peer` is a proxy that is believed. */
  readonly isProxy: boolean;
  requests = 0;
  /** Nothing that follows the request in hand is looked at. */
  closing = false;
  /** The request that was handed over last. */
  current: Exchange | undefined;
  /** Whether the reply to `current` is still being made. */
  busy = false;
  /** Requests that arrived meanwhile (pipelining, RFC 9112 §9.3.2), to be answered in turn. */
  readonly waiting: Exchange[] = [];
  /** Whether so many wait that no more are read. */
  paused = false;
  /** Why nothing more can be read; told after the replies to what came before. */
  failure: { readonly error: CairnError; readonly fields: readonly string[] } | undefined;

  constructor(socket: Socket, proxies: TrustedProxies) {
    this.socket = socket;
    this.peer = { address: plainAddress(socket.remoteAddress ?? ''), encrypted: 'encrypted' in socket };
    this.isProxy = proxies.has(this.peer.address);
  }
}

/** What is told of every reply, for a log and for metrics. */
export interface Answered {
  /** `undefined` where nothing readable arrived. */
  readonly request: Request | undefined;
  readonly status: number;
  /** Of content, as sent. */
  readonly bytes: number;
  /** From the end of the request's fields to the handing over of the reply's last byte. */
  readonly durationMs: number;
  /** The caller left, or was cut off, before it had all of the reply. */
  readonly aborted: boolean;
}

export interface ExchangerOptions {
  readonly handle: Handle;
  readonly refuse: Refuse;
  readonly clock: Clock;
  /** Makes request ids (`createRequestIds`). */
  readonly nextId: () => string;
  readonly proxies?: TrustedProxies | undefined;
  /** Targets that are answered under any load, such as `/livez`. */
  readonly unshed?: ReadonlySet<string> | undefined;
  readonly onAnswered?: ((answered: Answered) => void) | undefined;
  /** Takes what a handler or a streamed body threw and should not have: a bug, for the log alone. */
  readonly onFailure?: ((error: unknown, request: Request) => void) | undefined;
  /** Bounds other than those of `limits`. */
  readonly limits?: Partial<Limits> | undefined;
}

/** What the caller is told of a bug. */
export const internal = new CairnError('internal', 'Cannot answer: the server met a fault of its own');
/** Made once: what is told to a crowd must cost next to nothing. */
const overloaded = new CairnError('overloaded', 'Cannot take the request: too many are in flight', {
  retryAfterSeconds: 1,
});
const asteriskReply: Reply = { status: 204, fields: apiFields, body: undefined };

/** Turns what Node's parser hands over into requests, and replies into what Node sends, in turn on each connection. */
export class Exchanger {
  /** While it is set, every reply ends its connection. */
  draining = false;
  /**
   * Whether replies that are ready at once are held until everything that has arrived by now has been looked at, and
   * then sent in one go. With many callers this saves a third of the time (parsing and writing each stay in the
   * processor's caches); a lone caller would only wait.
   */
  gathers = false;
  readonly #gathered: { connection: Connection; exchange: Exchange; reply: Reply }[] = [];
  readonly #options: ExchangerOptions;
  readonly #limits: Limits;
  readonly #context: ExchangeContext;
  readonly #connections = new WeakMap<Socket, Connection>();
  readonly #proxies: TrustedProxies;
  #inFlight = 0;

  constructor(options: ExchangerOptions) {
    this.#options = options;
    this.#proxies = options.proxies ?? parseTrustedProxies([]);
    this.#limits = { ...limits, ...options.limits };
    const { nextId, onFailure } = options;
    this.#context = { nextId, onFailure, arriving: { requests: 0, bytes: 0 }, limits: this.#limits };
  }

  /** Requests whose reply waits for something. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** The connection of a socket, known or new. */
  connectionOf(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) this.#connections.set(socket, (connection = new Connection(socket, this.#proxies)));
    return connection;
  }

  /** Takes a request that has just arrived, from any `node:http` or `node:https` server. */
  receive(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue = false): void {
    const connection = this.connectionOf(incoming.socket);
    if (connection.closing) return;
    const startedMs = this.#options.clock.elapsed();
    const exchange = new Exchange(incoming, outgoing, connection.peer, startedMs, this.#context, awaitsContinue);
    if (!connection.busy) return this.#begin(connection, exchange);
    connection.waiting.push(exchange);
    // Node itself would read on, and hand over pipelined requests without end.
    if (connection.waiting.length < this.#limits.pipelinedRequestsMax) return;
    connection.paused = true;
    connection.socket.pause();
  }

  /** Takes what makes a connection unreadable: answers it after all that came before it, and ends the connection. */
  receiveFailure(socket: Socket, failure: CairnError, fields: readonly string[] = []): void {
    const connection = this.connectionOf(socket);
    if (connection.closing || connection.failure !== undefined) return;
    connection.failure = { error: failure, fields };
    const last = connection.waiting.at(-1) ?? connection.current;
    if (last?.isArriving === true) last.fail(failure);
    else if (!connection.busy) this.#answerFailure(connection);
  }

  #begin(connection: Connection, exchange: Exchange): void {
    connection.current = exchange;
    connection.requests += 1;
    try {
      exchange.check();
    } catch (error) {
      // After a head that is refused nothing can be trusted to be a request.
      connection.closing = true;
      return this.#reply(connection, exchange, this.#refuse(error, exchange));
    }
    if (connection.isProxy) Object.assign(exchange, resolveCaller(connection.peer, exchange.fields, this.#proxies));
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#handle(exchange);
    } catch (error) {
      reply = this.#refuse(error, exchange);
    }
    if (reply instanceof Promise) void this.#await(connection, exchange, reply);
    else this.#reply(connection, exchange, reply);
  }

  #handle(exchange: Exchange): Reply | Promise<Reply> {
    if (exchange.target === '*') return asteriskReply;
    // Who sends slowly costs a connection, and keeps nobody else out.
    const waiting = this.#inFlight - this.#context.arriving.requests;
    if (waiting >= this.#limits.requestsInFlightMax && this.#options.unshed?.has(exchange.target) !== true) {
      return this.#refuse(overloaded, exchange);
    }
    return this.#options.handle(exchange);
  }

  async #await(connection: Connection, exchange: Exchange, reply: Promise<Reply>): Promise<void> {
    connection.busy = true;
    this.#inFlight += 1;
    let settled: Reply;
    try {
      settled = await reply;
    } catch (error) {
      settled = this.#refuse(error, exchange);
    }
    this.#inFlight -= 1;
    connection.busy = false;
    this.#send(connection, exchange, settled);
    this.#continue(connection);
  }

  #refuse(error: unknown, exchange: Exchange): Reply {
    if (error instanceof CairnError) return this.#options.refuse(error, exchange.id);
    this.#options.onFailure?.(error, exchange);
    return this.#options.refuse(internal, exchange.id);
  }

  /** Sends a reply that is ready, now or with those of others. */
  #reply(connection: Connection, exchange: Exchange, reply: Reply): void {
    if (!this.gathers) return this.#send(connection, exchange, reply);
    connection.busy = true;
    if (this.#gathered.push({ connection, exchange, reply }) === 1) setImmediate(() => this.#sendGathered());
  }

  #sendGathered(): void {
    for (const { connection, exchange, reply } of this.#gathered.splice(0)) {
      connection.busy = false;
      this.#send(connection, exchange, reply);
      this.#continue(connection);
    }
  }

  #send(connection: Connection, exchange: Exchange, reply: Reply): void {
    const unreadable = connection.failure !== undefined && exchange.isArriving;
    const last = connection.requests >= this.#limits.requestsPerConnectionMax;
    // Upgrade is ignored (RFC 9110 §7.8), but behind it Node's parser drops the rest of the packet, and would then take
    // for a request what may be the content of one that was dropped.
    const upgrade = exchange.fields.get('upgrade') !== undefined;
    if (last || unreadable || upgrade || this.draining || exchange.lingers) connection.closing = true;
    const { onAnswered, clock } = this.#options;
    let streaming: Promise<void> | undefined;
    try {
      streaming = exchange.send(reply, connection.closing, (status, bytes, aborted) => {
        const durationMs = clock.elapsed() - exchange.startedMs;
        onAnswered?.({ request: exchange, status, bytes, durationMs, aborted });
      });
    } catch (error) {
      // Node refuses a field that cannot stand on the wire; nothing of the reply has been sent then.
      this.#options.onFailure?.(error, exchange);
      exchange.abandon();
    }
    if (streaming === undefined) return;
    connection.busy = true;
    void streaming.then(() => {
      connection.busy = false;
      this.#continue(connection);
    });
  }

  /** Takes the requests that waited, until one of them has to wait itself. */
  #continue(connection: Connection): void {
    const { waiting } = connection;
    if (connection.socket.destroyed) connection.closing = true;
    while (!connection.busy && !connection.closing) {
      const next = waiting.shift();
      if (next === undefined) break;
      this.#begin(connection, next);
    }
    if (connection.closing) {
      waiting.length = 0;
    } else if (connection.paused && waiting.length < this.#limits.pipelinedRequestsMax) {
      connection.paused = false;
      connection.socket.resume();
    }
    if (!connection.busy && connection.failure !== undefined) this.#answerFailure(connection);
  }

  #answerFailure(connection: Connection): void {
    const { current } = connection;
    if (current === undefined || current.outgoing.destroyed) this.#writeFailure(connection);
    else current.outgoing.once('close', () => this.#writeFailure(connection));
  }

  /** There is no `ServerResponse` for what never became a request, so the reply is written by hand. */
  #writeFailure(connection: Connection): void {
    const { socket, failure } = connection;
    if (failure === undefined || connection.closing) return;
    connection.closing = true;
    if (!socket.writable) return void socket.destroy();
    const { status, body, fields } = this.#options.refuse(failure.error);
    const content = typeof body === 'string' ? body : '';
    const bytes = Buffer.byteLength(content);
    const date = new Date(this.#options.clock.now()).toUTCString();
    const raw = [...fields, ...failure.fields, 'Date', date, 'Content-Length', String(bytes), 'Connection', 'close'];
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    raw.forEach((part, index) => (head += index % 2 === 0 ? `${part}: ` : `${part}\r\n`));
    socket.end(`${head}\r\n${content}`);
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerTimeoutMs).unref();
    socket.once('close', () => clearTimeout(timer));
    this.#options.onAnswered?.({ request: undefined, status, bytes, durationMs: 0, aborted: false });
  }
}
