import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { CairnError } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import { plainAddress, type TrustedProxies } from '../base/network.ts';
import { Exchange, type ExchangeContext } from './exchange.ts';
import { resolveCaller, type Caller, type Handle, type Refuse, type Reply } from './message.ts';

/** What is remembered of a socket between its requests. */
class Connection {
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
  /** Whether the reply to `current` is still being made or sent. */
  busy = false;
  /** Requests that arrived meanwhile (pipelining, RFC 9112 §9.3.2), to be answered in turn. */
  readonly waiting: Exchange[] = [];
  /** Whether so many wait that no more are read. */
  paused = false;
  /** Whether nothing more can be read: why not is told after the replies to what came before. */
  failed = false;

  constructor(socket: Socket, { proxies }: ExchangerOptions) {
    this.socket = socket;
    this.peer = { address: plainAddress(socket.remoteAddress ?? ''), encrypted: 'encrypted' in socket };
    this.isProxy = proxies(this.peer.address);
  }
}

export interface ExchangerOptions extends Omit<ExchangeContext, 'limits' | 'arriving'> {
  readonly handle: Handle;
  readonly refuse: Refuse;
  readonly proxies: TrustedProxies;
  /** Targets that are answered under any load, such as `/livez`. */
  readonly unshed?: ReadonlySet<string> | undefined;
  /** Bounds other than those of `limits`. */
  readonly limits?: Partial<Limits> | undefined;
}

/** What the caller is told of a bug. */
export const internal = new CairnError('internal', 'Cannot answer: the server met a fault of its own');
/** Made once: what is told to a crowd must cost next to nothing. */
const overloaded = new CairnError('overloaded', 'Cannot take the request: too many are in flight', {
  retryAfterSeconds: 1,
});

function pause(this: Socket): void {
  this.pause();
}

/**
 * Turns what Node's parser hands over into requests, and replies into what Node sends, in turn on each connection. Any
 * number of servers may share one.
 */
export class Exchanger {
  readonly context: ExchangerOptions & ExchangeContext;
  /** Requests whose reply waits for something. */
  inFlight = 0;
  /** Replies that the system has not taken whole, being long or read slowly; these keep nobody out. */
  sending = 0;
  /** Those that `HttpServer`s hold, and those that found a cap reached, or went beyond one by what they pipelined. */
  connections = 0;
  refused = 0;
  /** While it is set, every reply ends its connection. */
  draining = false;
  /** Of all connections together. */
  #waiting = 0;
  readonly #gathered: { connection: Connection; exchange: Exchange; reply: Reply }[] = [];
  readonly #connections = new WeakMap<Socket, Connection>();

  constructor(options: ExchangerOptions) {
    this.context = { ...options, limits: { ...limits, ...options.limits }, arriving: { requests: 0, bytes: 0 } };
  }

  /** Takes a request that has just arrived, from any `node:http` or `node:https` server. */
  readonly receive = (incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue = false): void => {
    const connection = this.#connectionOf(incoming.socket);
    if (connection.closing) return;
    const exchange = new Exchange(incoming, outgoing, connection.peer, this.context, awaitsContinue);
    if (!connection.busy) return this.#begin(connection, exchange);
    connection.waiting.push(exchange);
    this.#waiting += 1;
    // Who has few of them waiting is not cut off for those who have many.
    if (connection.paused && this.#waiting > this.context.limits.waitingRequestsMax) {
      this.refused += 1;
      connection.closing = true;
      return exchange.abandon();
    }
    if (connection.paused || connection.waiting.length < this.context.limits.pipelinedRequestsMax) return;
    connection.paused = true;
    // Node resumes whenever a request is complete: it would read on, and hand over requests without end.
    connection.socket.on('resume', pause).pause();
  };

  /**
   * Takes what makes a connection unreadable: answers it in its turn, as if it were a request, and ends the connection.
   */
  receiveFailure(socket: Socket, failure: CairnError): void {
    const connection = this.#connectionOf(socket);
    if (connection.closing || connection.failed) return;
    connection.failed = true;
    const last = connection.waiting.at(-1) ?? connection.current;
    if (last?.isArriving === true) return last.fail(failure);
    const incoming = Object.assign(new IncomingMessage(socket), { complete: true });
    const outgoing = new ServerResponse(incoming).once('finish', () => {
      socket.end();
      const timer = setTimeout(() => socket.destroy(), this.context.limits.lingerTimeoutMs).unref();
      socket.once('close', () => clearTimeout(timer));
    });
    // Node gives the socket to its own replies only, to each when the one before has let it go.
    const take = (): void => void (socket.writable ? outgoing.assignSocket(socket) : socket.destroy());
    if (last?.outgoing.destroyed === false) last.outgoing.once('close', take);
    else take();
    const exchange = new Exchange(incoming, outgoing, connection.peer, this.context, false);
    exchange.fail(failure);
    if (!connection.busy) return this.#begin(connection, exchange);
    this.#waiting += 1;
    connection.waiting.push(exchange);
  }

