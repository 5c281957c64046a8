import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';

import type { Exchange } from './exchange.ts';
import { isStreamed, type Reply } from './message.ts';

/** Unread content that may be skipped after a response; with more, the connection ends. */
const skippedBytesMax = 64 * 1024;
/** Node's parser misses the option if a tab follows it. */
const closeOption = /(?:^|[\t ,])close(?:[\t ,]|$)/i;

export function mustEnd(exchange: Exchange, { body }: Reply): boolean {
  const { head, fields, incoming, outgoing } = exchange;
  // Upgrade is ignored (RFC 9110 §7.8). But Node's parser drops the rest of a packet after it, and
  // could then parse the content of a dropped request as a request.
  if (head === undefined || fields.get('upgrade') !== undefined) return true;
  if (!outgoing.shouldKeepAlive || closeOption.test(fields.get('connection') ?? '')) return true;
  // In HTTP/1.0, the end of the connection marks the end of a stream.
  if (isStreamed(body) && incoming.httpVersion === '1.0') return true;
  const { contentLength = Infinity } = head;
  return contentLength > skippedBytesMax && !incoming.complete;
}

/** `onData` still sees the discarded input. */
export function discardInput(socket: Socket, onData: (chunk: Buffer) => void): void {
  socket.removeAllListeners('data').on('data', onData);
}

/** Half-closes a connection at once, and closes it after a while. */
export function endSocket(socket: Socket, lingerMs: number, onData: (chunk: Buffer) => void): void {
  discardInput(socket, onData);
  socket.end();
  linger(socket, lingerMs, () => socket.destroySoon());
}

/**
 * Calls `end` when the caller has stopped sending, or after `lingerMs`. Closing earlier would reset
 * the connection, and the caller might never read the response (RFC 9112 §9.6).
 */
export function linger(arriving: Readable, lingerMs: number, end: () => void): void {
  finished(arriving.resume(), { writable: false, signal: AbortSignal.timeout(lingerMs) }, end);
}
