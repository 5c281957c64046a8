import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';

import { CairnError } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import { discardInput, endSocket, linger, mustEnd } from './closing.ts';
import { Connection, Exchange, type Arriving, type ExchangerOptions } from './exchange.ts';
import { isStreamed, type Reply, type StreamedBody } from './message.ts';

/** The error that the caller gets where there was a bug. */
export const internal = new CairnError(
  'internal',
  'Cannot answer the request: the server has an internal error',
);
/** Created once, because refusing requests in an overload must be cheap. */
const overloaded = new CairnError(
  'overloaded',
  'Cannot answer the request: too many are in progress, try again later',
  { retryAfterSeconds: 1 },
);
const strictTransport = ['Strict-Transport-Security', 'max-age=31536000'];
/** The memory that Node needs for a request that is ignored. */
const ignoredRequestBytes = 2048;
/** Even with fewer connections, none gets more than this part of what they share. */
const sharesMin = 8;

/**
 * Connects Node's parser with a handler: turns what was parsed into requests, and sends
 * the replies. Several servers may share one exchanger.
 *
 * Each connection has one request at a time. If another one arrives while the reply to
 * the first is still being created or streamed, that request and all that follow are
 * ignored, and the connection ends with that reply. Clients may then retry (RFC 9112
 * §9.3.2).
 */
export class Exchanger {
  readonly options: ExchangerOptions;
  readonly limits: Limits;
  readonly arriving: Arriving;
  /** Requests whose reply is being created. */
  inFlight = 0;
  /** Replies that are being streamed, or that the system has not accepted yet. */
  sending = 0;
  /** Open connections of `HttpServer`s. */
  connections = 0;
  /** Connections refused because a limit was reached. */
  refused = 0;
  /** Whether every reply ends its connection, since the server is stopping. */
  draining = false;
  readonly #connections = new WeakMap<Socket, Connection>();
  /** Requests with a reply that is held back until the end of the loop turn. */
  readonly #holding: Exchange[] = [];
  #hasReportedProxy = false;

  constructor(options: ExchangerOptions) {
    this.options = options;
    this.limits = { ...limits, ...options.limits };
    const { arrivingBytesMax, arrivingBytesPerCallerMax, uncountedBodyBytesMax } = this.limits;
    const part = (share: number): Shares =>
      new Shares(share * arrivingBytesMax, arrivingBytesPerCallerMax);
    this.arriving = {
      count: 0,
      fromUsers: part(3 / 4),
      fromOthers: part(1 / 4),
      uncountedBytesMax: uncountedBodyBytesMax,
    };
  }

