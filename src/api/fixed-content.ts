import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Request } from '../http/message.ts';

/** One form of a content: its bytes, its entity tag, and the fields that describe it. */
export interface EncodedContent {
  readonly body: Buffer;
  readonly tag: string;
  readonly fields: readonly string[];
}

/** Matches `Accept-Encoding` with gzip, unless its quality is 0 (RFC 9110 §12.5.3). */
const gzipAccepted = /(?:^|[, \t])gzip *(?:,|$|; *q=(?!0(?:\.0{0,3})?(?:[, \t]|$)))/i;

/**
 * Content that is the same for every caller, such as a file of the page: plain, and
 * compressed for callers that accept gzip. It is compressed once, when it is first asked for.
 */
export class FixedContent {
  readonly #plain: EncodedContent;
  #zipped: EncodedContent | undefined;

  constructor(content: Buffer) {
    this.#plain = { body: content, tag: tagOf(content), fields: [] };
  }

  /** Returns the form for a caller. The reply varies by `Accept-Encoding`. */
  for({ fields }: Request): EncodedContent {
    if (!gzipAccepted.test(fields.get('accept-encoding') ?? '')) return this.#plain;
    return (this.#zipped ??= zipped(this.#plain.body));
  }
}

function zipped(content: Buffer): EncodedContent {
  const body = gzipSync(content, { level: 9 });
  return { body, tag: tagOf(body), fields: ['Content-Encoding', 'gzip'] };
}

function tagOf(content: Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}
