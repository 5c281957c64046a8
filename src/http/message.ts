import type { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

/**
 * A request as a plain value. It has the same shape whether it comes from a socket, from
 * an embedder's own server or from `inject`. Its content is untrusted, but its framing
 * has been checked (`head.ts`).
 */
export interface Request {
  /**
   * The id in the log, in `X-Request-Id` and in `instance`: a unique UUID, or the id that
   * a trusted proxy sent.
   */
  readonly id: string;
  /** The method exactly as sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string;
  /**
   * The request target in origin-form, such as `/items/1?fields=id`, without the base
   * path. Otherwise it is as sent and never normalised.
   */
  readonly target: string;
  /**
   * The path under which a proxy or a framework shows the server, such as `/api`; empty
   * if there is none. Each path in a reply begins with it.
   */
  readonly basePath: string;
  readonly fields: Fields;
  /** The caller's address, after `--trust-proxy`. IPv4-mapped IPv6 is shown as IPv4. */
  readonly address: string;
  /** True if the request came by TLS, to this server or to a trusted proxy. */
  readonly encrypted?: boolean;
  /** The key of the caller's share of each pool: the user if one is known, else the network. */
  readonly caller: string;
  /**
   * Aborted when the reply is no longer needed: the caller has closed the connection, or
   * a shutdown has cut it off. Created on first access, so that most requests pay nothing
   * for it.
   */
  readonly signal: AbortSignal;
  /** Breaks the connection off, and aborts `signal`. Absent without a connection. */
  abandon?(): void;
  /**
   * Reads the whole body. May be called once. An absent body is an empty buffer.
   * @throws CairnError `content_too_large`, `request_timeout`, `overloaded` if there is no room for
   *   it, or `malformed_request` if the caller closed the connection
   */
  receiveBody(bytesMax: number): Promise<Buffer>;
  /**
   * Resolves in the caller's turn; `undefined` if it is now. Absent without a connection.
   * @throws CairnError `overloaded` if there is no room to wait
   */
  turn?(): Promise<void> | undefined;
  /**
   * Counts the memory of a reply in the caller's share while it is made: so many bytes in all.
   * @throws CairnError `overloaded` if there is no room
   */
  hold(bytes: number): void;
  /** Receives the pattern of the route, such as `/items/{id}`, for the log. */
  matched(route: string): void;
  /**
   * Receives the user who calls, for the log and for the caller's share, before the request
   * waits for anything.
   * @throws CairnError `overloaded` if the caller has as many requests in flight as its
   *   share allows
   */
  authenticated(userId: number | undefined): void;
}

/**
 * A body that is produced while it is sent. The sender waits for a slow reader, and calls
 * `return` when the reader leaves.
 */
export type StreamedBody = AsyncIterable<string>;

/** True if a method only reads (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/** A reply as a plain value. */
export interface Reply {
  readonly status: number;
  /**
   * Names and values in turn, ready to be sent. `Date`, `Content-Length` and the fields
   * of the connection are added by the sender.
   */
  readonly fields: readonly string[];
  /**
   * `undefined`: no content at all (204, 304). For HEAD, the sender omits the content and
   * keeps its length.
   */
  readonly body: string | Buffer | StreamedBody | undefined;
  /** True if the body never ends by itself. It ends when the caller closes its half. */
  readonly isEndless?: boolean;
}

export function isStreamed(body: Reply['body']): body is StreamedBody {
  return typeof body === 'object' && !Buffer.isBuffer(body);
}

/**
 * Ends a body that is not read, such as the body of a reply to HEAD: it gives back what it holds.
 */
export function endUnread(body: StreamedBody): void {
  void body[Symbol.asyncIterator]().return?.();
}

/**
 * Returns a body that calls `leave` when its reader stops early, also before the first piece: a
 * generator that has not begun runs no `finally`.
 */
export function leavable(pieces: AsyncGenerator<string>, leave: () => void): StreamedBody {
  const iterator: AsyncIterator<string> = {
    next: () => pieces.next(),
    return: (value) => {
      leave();
      return pieces.return(value);
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Fields against misuse in a browser, for each reply of an API: its type is not guessed,
 * it runs no script, and no other site embeds it. HSTS is added by the sender, which
 * knows whether the connection is encrypted.
 */
export const apiFields: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
];

/**
 * A reply for the log and the metrics, reported when it was handed to the system or cut
 * off.
 */
export interface RequestEntry {
  readonly id: string;
  /** Empty if the bytes received were not a request. */
  readonly method: string;
  /** The path with its query. It may hold secrets, so the log leaves it out. */
  readonly target: string;
  /** The pattern of the route, such as `/items/{id}`; `undefined` if none matched. */
  readonly route: string | undefined;
  readonly status: number;
  /** From the end of the request's fields. */
  readonly durationMs: number;
  /** Length of the content that was sent. */
  readonly bytes: number;
  /** The user who called; `undefined` for an anonymous caller. */
  readonly userId: number | undefined;
  /** The caller's address; that behind a trusted proxy. */
  readonly address: string;
}

/** Answers a request. A reply that is ready is returned as it is, not as a promise. */
export type Handle = (request: Request) => Reply | Promise<Reply>;

/** Creates the reply to a request that failed: a problem (RFC 9457). */
export type ProblemReply = (error: CairnError, request: Pick<Request, 'id' | 'basePath'>) => Reply;
