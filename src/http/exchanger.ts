import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';

import { CairnError } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import type { TrustedProxies } from '../base/network.ts';
import { Shares } from '../base/shares.ts';
import type { Clock } from '../base/system.ts';
import type { Caller } from './caller.ts';
import { Connection, discardInput, endSocket, isStreamed, linger, mustEnd } from './connection.ts';
import { Exchange, type Arriving } from './exchange.ts';
import type { Handle, Refuse, Reply, Request, RequestEntry, StreamedBody } from './message.ts';

export interface ExchangerOptions {
  readonly clock: Clock;
  /** Makes request ids (`createRequestIds`). */
  readonly nextId: () => string;
  readonly handle: Handle;
  readonly refuse: Refuse;
  readonly proxies: TrustedProxies;
  /** Called after each reply. */
  readonly onAnswered?: ((entry: RequestEntry) => void) | undefined;
  /** Called with an error that a handler or a streamed body should not have thrown: a bug, for the log alone. */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /** Called once, with the address of a peer that is no trusted proxy and sends `X-Forwarded-For`. */
  readonly onUntrustedProxy?: ((address: string) => void) | undefined;
  /** Targets that are answered under any load, such as `/livez`. */
  readonly alwaysServedTargets?: ReadonlySet<string> | undefined;
  /** Bounds other than those of `limits`. */
  readonly limits?: Partial<Limits> | undefined;
}

/** The error that a caller is told of when there was a bug. */
export const internal = new CairnError('internal', 'Cannot answer: the server met a fault of its own');
/** Made once, since a refusal in an overload must cost next to nothing. */
const overloaded = new CairnError('overloaded', 'Cannot take the request: too many are in flight', {
  retryAfterSeconds: 1,
});
const strictTransport = ['Strict-Transport-Security', 'max-age=31536000'];
/** The memory that Node takes for a request that is not looked at. */
const ignoredRequestBytes = 2048;
/** So few connections cannot have all of what is shared. */
const sharesMin = 8;

/**
 * Turns what Node's parser hands over into requests, and replies into what Node sends. Any number of servers may share
 * one.
 *
 * One request at a time is answered on each connection. A request that arrives while the reply to the one before it is
 * still being made or streamed is not looked at, and neither is what follows: the connection ends with that reply, and
 * the caller may ask again (RFC 9112 §9.3.2).
 */
export class Exchanger {
  readonly options: ExchangerOptions;
  readonly limits: Limits;
  readonly arriving: Arriving;
  /** Requests whose reply is being made. */
  inFlight = 0;
  /** Replies that are streamed, or that are not taken yet; these keep nobody out. */
  sending = 0;
  /** Open connections of `HttpServer`s, and how many found a cap reached. */
  connections = 0;
  refused = 0;
  /** While this is set, every reply ends its connection. */
  draining = false;
  readonly #connections = new WeakMap<Socket, Connection>();
  #hasReportedProxy = false;
  /** Connections with a reply that is held until the end of the loop turn. */
  readonly #holding: Connection[] = [];

  constructor(options: ExchangerOptions) {
    this.options = options;
    this.limits = { ...limits, ...options.limits };
    const { arrivingBytesMax, arrivingBytesPerCallerMax, uncountedBodyBytesMax } = this.limits;
    const part = (share: number): Shares => new Shares(share * arrivingBytesMax, arrivingBytesPerCallerMax);
    this.arriving = {
      count: 0, fromUsers: part(3 / 4), fromOthers: part(1 / 4), uncountedBytesMax: uncountedBodyBytesMax,
    };
  }

