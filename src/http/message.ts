import type { CairnError } from '../base/errors.ts';
import type { Random } from '../base/system.ts';
import type { Fields } from './fields.ts';

/**
 * A request as a plain value. The same shape comes from a socket, from an embedder's own server and from a test
 * without a port. All of it is untrusted, but its framing has been checked (`head.ts`).
 */
export interface Request {
  /** A name for the log, `X-Request-Id` and `instance`: a UUID that is unique, or what a trusted proxy has chosen. */
  readonly id: string;
  /** The method exactly as sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string;
  /**
   * The request target in origin-form exactly as sent, such as `/items/1?fields=id`; never normalised. `mountHandle`
   * takes a base path off.
   */
  target: string;
  readonly fields: Fields;
  /** The caller's address after `--trust-proxy`; IPv4-mapped IPv6 is shown as IPv4. */
  readonly address: string;
  /** The key of the caller's share of every pool (`callerKey`): its user once `userId` is set, else its network. */
  readonly caller: string;
  /**
   * Aborted when nobody waits for the reply any more: the caller has gone, or a stop has cut it off. Made when it is
   * first asked for, so a handler that needs no signal costs nothing.
   */
  readonly signal: AbortSignal;
  /**
   * Reads the whole body, of at most `bytesMax` bytes; call it at most once. An absent body is an empty buffer.
   * @throws CairnError `content_too_large`, `request_timeout`, or `malformed_request` when the caller went away
   */
  receiveBody(bytesMax: number): Promise<Buffer>;
  /** Set by the handler, for the log: the pattern of the route, such as `/items/{id}`. */
  route?: string | undefined;
  /** Set by the handler: the id of the user who calls. */
  userId?: number | undefined;
}

/** A body that is made while it is sent; the sender waits for a slow reader and calls `return` when one leaves. */
export type StreamedBody = AsyncIterable<string>;

/** An answer as a plain value. */
export interface Reply {
  readonly status: number;
  /** Names and values in turn, ready for the wire; without `Date`, `Content-Length` and connection fields. */
  readonly fields: readonly string[];
  /** `undefined`: no content at all (204, 304). For HEAD the sender drops the content and keeps its length. */
  readonly body: string | Buffer | StreamedBody | undefined;
  /** Whether the body has no end of its own: it ends as soon as the caller closes its half of the connection. */
  readonly isEndless?: boolean;
}

/**
 * What every reply of an API carries against misuse in a browser: its type is not guessed, it runs nothing, and no
 * other site embeds it. Pages bring their own. HSTS is added where a reply is sent, since only there it is known
 * whether the connection is encrypted.
 */
export const apiFields: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
];

/** A reply as the log and the metrics see it, when the system has all of it or never will have. */
export interface RequestEntry {
  readonly id: string;
  /** Empty for what was no request. */
  readonly method: string;
  /** As it was sent, like `Request.target`: it may hold what belongs into no log. */
  readonly target: string;
  /** The pattern of the route, such as `/items/{id}`; `undefined` where none matched. */
  readonly route: string | undefined;
  readonly status: number;
  /** From the end of the request's fields. */
  readonly durationMs: number;
  /** Length of the content that was sent. */
  readonly bytes: number;
  /** The user who called; `undefined` for an anonymous caller. */
  readonly userId: number | undefined;
}

/** Answers a request. A reply that needs no waiting is returned as it is: the sender then waits for nothing either. */
export type Handle = (request: Request) => Reply | Promise<Reply>;

/** Makes the reply to a request that failed. */
export type Refuse = (error: CairnError, requestId: string, fields?: readonly string[]) => Reply;

/**
 * Makes names for requests: version 8 UUIDs (RFC 9562 §5.8) of 72 random bits that a process draws once and a counter.
 * They are unique like any UUID, at the price of an addition, and guard nothing.
 *
 *   rrrrrrrr-rrrr-8rrr-8rrr-cccccccccccc    r random, c the counter, in hexadecimal
 */
export function createRequestIds(random: Random): () => string {
  const hex = random(9).toString('hex');
  const prefix = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
  let count = -1;
  return () => prefix + (count += 1).toString(16).padStart(12, '0');
}
