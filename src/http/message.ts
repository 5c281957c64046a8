import type { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

/**
 * A request as a plain value, with the same shape whether it comes from a socket, from a program's
 * own server or from `inject`. Its content is untrusted, but its framing has been checked
 * (`head.ts`).
 */
export interface Request {
  /**
   * The id in the log, in `X-Request-Id` and in `instance`: a unique UUID, or the id that a trusted
   * proxy sent.
   */
  readonly id: string;
  /** As sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string;
  /**
   * The target in origin-form without the base path, such as `/items/1?fields=id`. Never
   * normalised.
   */
  readonly target: string;
  /**
   * The path under which a proxy or a framework serves the app, such as `/api`, or an empty string.
   * Each path in a response begins with it.
   */
  readonly basePath: string;
  readonly fields: Fields;
  /** The caller's address, after `--trust-proxy`. IPv4-mapped IPv6 is shown as IPv4. */
  readonly address: string;
  /** True if the request came by TLS, to this server or to a trusted proxy. */
  readonly encrypted?: boolean;
  /** The key of the caller's share in each budget: the user if known, else the network. */
  readonly caller: string;
  /**
   * Aborted when the response is no longer needed: the caller has closed the connection, or a
   * shutdown has cut it off. Created on first access, so that most requests do not pay for it.
   */
  readonly signal: AbortSignal;
  /** Breaks the connection off, and aborts `signal`. Absent without a connection. */
  abandon?(): void;
  /**
   * Reads the whole body, which is empty if absent. May be called once.
   * @throws CairnError `content_too_large`, `request_timeout`, `overloaded` if there is no room for
   *   it, or `malformed_request` if the caller closed the connection
   */
  receiveBody(bytesMax: number): Promise<Buffer>;
  /**
   * Resolves in the caller's turn; `undefined` if that is now. Absent without a connection.
   * @throws CairnError `overloaded` if there is no room to wait
   */
  turn?(): Promise<void> | undefined;
  /**
   * Sets the memory that producing the response takes from the caller's share.
   * @throws CairnError `overloaded` if there is no room
   */
  hold(bytes: number): void;
  /** Receives the pattern of the route, such as `/items/{id}`, for the log. */
  matched(route: string): void;
  /**
   * Receives the authenticated user, for the log and for the caller's share, before the request
   * waits for anything.
   * @throws CairnError `overloaded` if the caller has too many requests in flight
   */
  authenticated(userId: number | undefined): void;
}

/**
 * A body that is produced while it is sent. The sender waits for a slow reader, and calls `return`
 * when the reader leaves.
 */
export type StreamedBody = AsyncIterable<string>;

/** RFC 9110 §9.2.1. */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

export interface Reply {
  readonly status: number;
  /**
   * Names and values in turn, ready to send. The sender adds `Date`, `Content-Length` and the
   * fields of the connection.
   */
  readonly fields: readonly string[];
  /** `undefined` for no content at all (204, 304). For HEAD, the sender sends only its length. */
  readonly body: string | Buffer | StreamedBody | undefined;
  /** True if the body never ends by itself. It ends when the caller closes its half. */
  readonly isEndless?: boolean;
}

export function isStreamed(body: Reply['body']): body is StreamedBody {
  return typeof body === 'object' && !Buffer.isBuffer(body);
}

export function endUnread(body: StreamedBody): void {
  void body[Symbol.asyncIterator]().return?.();
}

/**
 * Returns a body that calls `leave` when its reader stops early, even before the first piece, when
 * the `finally` of a generator would not run.
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
 * Header fields against misuse in a browser, for each response of an API: its type is not guessed,
 * it runs no script, and other sites cannot embed it. The sender adds HSTS on encrypted
 * connections.
 */
export const apiFields: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
];

/** A response for the log and the metrics, reported once it was handed to the system or cut off. */
export interface RequestEntry {
  readonly id: string;
  /** Empty if the bytes received were not a request. */
  readonly method: string;
  /** The path with its query. It may hold secrets, so the log leaves it out. */
  readonly target: string;
  /** Such as `/items/{id}`; `undefined` if none matched. */
  readonly route: string | undefined;
  readonly status: number;
  /** Measured from the end of the request's head. */
  readonly durationMs: number;
  /** The length of the content sent. */
  readonly bytes: number;
  /** The authenticated user, if any. */
  readonly userId: number | undefined;
  /** The caller's address, even behind a trusted proxy. */
  readonly address: string;
}

/** A response that is ready is returned without a promise. */
export type Handle = (request: Request) => Reply | Promise<Reply>;

/** Creates the problem (RFC 9457) for a failed request. */
export type ProblemReply = (error: CairnError, request: Pick<Request, 'id' | 'basePath'>) => Reply;
