import { once } from 'node:events';
import type { Socket } from 'node:net';
import { finished } from 'node:stream/promises';

import type { CairnError } from '../base/errors.ts';
import { isLoopback, plainAddress } from '../base/network.ts';
import { STATUS_CODES, timers } from '../base/system.ts';
import { discardInput, endSocket, linger, mustEnd } from './closing.ts';
import { areTooSmall, Exchange, overloaded, toProblemReply, type Arrival } from './exchange.ts';
import { checkHead, contentOfRead, toHostName, isRead } from './head.ts';
import { endUnread, isStreamed, type Reply, type StreamedBody } from './message.ts';
import type { Peer, Proxies, Shared } from './server-options.ts';

type State =
  | 'ready'
  /** Meanwhile, another request is ignored. */
  | 'answering'
  | 'closing'
  | 'closed';

/** What Node's parser takes for "no HTTP follows". */
const upgraded = 2;
/** After this many TLS records of a smaller average size, other connections are read first. */
const [recordsAtOnce, recordBytesMin] = [64, 256];
const waitingReplyBytes = 8192;
/**
 * The part of a stream that is given to the system at once. A response of this size takes nothing
 * from its caller's share if the system accepts it.
 */
const sliceLength = 64 * 1024;
/** Sent even without memory for them. */
const unavailable = 503;

/**
 * One connection, which handles one request at a time. If another one arrives while a response is
 * still being created or streamed, that request and all later ones are ignored, and the connection
 * ends with that response. Clients may then retry (RFC 9112 §9.3.2).
 */
export class Connection {
  readonly #socket: Socket;
  readonly #shared: Shared;
  readonly #peer: Peer;
  readonly #proxies: Proxies | undefined;
  readonly #open = new Set<Exchange>();
  #state: State = 'ready';
  #latest: Exchange | undefined;
  /** Held back until the end of the loop turn. */
  #gathered: Reply | undefined;
  /** Consecutive requests that arrived before a response was sent. */
  #pipelined = 0;
  #hasIgnored = false;
  #records = 0;
  #recordBytes = 0;

