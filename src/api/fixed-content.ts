import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Reply, Request } from '../http/message.ts';
import { isUnchanged } from './versions.ts';

interface EncodedContent {
  readonly body: Buffer;
  readonly tag: string;
  readonly fields: readonly string[];
}

/** Matches `Accept-Encoding` with gzip, unless its quality is 0 (RFC 9110 §12.5.3). */
const gzipAccepted = /(?:^|[, \t])gzip *(?:,|$|; *q=(?!0(?:\.0{0,3})?(?:[, \t]|$)))/i;

/**
 * Content that is the same for every caller, such as a file of the page. It is compressed once,
 * when a caller first accepts gzip.
 */
export class FixedContent {
  readonly #plain: EncodedContent;
  #zipped: EncodedContent | undefined;

  constructor(content: Buffer) {
    this.#plain = { body: content, tag: createTag(content), fields: [] };
  }

  /** Responds in an encoding that the caller accepts, or with 304. `more` are headers of both. */
  answer(request: Request, type: string, more: readonly string[]): Reply {
    const { body, tag, fields } = this.#formFor(request);
    const shared = ['Vary', 'Accept-Encoding', ...more, ...fields, 'ETag', tag];
    if (isUnchanged(request, tag)) return { status: 304, fields: shared, body: undefined };
    return { status: 200, fields: ['Content-Type', type, ...shared], body };
  }

  #formFor({ fields }: Request): EncodedContent {
    if (!gzipAccepted.test(fields.get('accept-encoding') ?? '')) return this.#plain;
    return (this.#zipped ??= zipped(this.#plain.body));
  }
}

function zipped(content: Buffer): EncodedContent {
  const body = gzipSync(content, { level: 9 });
  return { body, tag: createTag(body), fields: ['Content-Encoding', 'gzip'] };
}

function createTag(content: Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}
