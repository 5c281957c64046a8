import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';

import { plainAddress, type TrustedProxies } from '../base/network.ts';
import type { Caller } from './caller.ts';
import type { Exchange } from './exchange.ts';
import type { Reply, StreamedBody } from './message.ts';

/** What is remembered of a connection. */
export class Connection {
  /** The other end, and whether it is a proxy that is believed. */
  readonly peer: Caller;
  readonly isProxy: boolean;
  /** The exchange that was begun last, and its reply while that is held. */
  latest: Exchange | undefined;
  held: Reply | undefined;
  /** Whether the connection ends with the latest reply. */
  isClosing = false;
  /** Whether requests have arrived that are not looked at. */
  isFollowed = false;
  /** Bytes of these requests, and of replies that the system may not have taken. */
  piledBytes = 0;

  constructor(socket: Socket, proxies: TrustedProxies) {
    this.peer = { address: plainAddress(socket.remoteAddress ?? ''), encrypted: 'encrypted' in socket };
    this.isProxy = proxies(this.peer.address);
    socket.once('close', () => this.latest?.abandon());
  }

  /** Whether the latest reply is still being made or streamed. */
  get isBusy(): boolean {
    return this.latest?.outgoing.writableEnded === false;
  }
}

/** After a reply, unread content up to this size is skipped; after more of it the connection ends. */
const skippedBytesMax = 64 * 1024;
const closeOption = /(?:^|[\t ,])close(?:[\t ,]|$)/i;

/** Whether the connection has to end with a reply, which is streamed or not. */
export function mustEnd({ head, awaitsContinue, fields, incoming, outgoing }: Exchange, streams: boolean): boolean {
  // Upgrade is ignored (RFC 9110 §7.8). But behind it Node's parser drops the rest of a packet, and would then take
  // the content of a dropped request for a request.
  if (head === undefined || awaitsContinue || fields.get('upgrade') !== undefined) return true;
  if (!outgoing.shouldKeepAlive || closeOption.test(fields.get('connection') ?? '')) return true;
  // In HTTP/1.0 only the end of the connection tells the end of a stream.
  if (streams && incoming.httpVersion === '1.0') return true;
  const { contentLength = Infinity } = head;
  return contentLength > skippedBytesMax && !incoming.complete;
}

/** Lets what arrives pass by unparsed. */
export function discardInput(socket: Socket): void {
  socket.removeAllListeners('data').on('data', () => undefined);
}

/** Ends our half of a connection, and the other half after a while. */
export function endSocket(socket: Socket, lingerMs: number): void {
  discardInput(socket);
  socket.end();
  linger(socket, lingerMs, () => socket.destroySoon());
}

/** Reads on for a while, since the caller might never read a reply on a connection that was reset (RFC 9112 §9.6). */
export function linger(arriving: Readable, lingerMs: number, end: () => void): void {
  finished(arriving.resume(), { writable: false, signal: AbortSignal.timeout(lingerMs) }, end);
}

export function isStreamed(body: Reply['body']): body is StreamedBody {
  return typeof body === 'object' && !Buffer.isBuffer(body);
}