  /** Takes a request that has just arrived, from any `node:http` or `node:https` server. */
  readonly receive = (incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue = false): void => {
    const { nextId, clock, proxies, handle, alwaysServedTargets } = this.options;
    const connection = this.#connectionOf(incoming.socket);
    if (connection.isBusy || connection.isClosing) return this.#ignore(connection, incoming.socket);
    const exchange = new Exchange(incoming, outgoing, nextId(), clock.elapsed(), connection.peer, this.arriving);
    exchange.awaitsContinue = awaitsContinue;
    connection.latest = exchange;
    let reply: Reply | Promise<Reply>;
    try {
      exchange.check();
      if (connection.isProxy) exchange.believe(connection.peer, proxies);
      else if (exchange.fields.get('x-forwarded-for') !== undefined) this.#reportProxy(connection.peer);
      // A slow sender costs a connection, and keeps nobody else out.
      const isOverloaded = this.inFlight - this.arriving.count >= this.limits.requestsInFlightMax;
      if (isOverloaded && alwaysServedTargets?.has(exchange.target) !== true) throw overloaded;
      reply = handle(exchange);
    } catch (error) {
      reply = this.#refuse(error, exchange);
    }
    if (!(reply instanceof Promise)) return this.#sendSoon(connection, reply);
    this.inFlight += 1;
    const settle = (settled: Reply): void => {
      this.inFlight -= 1;
      this.#send(connection, settled);
    };
    reply.then(settle, (error: unknown) => settle(this.#refuse(error, exchange)));
  };

  /**
   * Takes what makes a connection unreadable. If it concerns a request that has a reply, or will have one, the
   * connection ends with that; else with a reply of its own.
   */
  receiveFailure(socket: Socket, failure: CairnError): void {
    const connection = this.#connectionOf(socket);
    const { latest, isClosing, isBusy } = connection;
    connection.isClosing = true;
    // After CONNECT, Node does not pass this on any more.
    if (latest !== undefined && isBusy) socket.on('drain', () => latest.outgoing.emit('drain'));
    if (isClosing) return;
    if (latest !== undefined && isBusy) return latest.failBody(failure);
    if (latest?.incoming.complete === false) return void socket.destroy();
    const end = (): void => {
      socket.write(this.#lastReply(failure, connection.peer));
      endSocket(socket, this.limits.lingerTimeoutMs);
    };
    if (latest === undefined || latest.outgoing.writableFinished) end();
    else latest.outgoing.once('finish', end);
  }

  /** The connection of a socket, after a reply that was held. */
  #connectionOf(socket: Socket): Connection {
    const connection = this.#connections.get(socket) ?? new Connection(socket, this.options.proxies);
    if (connection.latest === undefined) this.#connections.set(socket, connection);
    this.#sendHeld(connection);
    return connection;
  }

  #reportProxy({ address }: Caller): void {
    if (!this.#hasReportedProxy) this.options.onUntrustedProxy?.(address);
    this.#hasReportedProxy = true;
  }

  #refuse(error: unknown, exchange: Exchange): Reply {
    if (error instanceof CairnError) return this.options.refuse(error, exchange.id);
    this.options.onError?.(error, exchange);
    return this.options.refuse(internal, exchange.id);
  }

  /** Takes no notice of a request that has come too early, and lets what follows pass by unparsed. */
  #ignore(connection: Connection, socket: Socket): void {
    connection.isClosing = true;
    connection.isFollowed = true;
    discardInput(socket);
    // Node has parsed thousands of requests by then, and keeps them until the reply before them has been sent.
    connection.piledBytes += ignoredRequestBytes;
    if (this.#isPiledUp(connection)) socket.destroy();
  }

  /** Whether more waits behind a connection's replies than its share. */
  #isPiledUp({ piledBytes }: Connection): boolean {
    return piledBytes > this.limits.piledBytesMax / Math.max(this.connections, sharesMin);
  }

  /**
   * Sends a reply that is ready at once. With many callers it is held until the end of the loop turn, and then sent
   * together with those of others. This saves a third of the time, since parsing and writing each stay in the
   * processor's caches. A lone caller would only wait.
   */
  #sendSoon(connection: Connection, reply: Reply): void {
    connection.held = reply;
    if (this.connections < this.limits.gatheringConnectionsMin) return this.#sendHeld(connection);
    if (this.#holding.push(connection) > 1) return;
    setImmediate(() => {
      for (const each of this.#holding.splice(0)) this.#sendHeld(each);
    });
  }

  #sendHeld(connection: Connection): void {
    if (connection.held !== undefined) this.#send(connection, connection.held);
  }