  constructor(socket: Socket, shared: Shared) {
    const address = plainAddress(socket.remoteAddress ?? '');
    const encrypted = 'encrypted' in socket;
    this.#socket = socket;
    this.#shared = shared;
    this.#peer = { address, encrypted };
    const { proxies } = shared.options;
    this.#proxies = proxies?.has(address) === true ? proxies : undefined;
    if (encrypted) this.#watchRecords();
    this.#stopParserAtIgnored();
    shared.reading.add(socket);
    socket.once('close', () => {
      this.#latest?.abandon();
      for (const exchange of this.#open) exchange.close();
    });
  }

  /**
   * Stops Node's parser at a request that is ignored. Otherwise it parses all that it has read,
   * which can be thousands of requests, even if the socket is destroyed meanwhile.
   */
  #stopParserAtIgnored(): void {
    const parser: unknown = Reflect.get(this.#socket, 'parser');
    const onIncoming: unknown = Reflect.get(Object(parser), 'onIncoming');
    if (typeof onIncoming !== 'function') return;
    Reflect.set(Object(parser), 'onIncoming', (...head: unknown[]): unknown => {
      const answer: unknown = Reflect.apply(onIncoming, parser, head);
      return this.#hasIgnored ? upgraded : answer;
    });
  }

  #watchRecords(): void {
    const socket = this.#socket;
    socket.on('data', this.#countRecord);
    // Node does this only for connections without data listeners; others it goes on reading.
    const handle: unknown = Reflect.get(socket, '_handle');
    const call = (method: string) => () => {
      const work: unknown = Reflect.get(Object(handle), method);
      if (typeof work === 'function' && !socket.destroyed) Reflect.apply(work, handle, []);
    };
    socket.on('pause', call('readStop')).on('resume', call('readStart'));
  }

  /** Reading a record takes as long as a request, and 64 KiB can hold thousands of tiny ones. */
  readonly #countRecord = ({ length }: Buffer): void => {
    this.#records += 1;
    this.#recordBytes += length;
    const isMany = this.#records % recordsAtOnce === 0;
    if (isMany && this.#recordBytes < this.#records * recordBytesMin)
      this.#shared.reading.pauseNetwork(this.#socket);
    if (areTooSmall(this.#records, this.#recordBytes)) this.#socket.destroy();
  };

  receive(arrival: Arrival): void {
    const shared = this.#shared;
    this.#records = this.#recordBytes = 0;
    this.#pipelined = arrival.outgoing.socket === null ? this.#pipelined + 1 : 0;
    this.sendGathered();
    if (this.#pipelined >= shared.options.limits.pipelinedRequestsMax) this.#endPipeline();
    if (this.#state !== 'ready') return this.#ignore();
    this.#state = 'answering';
    const exchange = (this.#latest = new Exchange(shared, this.#peer, this.#open, arrival));
    const reply = this.#answer(exchange);
    // Chunks that arrived together with the head were not counted.
    if (exchange.isUnread) shared.reading.pauseNetwork(this.#socket);
    if (reply instanceof Promise) this.#await(exchange, reply);
    else if (this.#mayGather(reply)) this.#gather(reply);
    else this.#send(exchange, reply);
    shared.answering(shared.options.clock.elapsed() - exchange.startedMs);
  }

  #answer(exchange: Exchange): Reply | Promise<Reply> {
    const { options } = this.#shared;
    try {
      exchange.head = checkHead(exchange, exchange.incoming.httpVersion);
      exchange.target = exchange.head.target;
      const caller = this.#proxies?.callerBehind(this.#peer, exchange.fields);
      if (caller !== undefined) exchange.adoptForwarded(caller);
      else if (exchange.fields.get('x-forwarded-for') !== undefined)
        this.#shared.reportProxy(exchange.address);
      const isChunkedRead = exchange.head.contentLength === undefined && isRead(exchange.method);
      if (isChunkedRead) return this.#answerChunkedRead(exchange);
      return options.handle(exchange);
    } catch (error) {
      return toProblemReply(error, exchange, options);
    }
  }

  async #answerChunkedRead(exchange: Exchange): Promise<Reply> {
    try {
      await exchange.receiveBody(0);
    } catch {
      // Ends the connection even if the body is complete, like one with a Content-Length.
      exchange.head = undefined;
      throw contentOfRead;
    }
    return this.#shared.options.handle(exchange);
  }

  #await(exchange: Exchange, reply: Promise<Reply>): void {
    const shared = this.#shared;
    shared.unanswered += 1;
    exchange.enter();
    const settle = (settled: Reply): void => {
      exchange.leave();
      this.#send(exchange, settled);
      shared.unanswered -= 1;
      shared.notifyIdle();
    };
    reply.then(settle, (error: unknown) => settle(toProblemReply(error, exchange, shared.options)));
  }

  #ignore(): void {
    if (this.#state === 'answering') this.#state = 'closing';
    this.#hasIgnored = true;
    discardInput(this.#socket, this.#countRecord);
  }

  /**
   * Ends the connection after the pending responses, without lingering: until it has ended, Node
   * keeps every request that it has parsed.
   */
  #endPipeline(): void {
    if (this.#state !== 'ready') return;
    this.#state = 'closed';
    this.#afterLatest(() => this.#socket.destroySoon());
  }

  #afterLatest(callback: () => void): void {
    const before = this.#latest?.outgoing;
    if (before === undefined || (before.writableFinished && before.socket === null)) callback();
    else before.once('finish', callback);
  }

  /**
   * Ends a connection that can no longer be read. A response in progress is the last one; without
   * it, a bare response reports the failure.
   */
  fail(failure: CairnError): void {
    this.sendGathered();
    const state = this.#state;
    const latest = this.#latest;
    // After CONNECT, Node no longer passes this event on.
    if (state !== 'ready') this.#socket.on('drain', () => latest?.outgoing.emit('drain'));
    if (state === 'closing' || state === 'closed') return;
    this.#state = 'closing';
    if (state === 'answering') latest?.failBody(failure);
    else if (latest?.incoming.complete === false) this.#socket.destroy();
    else this.#afterLatest(() => this.#sendBare(failure));
  }

  /** Node has no response object for bytes that are not a request. */
  #sendBare({ status, fields }: CairnError): void {
    const { clock, nextId, limits, onAnswered } = this.#shared.options;
    const date = new Date(clock.now()).toUTCString();
    const all = [['Date', date], fields, ['Content-Length', '0'], ['Connection', 'close']];
    const lines = all.filter(({ length }) => length > 0).map((field) => field.join(': '));
    const line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`;
    this.#socket.write(`${[line, ...lines].join('\r\n')}\r\n\r\n`);
    endSocket(this.#socket, limits.lingerTimeoutMs, this.#countRecord);
    const { address } = this.#peer;
    const entry = { id: nextId(), method: '', target: '', route: undefined, userId: undefined };
    onAnswered?.({ ...entry, address, status, durationMs: 0, bytes: 0 });
  }

  #mayGather({ body }: Reply): boolean {
    const { connections, options } = this.#shared;
    // A single caller would only wait, and long responses would take uncounted memory.
    const areMany = connections >= options.limits.gatheringConnectionsMin;
    return areMany && !isStreamed(body) && (body?.length ?? 0) <= sliceLength;
  }

  /**
   * Sends a response together with the responses of other connections: parsing and writing in
   * separate runs use the processor's caches better.
   */
  #gather(reply: Reply): void {
    const { gathered } = this.#shared;
    this.#gathered = reply;
    if (gathered.push(this) > 1) return;
    timers.setImmediate(() => {
      for (const each of gathered.splice(0)) each.sendGathered();
    });
  }

  sendGathered(): void {
    const reply = this.#gathered;
    this.#gathered = undefined;
    if (reply !== undefined && this.#latest !== undefined) this.#send(this.#latest, reply);
  }

  #send(exchange: Exchange, reply: Reply): void {
    const { body, status } = reply;
    const isGone = this.#socket.destroyed;
    const isUnread = isGone || exchange.method === 'HEAD';
    if (isStreamed(body) && !isUnread) return void this.#stream(exchange, reply, body);
    if (isStreamed(body)) endUnread(body);
    if (isGone) exchange.report(status, 0);
    else this.#sendWhole(exchange, reply, isStreamed(body) ? undefined : (body ?? ''));
  }

  /** Without `body`, the content is a stream that is not read. */
  #sendWhole(exchange: Exchange, reply: Reply, body: string | Buffer | undefined): void {
    const { status } = reply;
    const { outgoing } = exchange;
    const bytes = body === undefined ? undefined : Buffer.byteLength(body);
    const content = exchange.method === 'HEAD' ? '' : (body ?? '');
    const sent = content === '' ? 0 : (bytes ?? 0);
    // A response gets the socket only when the system has accepted all earlier ones.
    const isBehind = outgoing.socket === null;
    const held = sent + bytesInMemory(content, sent) + (isBehind ? waitingReplyBytes : 0);
    const isCounted = (isBehind || held > sliceLength) && status !== unavailable;
    if (isCounted && !exchange.reserve(held)) return this.#refuse(exchange);
    if (!this.#writeHead(exchange, reply, bytes)) return;
    this.#end(exchange, content, sent);
    this.#state = this.#state === 'closing' ? 'closed' : 'ready';
    exchange.report(status, sent);
    if (outgoing.writableLength === 0) return exchange.close();
    if (!exchange.reserve(held)) this.#socket.destroy();
    else outgoing.once('close', () => exchange.close());
  }

  #refuse(exchange: Exchange): void {
    // The caller does not read the earlier responses.
    if (exchange.outgoing.socket === null) this.#state = 'closing';
    this.#send(exchange, toProblemReply(overloaded, exchange, this.#shared.options));
  }

  /** Returns true if the head was sent. Without `bytes`, the content is a stream. */
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
      // A header field cannot be sent. Nothing of the response has been sent yet.
      onError?.(error, exchange);
      this.#socket.destroy();
      return false;
    }
  }

  #end(exchange: Exchange, content: string | Buffer, bytes: number): void {
    const { incoming, outgoing, head } = exchange;
    const socket = this.#socket;
    const { lingerTimeoutMs, slowReaderTimeoutMs } = this.#shared.options.limits;
    if (content !== '') {
      // One write for head and content, while `end(content)` makes a second, empty one. A string
      // with as many bytes as code units is ASCII.
      socket.cork();
      outgoing.write(content, content.length === bytes ? 'latin1' : 'utf8');
      socket.uncork();
    }
    const isArriving = head?.contentLength !== 0 && !incoming.complete && !socket.readableEnded;
    if (this.#state === 'closing' && (this.#hasIgnored || isArriving)) {
      outgoing.flushHeaders();
      const isChunked = head?.contentLength === undefined;
      if (isChunked) discardInput(socket, this.#countRecord);
      const arriving = this.#hasIgnored || isChunked ? socket : incoming;
      linger(arriving, lingerTimeoutMs, () => outgoing.end());
    } else {
      outgoing.end();
    }
    // By default, Node waits forever for a slow reader.
    if (outgoing.writableLength > 0) socket.setTimeout(slowReaderTimeoutMs);
  }

  /**
   * Streams a response. Its first piece is counted before anything is sent, so it can still be
   * refused.
   */
  async #stream(exchange: Exchange, reply: Reply, body: StreamedBody): Promise<void> {
    const { outgoing, signal } = exchange;
    const shared = this.#shared;
    const { options } = shared;
    try {
      await this.#sendPieces(exchange, reply, body);
    } catch (error) {
      if (!outgoing.headersSent) {
        if (error === overloaded) return this.#refuse(exchange);
        return this.#send(exchange, toProblemReply(error, exchange, options));
      }
      // Nothing else can tell the caller that the content is incomplete.
      outgoing.destroy();
      if (!signal.aborted && error !== overloaded) options.onError?.(error, exchange);
    }
    exchange.close();
    if (!outgoing.headersSent) return;
    exchange.report(reply.status, exchange.bytes);
    // If the server began to drain during the stream, the head did not announce "close".
    const isLast = this.#state === 'closing' || shared.isDraining;
    if (!isLast || this.#latest !== exchange) return;
    this.#state = 'closed';
    endSocket(this.#socket, options.limits.lingerTimeoutMs, this.#countRecord);
  }

  /** @throws `overloaded` if there is no memory for a piece; errors of the body */
  async #sendPieces(exchange: Exchange, reply: Reply, body: StreamedBody): Promise<void> {
    const { outgoing, signal } = exchange;
    const { isEndless = false } = reply;
    const socket = this.#socket;
    if (!exchange.reserve(sliceLength)) {
      endUnread(body);
      throw overloaded;
    }
    const begin = (): boolean => outgoing.headersSent || this.#writeHead(exchange, reply);
    // Until two writes have failed, a caller that has left looks like one that closed its half.
    const leave = (): void => exchange.abandon();
    if (isEndless) socket.once('end', leave);
    socket.setTimeout(this.#shared.options.limits.slowReaderTimeoutMs);
    for await (const piece of body) {
      const bytes = Buffer.byteLength(piece);
      // The piece itself, a record in it, and a slice for the system.
      const held = sliceLength + 2 * bytesInMemory(piece, bytes);
      // The largest piece's memory stays reserved while the next one is made.
      if (held > exchange.reserved && !exchange.reserve(held)) throw overloaded;
      if (!begin()) return;
      for (const slice of cutText(piece)) {
        signal.throwIfAborted();
        exchange.bytes += Buffer.byteLength(slice);
        if (!outgoing.write(slice)) await once(outgoing, 'drain', { signal });
      }
      if (!isEndless) continue;
      if (socket.readableEnded) break;
      // The next piece may take hours.
      exchange.reserve(sliceLength);
    }
    socket.off('end', leave);
    signal.throwIfAborted();
    if (!begin()) return;
    if (this.#state === 'answering') this.#state = 'ready';
    outgoing.end();
    await finished(outgoing, { signal });
  }
}

/** The system copies one slice at a time. */
function* cutText(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + sliceLength, text.length);
    // Never splits a surrogate pair.
    if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

/** Returns the most memory that V8 needs for a text. Buffers belong to the server. */
function bytesInMemory(content: string | Buffer, bytes: number): number {
  if (typeof content !== 'string') return 0;
  return content.length === bytes ? bytes : 2 * content.length;
}

/** True for a name of this machine: HSTS would affect other servers on it. */
function isLocalName(authority = ''): boolean {
  const host = toHostName(authority);
  return isLoopback(host) || host.endsWith('.localhost');
}
