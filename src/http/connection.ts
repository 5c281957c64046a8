import { once } from 'node:events';
import type { Socket } from 'node:net';
import { finished } from 'node:stream/promises';

import { Holding } from '../base/budget.ts';
import { CairnError } from '../base/errors.ts';
import { isLoopback, plainAddress } from '../base/network.ts';
import { IncomingMessage, ServerResponse, timers } from '../base/system.ts';
import { discardInput, endSocket, linger, mustEnd } from './closing.ts';
import { Exchange, overloaded, problemOf, type Arrival } from './exchange.ts';
import { checkHead, hostOf } from './head.ts';
import { endUnread, isStreamed, type Reply, type StreamedBody } from './message.ts';
import type { Caller, Proxies, Shared } from './server-options.ts';

/** What a connection does. A connection that is `closing` or `closed` answers nothing more. */
type State =
  /** The next request is answered. */
  | 'ready'
  /** A reply is being created or streamed. If another request arrives, it is ignored. */
  | 'answering'
  /** A reply is being created or streamed, with which the connection ends. */
  | 'closing'
  /** The last reply has been handed to the system. */
  | 'closed';

/** The memory that Node needs for a request that waits or is ignored. */
const furtherRequestBytes = 2048;
/** The memory that a reply without content needs while it waits for an earlier one. */
const waitingReplyBytes = 8192;
/**
 * What of a stream is given to the system at once. A reply of this size takes no memory from its
 * caller's share if the system accepts it.
 */
