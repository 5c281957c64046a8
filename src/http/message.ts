import { isIP } from 'node:net';

import type { CairnError } from '../base/errors.ts';
import { plainAddress, type TrustedProxies } from '../base/network.ts';
import type { Random } from '../base/system.ts';
import type { Fields } from './fields.ts';

/**
 * A request as a plain value. The same shape comes from a socket, from an embedder's own server and from a test
 * without a port; whatever is in here is untrusted, but its framing has been checked (`head.ts`).
 */
export interface Request {
  /** Unique: a UUID, a name for the log and for `instance`, never a secret. */
  readonly id: string;
  /** The method exactly as sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string;
  /** The request target in origin-form exactly as sent, such as `/items/1?fields=id`; never normalised. */
  readonly target: string;
  readonly fields: Fields;
  /** The caller's address after `--trust-proxy`; IPv4-mapped IPv6 is shown as IPv4. */
  readonly address: string;
  /**
   * Reads the whole body, of at most `bytesMax` bytes; call it at most once. An absent body is an empty buffer.
   * @throws CairnError `content_too_large`, `request_timeout`, or `malformed_request` when the caller went away
   */
  receiveBody(bytesMax: number): Promise<Buffer>;
  /** Filled in by whoever handles the request, for the log: the pattern that matched, such as `/items/{id}`. */
  route?: string | undefined;
  /** Filled in likewise: who called. */
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

/** What is told of a reply, for a log and for metrics, when the system has all of it or never will have. */
export interface RequestEntry {
  readonly id: string;
  /** Empty for what was no request. */
  readonly method: string;
  /** The pattern of the route, such as `/items/{id}`; `undefined` where none matched. */
  readonly route: string | undefined;
  readonly status: number;
  /** From the end of the request's fields. */
  readonly durationMs: number;
  /** Length of the content that was sent. */
  readonly bytes: number;
  /** Who called; `undefined` where nobody is known. */
  readonly userId: number | undefined;
}

/** Answers a request. A reply that needs no waiting is returned as it is: the sender then waits for nothing either. */
export type Handle = (request: Request) => Reply | Promise<Reply>;

/** Makes the reply to a request that failed. */
export type Refuse = (error: CairnError, requestId: string, fields?: readonly string[]) => Reply;

/**
 * Names for requests: version 8 UUIDs (RFC 9562 §5.8) of 74 random bits that a process draws once, and a counter of
 * 48 bits. Unique like any UUID, at the price of an addition; they name, and guard nothing.
 *
 *   rrrrrrrr-rrrr-8rrr-vrrr-cccccccccccc    r random, v the variant and 2 random bits, c the counter
 */
export function createRequestIds(random: Random): () => string {
  const bytes = random(10);
  const hex = bytes.toString('hex');
  const variant = '89ab'.charAt(bytes.readUInt8(9) & 3);
  const prefix = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-${variant}${hex.slice(15, 18)}-`;
  let block = '';
  let count = 0;
  return () => {
    const low = count & 0xff;
    if (low === 0) block = prefix + (count / 256).toString(16).padStart(10, '0');
    count += 1;
    return `${block}${hexBytes[low]}`;
  };
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Who is calling: the peer itself, or whom trusted proxies name. */
export interface Caller {
  readonly address: string;
  readonly encrypted: boolean;
}

/**
 * Resolves the caller behind `peer`, a trusted proxy. `X-Forwarded-For` is read from its end: each proxy adds the
 * address that it saw, so the last one that is not a trusted proxy's own is the caller, and what stands before it is
 * hearsay.
 */
export function resolveCaller(peer: Caller, fields: Fields, proxies: TrustedProxies): Caller {
  let address = peer.address;
  for (const hop of (fields.get('x-forwarded-for') ?? '').split(',').reverse()) {
    // Some proxies write the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
    const named = plainAddress(hop.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d*)?$/, '$1$2'));
    if (isIP(named) === 0) break;
    address = named;
    if (!proxies(address)) break;
  }
  const scheme = fields.get('x-forwarded-proto')?.split(',').at(-1)?.trim().toLowerCase();
  return { address, encrypted: scheme === undefined ? peer.encrypted : scheme === 'https' };
}
