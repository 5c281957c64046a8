import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';

import type { CairnError } from '../base/errors.ts';
import type { Limits } from '../base/limits.ts';
import { plainAddress } from '../base/network.ts';
import type { Caller } from './caller.ts';
import { discardInput, endSocket, linger, mustEnd } from './closing.ts';
import { corsFields } from './cors.ts';
import { Exchange, overloaded, problemOf, type HttpServerOptions, type Pools } from './exchange.ts';
import { isStreamed, type Reply, type StreamedBody } from './message.ts';
import type { Pace } from './pace.ts';

/** What the connections of a server share. */
export interface Shared {
  readonly options: HttpServerOptions & { readonly limits: Limits };
  readonly pools: Pools;
  /** Requests whose reply is being created, those that wait for their body included. */
  unanswered: number;
  /** Replies that are being streamed, or that the system has not accepted yet. */
  sending: number;
  /** The replies that say that there is no room. */
  readonly overloads: Pace;
  /** Open connections to the server's own ports. */
  readonly connections: number;
  /** Whether every reply ends its connection, since the server is stopping. */
  readonly isDraining: boolean;
  /** Connections with a reply that is held back until the end of the loop turn. */
  readonly holding: Connection[];
  /** Reports a peer that sends `X-Forwarded-For` and is not trusted. */
  reportProxy(address: string): void;
}

const strictTransport = ['Strict-Transport-Security', 'max-age=31536000'];
/** The memory that Node needs for a request that is ignored. */
const ignoredRequestBytes = 2048;
/** Even with fewer connections, none gets more than this part of what they share. */
const sharesMin = 8;
/** Up to this size, a reply is sent whatever waits for its caller. */
const uncountedReplyBytesMax = 64 * 1024;
/** What a stream keeps for a slow reader: a piece, and what Node and the socket buffer. */
const streamBytes = 128 * 1024;

/**
 * One connection, which has one request at a time. If another one arrives while the reply
 * to the first is still being created or streamed, that request and all that follow are
 * ignored, and the connection ends with that reply. Clients may then retry (RFC 9112
 * §9.3.2).
 */
export class Connection {
  readonly #socket: Socket;
  readonly #shared: Shared;
  readonly #peer: Caller;
  /** Whether the peer is a trusted proxy. */
  readonly #isProxy: boolean;
  #latest: Exchange | undefined;
  /** The reply to the latest request, while it is held back. */
  #held: Reply | undefined;
  /** The reply to the latest request, while it waits since too many others have no room. */
  #overload: Reply | undefined;
  /** Whether the connection ends with the reply to the latest request. */
  #isClosing = false;
  /** Whether further requests have arrived, which are ignored. */
  #isFollowed = false;
  /**
   * Bytes of ignored requests, and of replies that the system may not have accepted yet.
   */
  #piledBytes = 0;