const sliceLength = 64 * 1024;
/** The status of replies that may ask the caller to try again at once. */
const unavailable = 503;

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
  /** Present if the peer is one of them. */
  readonly #proxies: Proxies | undefined;
  #state: State = 'ready';
  #latest: Exchange | undefined;
  /** The reply to the latest request, while it is held back until the end of the loop turn. */
  #gathered: Reply | undefined;
  /** Each releases the memory of a reply that is being sent. */
  readonly #sending = new Set<() => void>();
  /** How many requests have arrived, one after the other, behind a reply that was not sent. */
  #pipelined = 0;
  /** Requests that have arrived with many others, and what is wrong with bytes behind them. */
  #waiting: (Arrival | CairnError)[] = [];
  /** The memory of further requests, which wait or are ignored. */
  #further: Holding | undefined;

  constructor(socket: Socket, shared: Shared) {
    const address = plainAddress(socket.remoteAddress ?? '');
    this.#socket = socket;
    this.#shared = shared;
    this.#peer = { address, encrypted: 'encrypted' in socket };
    const { proxies } = shared.options;
    this.#proxies = proxies?.has(address) === true ? proxies : undefined;
    socket.once('close', () => {
      for (const release of this.#sending) release();
      this.#waiting = [];
      this.#further?.release();
      this.#latest?.abandon();
    });
  }

  /**
   * Answers a request that has just arrived. Node's parser passes on all requests of 64 KiB in one
   * go, so all but the first of them wait until others have been served.
   */
  receive(arrival: Arrival): void {
    if (arrival.outgoing.socket !== null) this.#pipelined = 0;
    else this.#pipelined += 1;
    this.sendGathered();
    if (!this.#mustWait || this.#state !== 'ready') this.#receiveNow(arrival);
    else if (this.#holdFurther(furtherRequestBytes)) this.#wait(arrival);
  }

  /** Whether others are served first: behind many requests, and behind one that took long. */
  get #mustWait(): boolean {
    const { clock, limits } = this.#shared.options;
    if (this.#pipelined === 0) return false;
    if (this.#waiting.length > 0 || this.#pipelined >= limits.pipelinedRequestsMax) return true;
    const { startedMs = Infinity } = this.#latest ?? {};
    return clock.elapsed() - startedMs > limits.sliceMs;
  }

  /** Ends the connection, on which nothing more can be read, after the requests that wait. */
  fail(failure: CairnError): void {
    if (this.#waiting.length > 0) this.#wait(failure);
    else this.#failNow(failure);
  }

  #wait(next: Arrival | CairnError): void {
    if (this.#waiting.push(next) === 1) void this.#receiveWaiting();
  }

  /** Answers the requests that wait, a slice of time in each turn. Until then, no more are read. */
  async #receiveWaiting(): Promise<void> {
    this.#socket.pause();
    const endWaiting = this.#shared.reading.beginWaiting(this.#socket);
    while (this.#waiting.length > 0 && !this.#socket.destroyed) {
      await this.#shared.takeTurn(this.#peer.address);
      const [next] = this.#waiting;
      if (next instanceof CairnError) this.#failNow(next);
      else if (next !== undefined && this.#holdFurther(-furtherRequestBytes))
        this.#receiveNow(next);
      this.#waiting.shift();
    }
    this.#waiting = [];
    endWaiting();
    this.#socket.resume();
  }

  #receiveNow(arrival: Arrival): void {
    this.sendGathered();
    if (this.#state !== 'ready') return this.#ignore();
    this.#state = 'answering';
    const shared = this.#shared;
    const exchange = (this.#latest = new Exchange(shared, this.#peer, arrival));
    const reply = this.#answer(exchange);
    // Nobody counts the chunks that have arrived with it.
    if (exchange.isUnread) shared.reading.pauseNetwork(this.#socket);
    if (reply instanceof Promise) this.#await(exchange, reply);
    else this.#sendSoon(exchange, reply);
    shared.answering(shared.options.clock.elapsed() - exchange.startedMs);
  }

  #await(exchange: Exchange, reply: Promise<Reply>): void {
    const shared = this.#shared;
    shared.unanswered += 1;
    exchange.enter();
    const settle = (settled: Reply): void => {
      shared.endAnswering();
      exchange.leave();
      this.#send(exchange, settled);
    };
    reply.then(settle, (error: unknown) => settle(problemOf(error, exchange, shared.options)));
  }

  /**
   * If a request is being answered, the connection ends with that reply, else with a reply that
   * says what is wrong.
   */
  #failNow(failure: CairnError): void {
    this.sendGathered();
    const socket = this.#socket;
    const state = this.#state;
    const latest = this.#latest;
    // After CONNECT, Node no longer passes this event on.
    if (state !== 'ready') socket.on('drain', () => latest?.outgoing.emit('drain'));
    if (state === 'closing' || state === 'closed') return;
    this.#state = 'closing';
    if (state === 'answering') return latest?.failBody(failure);
    if (latest?.incoming.complete === false) {
      socket.destroy();
      return;
    }
    const before = latest?.outgoing;
    const isFirst = before === undefined || (before.writableFinished && before.socket === null);
    if (isFirst) this.#answerFailure(failure);
    else before.once('finish', () => this.#answerFailure(failure));
  }

  /** Sends the reply that was held back, if there is one. */
  sendGathered(): void {
    const reply = this.#gathered;
    this.#gathered = undefined;
    if (reply !== undefined && this.#latest !== undefined) this.#send(this.#latest, reply);
  }

  /** Returns the reply to a request. */
  #answer(exchange: Exchange): Reply | Promise<Reply> {
    const { exchanges, options } = this.#shared;
    const { handle, alwaysServedTargets, limits } = options;
    try {
      const { target } = (exchange.head = checkHead(exchange, exchange.incoming.httpVersion));
      exchange.target = target;
      const caller = this.#proxies?.callerBehind(this.#peer, exchange.fields);
      if (caller !== undefined) exchange.adoptForwarded(caller);
      else if (exchange.fields.get('x-forwarded-for') !== undefined)
        this.#shared.reportProxy(exchange.address);
      const isOverloaded = exchanges.sum >= limits.requestsInFlightMax;
      if (isOverloaded && alwaysServedTargets?.has(exchange.target) !== true) {
        exchanges.refusals.usedUp += 1;
        throw overloaded;
      }
      return handle(exchange);
    } catch (error) {
      return problemOf(error, exchange, options);
    }
  }

  /** Says what is wrong with bytes that are no request. */
  #answerFailure(failure: CairnError): void {
    const socket = this.#socket;
    const { options } = this.#shared;
    // No request was parsed, so this response is created here and not by Node's server.
    const incoming = new IncomingMessage(socket);
    incoming.complete = true;
    const outgoing = new ServerResponse(incoming);
    outgoing.assignSocket(socket);
    const arrival = { incoming, outgoing, awaitsContinue: false };
    const exchange = (this.#latest = new Exchange(this.#shared, this.#peer, arrival));
    this.#send(exchange, problemOf(failure, exchange, options));
    endSocket(socket, options.limits.lingerTimeoutMs);
  }

  /** Ignores a request that arrived too early, and all that follow. */
  #ignore(): void {
    if (this.#state === 'answering') this.#state = 'closing';
    discardInput(this.#socket);
    if (this.#pipelined === this.#shared.options.limits.pipelinedRequestsMax)
      this.#shared.reading.pauseNetwork(this.#socket);
    // By now, Node may have parsed thousands of requests. It keeps them until the reply
    // is sent.
    this.#holdFurther(furtherRequestBytes);
  }

  /** Counts more memory of further requests. Ends the connection if there is none. */
  #holdFurther(bytes: number): boolean {
    this.#further ??= new Holding(this.#shared.memory, this.#latest?.caller ?? '', undefined);
    const isHeld = this.#further.resize(this.#further.amount + bytes);
    if (isHeld || this.#socket.destroyed) return isHeld;
    this.#socket.destroy();
    this.#shared.reading.pauseAll();
    return false;
  }

  /**
   * Sends a reply that was ready at once. With many connections, short ones are held back
   * until the end of the loop turn and sent together: parsing and writing in separate runs
   * use the processor's caches better. A single caller would only wait, and long replies would
   * take memory that no share counts.
   */
  #sendSoon(exchange: Exchange, reply: Reply): void {
    const { connections, options, gathered } = this.#shared;
    const { body } = reply;
    const isLong = isStreamed(body) || (body?.length ?? 0) > sliceLength;
    const isAlone = connections < options.limits.gatheringConnectionsMin;
    if (isAlone || isLong || reply.status === unavailable) return this.#send(exchange, reply);
    this.#gathered = reply;
    if (gathered.push(this) > 1) return;
    timers.setImmediate(() => {
      for (const each of gathered.splice(0)) each.sendGathered();
    });
  }

  /**
   * Sends the reply to a request. Some 503s are held back: under 4,096 callers that ask again
   * at once, 2.5 % of the best throughput is left if they are sent at once, and 25 % if held back.
   */
  #send(exchange: Exchange, reply: Reply): void {
    const isPaced = reply.status === unavailable && !this.#shared.isDraining;
    const delayMs = isPaced ? this.#shared.overloadDelayMs() : 0;
    if (delayMs > 0) this.#sendLater(exchange, reply, delayMs);
    else this.#sendNow(exchange, reply);
  }

  /** Apart, since a closure would cost each reply its memory. */
  #sendLater(exchange: Exchange, reply: Reply, delayMs: number): void {
    timers.setTimeout(() => this.#sendNow(exchange, reply), delayMs);
  }

  #sendNow(exchange: Exchange, reply: Reply): void {
    const { status, body } = reply;
    const { outgoing } = exchange;
    const isHead = exchange.method === 'HEAD';
    const isStream = isStreamed(body);
    if (isStream && !isHead) {
      void this.#stream(exchange, reply, body);
      return;
    }
    if (isStream) endUnread(body);
    const content = isStream || isHead ? undefined : body;
    const bytes = isStream ? undefined : Buffer.byteLength(body ?? '');
    const sent = content === undefined ? 0 : (bytes ?? 0);
    // A response has the socket only when the system has accepted all earlier ones.
    const isBehind = outgoing.socket === null;
    const held = sent + bytesInMemory(content, sent) + (isBehind ? waitingReplyBytes : 0);
    const isCounted = (isBehind || held > sliceLength) && status !== unavailable;
    const holding = isCounted ? this.#hold(exchange, held) : undefined;
    if (isCounted && holding === undefined) return this.#refuse(exchange);
    if (!this.#writeHead(exchange, reply, bytes)) return;
    this.#end(exchange, content, sent);
    this.#state = this.#state === 'closing' ? 'closed' : 'ready';
    exchange.report(status, sent);
    if (outgoing.writableLength === 0 || holding !== undefined) return;
    if (this.#hold(exchange, held) === undefined) this.#socket.destroy();
  }

  /** Counts a reply in its caller's share until it is sent. */
  #hold({ caller, outgoing }: Exchange, bytes: number): Holding | undefined {
    const socket = this.#socket;
    const holding = this.#shared.memory.take(caller, bytes, () => socket.destroy());
    if (holding === undefined) return undefined;
    const release = (): void => {
      outgoing.off('close', release);
      this.#sending.delete(release);
      holding.release();
    };
    outgoing.on('close', release);
    // A response that never gets the socket is not closed with it.
    this.#sending.add(release);
    return holding;
  }

  /** Says that there is no memory for the reply. */
  #refuse(exchange: Exchange): void {
    // The caller does not read the earlier replies.
    if (exchange.outgoing.socket === null) this.#state = 'closing';
    this.#send(exchange, problemOf(overloaded, exchange, this.#shared.options));
  }

  /** Returns whether the head could be sent. Without `bytes`, the content is a stream. */
  #writeHead(exchange: Exchange, reply: Reply, bytes?: number): boolean {
    const { status, fields } = reply;
    const { options, isDraining } = this.#shared;
    const { cors, hstsSeconds = 0, onError } = options;
    if (isDraining || mustEnd(exchange, reply)) this.#state = 'closing';
    const own = cors?.withCors(fields, exchange.fields) ?? fields;
    const all = [...own, 'X-Request-Id', exchange.id];
    if (exchange.encrypted && hstsSeconds > 0 && !isLocalName(exchange.fields.get('host')))
      all.push('Strict-Transport-Security', `max-age=${hstsSeconds}`);
    if (this.#state === 'closing') all.push('Connection', 'close');
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
    const isFollowed = this.#further !== undefined && this.#further.amount > 0;
    const isArriving = head?.contentLength !== 0 && !incoming.complete && !socket.readableEnded;
    if (this.#state === 'closing' && (isFollowed || isArriving)) {
      outgoing.flushHeaders();
      const isChunked = head?.contentLength === undefined;
      if (isChunked) discardInput(socket);
      const arriving = isFollowed || isChunked ? socket : incoming;
      linger(arriving, lingerTimeoutMs, () => outgoing.end());
    } else {
      outgoing.end();
    }
    if (outgoing.writableLength === 0) return;
    // By default, Node waits for a slow reader without end.
    socket.setTimeout(slowReaderTimeoutMs);
    if (outgoing.socket === null) return;
    this.#shared.beginSending();
    outgoing.once('close', this.#shared.endSending);
  }

  /**
   * Streams a reply. Its first piece is counted before anything is sent, so that it can still
   * be refused.
   */
  async #stream(exchange: Exchange, reply: Reply, body: StreamedBody): Promise<void> {
    const { outgoing, signal } = exchange;
    const shared = this.#shared;
    const { options } = shared;
    const holding = this.#hold(exchange, sliceLength);
    if (holding === undefined) {
      endUnread(body);
      return this.#refuse(exchange);
    }
    shared.beginSending();
    try {
      await this.#sendPieces(exchange, reply, body, holding);
    } catch (error) {
      if (!outgoing.headersSent) {
        if (error === overloaded) return this.#refuse(exchange);
        return this.#send(exchange, problemOf(error, exchange, options));
      }
      // This is the only way to say that the content is incomplete.
      outgoing.destroy();
      if (!signal.aborted && error !== overloaded) options.onError?.(error, exchange);
    } finally {
      shared.endSending();
      holding.release();
    }
    if (!outgoing.headersSent) return;
    exchange.report(reply.status, exchange.bytes);
    // If the server began to drain during the stream, the reply did not announce "close".
    const isLast = this.#state === 'closing' || shared.isDraining;
    if (!isLast || this.#latest !== exchange) return;
    this.#state = 'closed';
    endSocket(this.#socket, options.limits.lingerTimeoutMs);
  }

  /** @throws `overloaded` if there is no memory for a piece; the errors of the body */
  async #sendPieces(
    exchange: Exchange,
    reply: Reply,
    body: StreamedBody,
    holding: Holding,
  ): Promise<void> {
    const { outgoing, signal } = exchange;
    const { isEndless = false } = reply;
    const socket = this.#socket;
    const begin = (): boolean => outgoing.headersSent || this.#writeHead(exchange, reply);
    // A caller that has gone away looks like one that closed its half, until two writes
    // have failed.
    const leave = (): void => exchange.abandon();
    if (isEndless) socket.once('end', leave);
    socket.setTimeout(this.#shared.options.limits.slowReaderTimeoutMs);
    for await (const piece of body) {
      const bytes = Buffer.byteLength(piece);
      // The piece itself, a record in it, and a slice for the system.
      const held = sliceLength + 2 * bytesInMemory(piece, bytes);
      // What the largest piece takes is held also while the next one is made.
      if (held > holding.amount && !holding.resize(held)) throw overloaded;
      if (!begin()) return;
      for (const slice of slicesOf(piece)) {
        signal.throwIfAborted();
        exchange.bytes += Buffer.byteLength(slice);
        if (!outgoing.write(slice)) await once(outgoing, 'drain', { signal });
      }
      if (!isEndless) continue;
      if (socket.readableEnded) break;
      // The next piece may come in hours.
      holding.resize(sliceLength);
    }
    socket.off('end', leave);
    signal.throwIfAborted();
    if (!begin()) return;
    if (this.#state === 'answering') this.#state = 'ready';
    outgoing.end();
    await finished(outgoing, { signal });
  }
}

/** Yields a text in slices, so that the system copies one of them at a time. */
function* slicesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + sliceLength, text.length);
    // Both halves of a surrogate pair stay together.
    if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

/** What V8 needs for a text of so many bytes in UTF-8, at most. Buffers belong to the server. */
function bytesInMemory(content: string | Buffer | undefined, bytes: number): number {
  if (typeof content !== 'string') return 0;
  return content.length === bytes ? bytes : 2 * content.length;
}

/** True for a name of this machine: HTTPS there must not oblige what else it serves. */
function isLocalName(authority = ''): boolean {
  const host = hostOf(authority);
  return isLoopback(host) || host.endsWith('.localhost');
}