  #connectionOf(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) this.#connections.set(socket, (connection = new Connection(socket, this.context)));
    return connection;
  }

  #begin(connection: Connection, exchange: Exchange): void {
    connection.current = exchange;
    connection.requests += 1;
    let reply: Reply | Promise<Reply>;
    try {
      // After a head that is refused nothing can be trusted to be a request.
      connection.closing = true;
      exchange.check();
      connection.closing = false;
      const { isProxy, peer } = connection;
      if (isProxy) Object.assign(exchange, resolveCaller(peer, exchange.fields, this.context.proxies));
      reply = this.#handle(exchange);
    } catch (error) {
      reply = this.#refuse(error, exchange);
    }
    if (!(reply instanceof Promise)) return this.#reply(connection, exchange, reply);
    connection.busy = true;
    this.inFlight += 1;
    const settle = (settled: Reply): void => {
      this.inFlight -= 1;
      this.#finish(connection, exchange, settled);
    };
    reply.then(settle, (error: unknown) => settle(this.#refuse(error, exchange)));
  }

  #handle(exchange: Exchange): Reply | Promise<Reply> {
    // Who sends slowly costs a connection, and keeps nobody else out.
    const waiting = this.inFlight - this.context.arriving.requests;
    const isShed = waiting >= this.context.limits.requestsInFlightMax;
    if (isShed && this.context.unshed?.has(exchange.target) !== true) throw overloaded;
    return this.context.handle(exchange);
  }

  #refuse(error: unknown, exchange: Exchange): Reply {
    // Of what is refused here, CONNECT alone has this code: it names no resource that could allow another method.
    const isConnect = error instanceof CairnError && error.code === 'method_not_allowed';
    if (error instanceof CairnError) return this.context.refuse(error, exchange.id, isConnect ? ['Allow', ''] : []);
    this.context.onFailure?.(error, exchange);
    return this.context.refuse(internal, exchange.id);
  }

  /**
   * Sends a reply that is ready. With many callers it is held until everything that has arrived by now has been looked
   * at, and then sent with those of others: this saves a third of the time (parsing and writing each stay in the
   * processor's caches). A lone caller would only wait.
   */
  #reply(connection: Connection, exchange: Exchange, reply: Reply): void {
    if (this.connections < this.context.limits.gatheringConnectionsMin) return this.#send(connection, exchange, reply);
    connection.busy = true;
    if (this.#gathered.push({ connection, exchange, reply }) > 1) return;
    setImmediate(() => {
      for (const one of this.#gathered.splice(0)) this.#finish(one.connection, one.exchange, one.reply);
    });
  }

  /** Sends a reply that others have waited for. */
  #finish(connection: Connection, exchange: Exchange, reply: Reply): void {
    connection.busy = false;
    this.#send(connection, exchange, reply);
    this.#continue(connection);
  }

  #send(connection: Connection, exchange: Exchange, reply: Reply): void {
    const isFull = connection.requests >= this.context.limits.requestsPerConnectionMax;
    if (isFull || this.draining || exchange.isLast(reply)) connection.closing = true;
    let sending: Promise<void> | undefined;
    try {
      sending = exchange.send(reply, connection.closing);
    } catch (error) {
      // Node refuses a field that cannot stand on the wire; nothing of the reply has been sent then.
      this.context.onFailure?.(error, exchange);
      exchange.abandon();
    }
    if (sending === undefined) return;
    connection.busy = true;
    this.sending += 1;
    void sending.then(() => {
      this.sending -= 1;
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
      this.#waiting -= 1;
      this.#begin(connection, next);
    }
    if (connection.closing) {
      this.#waiting -= waiting.length;
      waiting.length = 0;
    } else if (connection.paused && waiting.length < this.context.limits.pipelinedRequestsMax) {
      connection.paused = false;
      connection.socket.off('resume', pause).resume();
    }
  }
}