  /** Sends the reply to the latest request. */
  #send(connection: Connection, reply: Reply): void {
    const { status, fields, body } = reply;
    const { latest: exchange } = connection;
    if (exchange === undefined) return;
    connection.held = undefined;
    const { incoming, outgoing } = exchange;
    const { socket } = incoming;
    // Node gives a response the socket when those before it have been taken.
    if (outgoing.socket !== null) connection.piledBytes = 0;
    connection.isClosing ||= this.draining || this.#isPiledUp(connection) || mustEnd(exchange, isStreamed(body));
    const bytes = isStreamed(body) || body === undefined ? 0 : Buffer.byteLength(body);
    connection.piledBytes += bytes;
    const all = [...fields, 'X-Request-Id', exchange.id];
    if (exchange.encrypted) all.push(...strictTransport);
    if (connection.isClosing) all.push('Connection', 'close');
    if (!isStreamed(body) && status !== 204 && status !== 304) all.push('Content-Length', String(bytes));
    try {
      outgoing.writeHead(status, all);
    } catch (error) {
      // A field cannot stand on the wire; nothing of the reply has been sent.
      this.options.onError?.(error, exchange);
      return void socket.destroy();
    }
    if (isStreamed(body)) return void this.#stream(connection, exchange, body, reply);
    const content = exchange.method === 'HEAD' ? undefined : body;
    if (content !== undefined) {
      // Head and content in one piece: `end(content)` makes two of them, of which the second is empty.
      socket.cork();
      outgoing.write(content);
      socket.uncork();
    }
    const isArriving = exchange.head?.contentLength !== 0 && !incoming.complete && !socket.readableEnded;
    if (connection.isClosing && (connection.isFollowed || isArriving)) {
      outgoing.flushHeaders();
      linger(connection.isFollowed ? socket : incoming, this.limits.lingerTimeoutMs, () => outgoing.end());
    } else {
      outgoing.end();
    }
    // Node itself lets a reader take as long as it likes.
    if (outgoing.writableLength > 0) socket.setTimeout(this.limits.slowReaderTimeoutMs);
    if (outgoing.writableLength > 0 && outgoing.socket !== null) {
      this.sending += 1;
      outgoing.once('close', () => (this.sending -= 1));
    }
    this.#report(exchange, status, content === undefined ? 0 : bytes);
  }

  async #stream(
    connection: Connection, exchange: Exchange, body: StreamedBody, { status, isEndless = false }: Reply,
  ): Promise<void> {
    const { outgoing, signal, method, incoming: { socket } } = exchange;
    let bytes = 0;
    async function* counted(): AsyncGenerator<string> {
      for await (const chunk of body) {
        if (method === 'HEAD') return;
        bytes += Buffer.byteLength(chunk);
        yield chunk;
        if (isEndless && socket.readableEnded) return;
      }
    }
    // A caller that has left looks like one that has only closed its half, until something is sent to it twice.
    const leave = (): void => exchange.abandon();
    if (isEndless) socket.once('end', leave);
    this.sending += 1;
    socket.setTimeout(this.limits.slowReaderTimeoutMs);
    // A failure breaks the connection: nothing else tells the caller that content which has begun is not whole.
    await pipeline(counted, outgoing, { signal }).catch((error: unknown) => {
      if (!signal.aborted) this.options.onError?.(error, exchange);
    });
    this.sending -= 1;
    socket.off('end', leave);
    this.#report(exchange, status, bytes);
    // A stream that began before the server drained has not announced that its connection ends.
    const isLast = connection.isClosing || this.draining;
    if (isLast && connection.latest === exchange) endSocket(socket, this.limits.lingerTimeoutMs);
  }

  #report({ id, method, target, route, userId, startedMs }: Exchange, status: number, bytes: number): void {
    const { clock, onAnswered } = this.options;
    onAnswered?.({ id, method, target, route, status, durationMs: clock.elapsed() - startedMs, bytes, userId });
  }

  /** The reply to what became no request, as text. */
  #lastReply(failure: CairnError, { encrypted }: Caller): string {
    const { nextId, refuse, clock, onAnswered } = this.options;
    const id = nextId();
    // CONNECT names no resource that could allow another method.
    const { status, fields, body } = refuse(failure, id, failure.code === 'method_not_allowed' ? ['Allow', ''] : []);
    const content = typeof body === 'string' ? body : '';
    const bytes = Buffer.byteLength(content);
    onAnswered?.({ id, method: '', target: '', route: undefined, status, durationMs: 0, bytes, userId: undefined });
    const all = [...fields, 'X-Request-Id', id, ...(encrypted ? strictTransport : [])];
    all.push('Date', new Date(clock.now()).toUTCString(), 'Connection', 'close', 'Content-Length', String(bytes));
    const lines = all.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${content}`;
  }
}