  /** Answers a request that has just arrived at a `node:http` or `node:https` server. */
  readonly receive = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    awaitsContinue = false,
  ): void => {
    const { proxies, handle, alwaysServedTargets } = this.options;
    const connection = this.#connectionOf(incoming.socket);
    if (connection.isBusy || connection.isClosing) return this.#ignore(connection, incoming.socket);
    const exchange = this.#begin(connection, incoming, outgoing);
    exchange.awaitsContinue = awaitsContinue;
    let reply: Reply | Promise<Reply>;
    try {
      exchange.check();
      if (connection.isProxy) exchange.believe(proxies);
      else if (exchange.fields.get('x-forwarded-for') !== undefined)
        this.#reportProxy(exchange.address);
      // A request whose body arrives slowly is bounded by its connection, so it is not
      // counted.
      const isOverloaded = this.inFlight - this.arriving.count >= this.limits.requestsInFlightMax;
      if (isOverloaded && alwaysServedTargets?.has(exchange.target) !== true) throw overloaded;
      reply = handle(exchange);
    } catch (error) {
      reply = this.#refuse(error, exchange);
    }
    if (!(reply instanceof Promise)) return this.#sendSoon(exchange, reply);
    this.inFlight += 1;
    const settle = (settled: Reply): void => {
      this.inFlight -= 1;
      this.#send(exchange, settled);
    };
    reply.then(settle, (error: unknown) => settle(this.#refuse(error, exchange)));
  };

  /**
   * Ends a connection on which nothing more can be read. If a request is being answered,
   * the connection ends with that reply, else with a reply that says what is wrong.
   */
  receiveFailure(socket: Socket, failure: CairnError): void {
    const connection = this.#connectionOf(socket);
    const { latest, isClosing, isBusy } = connection;
    connection.isClosing = true;
    // After CONNECT, Node no longer passes this event on.
    if (latest !== undefined && isBusy) socket.on('drain', () => latest.outgoing.emit('drain'));
    if (isClosing) return;
    if (latest !== undefined && isBusy) return latest.failBody(failure);
    if (latest?.incoming.complete === false) return void socket.destroy();
    const answer = (): void => {
      // No request was parsed, so this response is created here and not by Node's server.
      const incoming = Object.assign(new IncomingMessage(socket), { complete: true });
      const outgoing = new ServerResponse(incoming);
      outgoing.assignSocket(socket);
      const exchange = this.#begin(connection, incoming, outgoing);
      this.#send(exchange, this.#refuse(failure, exchange));
      endSocket(socket, this.limits.lingerTimeoutMs);
    };
    const before = latest?.outgoing;
    if (before === undefined || (before.writableFinished && before.socket === null)) answer();
    else before.once('finish', answer);
  }

  /** Returns the connection of a socket, after sending the reply that was held back. */
  #connectionOf(socket: Socket): Connection {
    const connection = this.#connections.get(socket) ?? new Connection(socket, this.options);
    if (connection.latest === undefined) this.#connections.set(socket, connection);
    else this.#sendHeld(connection.latest);
    return connection;
  }

  #begin(connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse): Exchange {
    return (connection.latest = new Exchange(
      connection,
      incoming,
      outgoing,
      this.arriving,
      this.options,
    ));
  }

  #reportProxy(address: string): void {
    if (!this.#hasReportedProxy) this.options.onUntrustedProxy?.(address);
    this.#hasReportedProxy = true;
  }

  #refuse(error: unknown, exchange: Exchange): Reply {
    if (error instanceof CairnError) return this.options.refuse(error, exchange);
    this.options.onError?.(error, exchange);
    return this.options.refuse(internal, exchange);
  }

  /** Ignores a request that arrived too early, and all that follows. */
  #ignore(connection: Connection, socket: Socket): void {
    connection.isClosing = true;
    connection.isFollowed = true;
    discardInput(socket);
    // By now, Node may have parsed thousands of requests. It keeps them until the reply
    // is sent.
    connection.piledBytes += ignoredRequestBytes;
    if (this.#isPiledUp(connection)) socket.destroy();
  }

  /** Whether more waits on this connection than its share of the memory. */
  #isPiledUp({ piledBytes }: Connection): boolean {
    return piledBytes > this.limits.piledBytesMax / Math.max(this.connections, sharesMin);
  }

  /**
   * Sends a reply that was ready at once. With many connections, such replies are held back
   * until the end of the loop turn and sent together: parsing and writing in separate runs
   * use the processor's caches better. A single caller would only wait.
   */
  #sendSoon(exchange: Exchange, reply: Reply): void {
    exchange.held = reply;
    if (this.connections < this.limits.gatheringConnectionsMin) return this.#sendHeld(exchange);
    if (this.#holding.push(exchange) > 1) return;
    setImmediate(() => {
      for (const each of this.#holding.splice(0)) this.#sendHeld(each);
    });
  }

  #sendHeld(exchange: Exchange): void {
    const { held } = exchange;
    exchange.held = undefined;
    if (held !== undefined) this.#send(exchange, held);
  }

  /** Sends the reply to a request. */
  #send(exchange: Exchange, reply: Reply): void {
    const { status, fields, body } = reply;
    const { connection, incoming, outgoing } = exchange;
    const { socket } = incoming;
    // A response has the socket only when the system has accepted all earlier ones.
    if (outgoing.socket !== null) connection.piledBytes = 0;
    const isStream = isStreamed(body);
    connection.isClosing ||=
      this.draining || this.#isPiledUp(connection) || mustEnd(exchange, isStream);
    const bytes = isStream || body === undefined ? 0 : Buffer.byteLength(body);
    connection.piledBytes += bytes;
    const all = [...fields, 'X-Request-Id', exchange.id];
    if (exchange.encrypted) all.push(...strictTransport);
    if (connection.isClosing) all.push('Connection', 'close');
    if (!isStream && status !== 204 && status !== 304) all.push('Content-Length', String(bytes));
    try {
      outgoing.writeHead(status, all);
    } catch (error) {
      // A field has characters that cannot be sent. Nothing of the reply has been sent
      // yet.
      this.options.onError?.(error, exchange);
      return void socket.destroy();
    }
    if (isStream) return void this.#stream(exchange, body, reply);
    const content = exchange.method === 'HEAD' ? undefined : body;
    if (content !== undefined) {
      // Head and content in one write: `end(content)` makes two, of which the second is
      // empty.
      socket.cork();
      outgoing.write(content);
      socket.uncork();
    }
    const isArriving =
      exchange.head?.contentLength !== 0 && !incoming.complete && !socket.readableEnded;
    if (connection.isClosing && (connection.isFollowed || isArriving)) {
      outgoing.flushHeaders();
      linger(connection.isFollowed ? socket : incoming, this.limits.lingerTimeoutMs, () =>
        outgoing.end(),
      );
    } else {
      outgoing.end();
    }
    if (outgoing.writableLength > 0) {
      // By default, Node waits for a slow reader without end.
      socket.setTimeout(this.limits.slowReaderTimeoutMs);
      if (outgoing.socket !== null) {
        this.sending += 1;
        outgoing.once('close', () => (this.sending -= 1));
      }
    }
    this.#report(exchange, status, content === undefined ? 0 : bytes);
  }

  async #stream(
    exchange: Exchange,
    body: StreamedBody,
    { status, isEndless = false }: Reply,
  ): Promise<void> {
    const {
      connection,
      outgoing,
      signal,
      method,
      incoming: { socket },
    } = exchange;
    let bytes = 0;
    async function* counted(): AsyncGenerator<string> {
      for await (const chunk of body) {
        if (method === 'HEAD') return;
        bytes += Buffer.byteLength(chunk);
        yield chunk;
        if (isEndless && socket.readableEnded) return;
      }
    }
    // A caller that has gone away looks like one that closed its half, until two writes
    // have failed.
    const leave = (): void => exchange.abandon();
    if (isEndless) socket.once('end', leave);
    this.sending += 1;
    socket.setTimeout(this.limits.slowReaderTimeoutMs);
    // A failure breaks the connection, which is the only way to say that the content is
    // incomplete.
    await pipeline(counted, outgoing, { signal }).catch((error: unknown) => {
      if (!signal.aborted) this.options.onError?.(error, exchange);
    });
    this.sending -= 1;
    socket.off('end', leave);
    this.#report(exchange, status, bytes);
    // If the server began to drain during the stream, the reply did not announce "close".
    const isLast = connection.isClosing || this.draining;
    if (isLast && connection.latest === exchange) endSocket(socket, this.limits.lingerTimeoutMs);
  }

  #report(
    { id, method, target, route, userId, startedMs }: Exchange,
    status: number,
    bytes: number,
  ): void {
    const { clock, onAnswered } = this.options;
    onAnswered?.({
      id,
      method,
      target,
      route,
      status,
      durationMs: clock.elapsed() - startedMs,
      bytes,
      userId,
    });
  }
}