  constructor(socket: Socket, shared: Shared) {
    const address = plainAddress(socket.remoteAddress ?? '');
    this.#socket = socket;
    this.#shared = shared;
    this.#peer = { address, encrypted: 'encrypted' in socket };
    this.#isProxy = shared.options.proxies(address);
    socket.once('close', () => {
      shared.overloads.forget(this.#sendOverload);
      this.#latest?.abandon();
    });
  }

  /** Answers a request that has just arrived. */
  receive(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): void {
    this.sendHeld();
    if (this.#isBusy || this.#isClosing) return this.#ignore();
    const exchange = this.#begin(incoming, outgoing, awaitsContinue);
    const shared = this.#shared;
    const { handle, alwaysServedTargets, limits } = shared.options;
    let reply: Reply | Promise<Reply>;
    try {
      exchange.check();
      if (this.#isProxy) exchange.adoptForwarded(this.#peer);
      else if (exchange.fields.get('x-forwarded-for') !== undefined)
        shared.reportProxy(exchange.address);
      const isOverloaded = shared.pools.inFlight.sum >= limits.requestsInFlightMax;
      if (isOverloaded && alwaysServedTargets?.has(exchange.target) !== true) throw overloaded;
      reply = handle(exchange);
    } catch (error) {
      reply = problemOf(error, exchange, shared.options);
    }
    if (!(reply instanceof Promise)) return this.#sendSoon(exchange, reply);
    shared.unanswered += 1;
    exchange.enter();
    const settle = (settled: Reply): void => {
      shared.unanswered -= 1;
      exchange.leave();
      this.#send(exchange, settled);
    };
    reply.then(settle, (error: unknown) => settle(problemOf(error, exchange, shared.options)));
  }

  /**
   * Ends the connection, on which nothing more can be read. If a request is being answered,
   * the connection ends with that reply, else with a reply that says what is wrong.
   */
  fail(failure: CairnError): void {
    this.sendHeld();
    const socket = this.#socket;
    const latest = this.#latest;
    const [isClosing, isBusy] = [this.#isClosing, this.#isBusy];
    this.#isClosing = true;
    // After CONNECT, Node no longer passes this event on.
    if (latest !== undefined && isBusy) socket.on('drain', () => latest.outgoing.emit('drain'));
    if (isClosing) return;
    if (latest !== undefined && isBusy) return latest.failBody(failure);
    if (latest?.incoming.complete === false) {
      socket.destroy();
      return;
    }
    const answer = (): void => {
      // No request was parsed, so this response is created here and not by Node's server.
      const incoming = new IncomingMessage(socket);
      incoming.complete = true;
      const outgoing = new ServerResponse(incoming);
      outgoing.assignSocket(socket);
      const exchange = this.#begin(incoming, outgoing, false);
      this.#send(exchange, problemOf(failure, exchange, this.#shared.options));
      endSocket(socket, this.#shared.options.limits.lingerTimeoutMs);
    };
    const before = latest?.outgoing;
    if (before === undefined || (before.writableFinished && before.socket === null)) answer();
    else before.once('finish', answer);
  }

  /** Sends the reply that was held back, if there is one. */
  sendHeld(): void {
    const [exchange, held] = [this.#latest, this.#held];
    this.#held = undefined;
    if (exchange !== undefined && held !== undefined) this.#send(exchange, held);
  }

  /** Whether the reply to the latest request is still being created or streamed. */
  get #isBusy(): boolean {
    return this.#latest?.outgoing.writableEnded === false;
  }

  #begin(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): Exchange {
    const { pools, options } = this.#shared;
    this.#latest = new Exchange(pools, options, this.#peer, incoming, outgoing, awaitsContinue);
    return this.#latest;
  }

  /** Ignores a request that arrived too early, and all that follows. */
  #ignore(): void {
    this.#isClosing = true;
    this.#isFollowed = true;
    discardInput(this.#socket);
    // By now, Node may have parsed thousands of requests. It keeps them until the reply
    // is sent.
    this.#piledBytes += ignoredRequestBytes;
    if (this.#isPiledUp) this.#socket.destroy();
  }

  /** Whether more waits on this connection than its share of the memory. */
  get #isPiledUp(): boolean {
    const { options, connections } = this.#shared;
    return this.#piledBytes > options.limits.piledBytesMax / Math.max(connections, sharesMin);
  }

  /**
   * Sends a reply that was ready at once. With many connections, such replies are held back
   * until the end of the loop turn and sent together: parsing and writing in separate runs
   * use the processor's caches better. A single caller would only wait.
   */
  #sendSoon(exchange: Exchange, reply: Reply): void {
    const { connections, options, holding } = this.#shared;
    if (connections < options.limits.gatheringConnectionsMin) return this.#send(exchange, reply);
    this.#held = reply;
    if (holding.push(this) > 1) return;
    setImmediate(() => {
      for (const each of holding.splice(0)) each.sendHeld();
    });
  }

  /**
   * Sends the reply to a request. Those who are told that there is no room may ask again at
   * once, which takes time from the requests that there is room for, so these replies have a
   * pace.
   */
  #send(exchange: Exchange, reply: Reply): void {
    const shared = this.#shared;
    const isPaced = reply.isOverload === true && !shared.isDraining && !this.#socket.destroyed;
    if (!isPaced) return this.#sendNow(exchange, reply);
    this.#overload = reply;
    shared.overloads.run(this.#sendOverload);
  }

  readonly #sendOverload = (): void => {
    const [exchange, overload] = [this.#latest, this.#overload];
    this.#overload = undefined;
    if (exchange !== undefined && overload !== undefined) this.#sendNow(exchange, overload);
  };

  #sendNow(exchange: Exchange, reply: Reply): void {
    const { status, body } = reply;
    const { outgoing } = exchange;
    // A response has the socket only when the system has accepted all earlier ones.
    if (outgoing.socket !== null) this.#piledBytes = 0;
    const isStream = isStreamed(body);
    const bytes = isStream || body === undefined ? 0 : Buffer.byteLength(body);
    const isCountedStream = isStream && reply.isEndless !== true;
    const counted = isCountedStream ? streamBytes : bytes;
    if (counted > uncountedReplyBytesMax && !this.#takeMemory(exchange, counted)) {
      // The generator's own end gives back what it holds.
      if (isStream) void body[Symbol.asyncIterator]().return?.();
      return this.#send(exchange, problemOf(overloaded, exchange, this.#shared.options));
    }
    this.#isClosing ||= this.#shared.isDraining || this.#isPiledUp || mustEnd(exchange, isStream);
    this.#piledBytes += bytes;
    if (!this.#writeHead(exchange, reply, isStream ? undefined : bytes)) return;
    if (isStream) {
      void this.#stream(exchange, body, reply);
      return;
    }
    const content = exchange.method === 'HEAD' ? undefined : body;
    this.#end(exchange, content, bytes);
    exchange.report(status, content === undefined ? 0 : bytes);
  }

  /** Counts a reply in its caller's share until it is sent. Returns false if it is full. */
  #takeMemory({ caller, outgoing }: Exchange, bytes: number): boolean {
    const { waiting } = this.#shared.pools;
    const socket = this.#socket;
    const end = waiting.begin(caller, bytes, () => socket.destroy());
    if (end === undefined) return false;
    const release = (): void => {
      outgoing.off('close', release);
      socket.off('close', release);
      end();
    };
    // A response that never gets the socket is not closed with it.
    outgoing.on('close', release);
    socket.on('close', release);
    return true;
  }

  /** Returns whether the head could be sent. Without `bytes`, the content is a stream. */
  #writeHead(exchange: Exchange, { status, fields }: Reply, bytes: number | undefined): boolean {
    const { allowedOrigins, onError } = this.#shared.options;
    const all = [...fields, 'X-Request-Id', exchange.id];
    all.push(...corsFields(exchange.fields, allowedOrigins));
    if (exchange.encrypted) all.push(...strictTransport);
    if (this.#isClosing) all.push('Connection', 'close');
    if (bytes !== undefined && status !== 204 && status !== 304)
      all.push('Content-Length', String(bytes));
    try {
      exchange.outgoing.writeHead(status, all);
      return true;
    } catch (error) {
      // A field has characters that cannot be sent. Nothing of the reply has been sent yet.
      onError?.(error, exchange);
      this.#socket.destroy();
      return false;
    }
  }

  /** Sends the content, and ends the connection if this was its last reply. */
  #end(exchange: Exchange, content: string | Buffer | undefined, bytes: number): void {
    const { incoming, outgoing, head } = exchange;
    const socket = this.#socket;
    const { lingerTimeoutMs, slowReaderTimeoutMs } = this.#shared.options.limits;
    if (content !== undefined) {
      // Head and content in one write: `end(content)` makes two, of which the second is
      // empty. A text with as many bytes as code units is ASCII.
      socket.cork();
      outgoing.write(content, content.length === bytes ? 'latin1' : 'utf8');
      socket.uncork();
    }
    const isArriving = head?.contentLength !== 0 && !incoming.complete && !socket.readableEnded;
    if (this.#isClosing && (this.#isFollowed || isArriving)) {
      outgoing.flushHeaders();
      linger(this.#isFollowed ? socket : incoming, lingerTimeoutMs, () => outgoing.end());
    } else {
      outgoing.end();
    }
    if (outgoing.writableLength === 0) return;
    // By default, Node waits for a slow reader without end.
    socket.setTimeout(slowReaderTimeoutMs);
    if (outgoing.socket === null) return;
    this.#shared.sending += 1;
    outgoing.once('close', () => (this.#shared.sending -= 1));
  }

  async #stream(
    exchange: Exchange,
    body: StreamedBody,
    { status, isEndless = false }: Reply,
  ): Promise<void> {
    const { outgoing, signal, method } = exchange;
    const socket = this.#socket;
    const shared = this.#shared;
    const { lingerTimeoutMs, slowReaderTimeoutMs } = shared.options.limits;
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
    shared.sending += 1;
    socket.setTimeout(slowReaderTimeoutMs);
    // A failure breaks the connection, which is the only way to say that the content is
    // incomplete.
    await pipeline(counted, outgoing, { signal }).catch((error: unknown) => {
      if (!signal.aborted) shared.options.onError?.(error, exchange);
    });
    shared.sending -= 1;
    socket.off('end', leave);
    exchange.report(status, bytes);
    // If the server began to drain during the stream, the reply did not announce "close".
    const isLast = this.#isClosing || shared.isDraining;
    if (isLast && this.#latest === exchange) endSocket(socket, lingerTimeoutMs);
  }
}
