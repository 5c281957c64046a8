import { isUtf8 } from 'node:buffer';

import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';
import type { Request } from './message.ts';

/** What a route takes as a body. */
export interface ContentRules {
  /** Lower-case media types without parameters. */
  readonly mediaTypes: readonly string[];
  readonly bytesMax: number;
}

/**
 * Receives a body as text, its declared type checked before a byte of it is read.
 * @throws CairnError `unsupported_media_type`, `malformed_json` for bytes that are not UTF-8 or begin with a BOM
 *   (RFC 8259 §8.1), and what `receiveBody` throws
 */
export async function receiveText(request: Request, rules: ContentRules): Promise<string> {
  checkContentType(request.fields, rules.mediaTypes);
  return decode(await request.receiveBody(rules.bytesMax));
}

/** Like `receiveText`, for a body that may be left out: absent or empty, it needs no type and is `undefined`. */
export async function receiveOptionalText(request: Request, rules: ContentRules): Promise<string | undefined> {
  const bytes = await request.receiveBody(rules.bytesMax);
  if (bytes.length === 0) return undefined;
  checkContentType(request.fields, rules.mediaTypes);
  return decode(bytes);
}

const contentType = /^([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)[\t ]*((?:;.*)?)$/;
const charset = /;[\t ]*charset=(?:"([^"]*)"|([^\t ;]*))/gi;

/** @throws CairnError `unsupported_media_type`; the only charset is UTF-8, and no content coding is decoded */
export function checkContentType(fields: Fields, mediaTypes: readonly string[]): void {
  if (fields.get('content-encoding') !== undefined) {
    throw new CairnError('unsupported_media_type', 'Cannot read the body: it has a Content-Encoding');
  }
  const value = fields.get('content-type');
  if (value !== undefined && mediaTypes.includes(value)) return;
  const [, type = '', parameters = ''] = contentType.exec(value ?? '') ?? [];
  if (!mediaTypes.includes(type.toLowerCase())) {
    const expected = mediaTypes.join(' or ');
    throw new CairnError('unsupported_media_type', `Cannot read the body: its Content-Type is not ${expected}`);
  }
  for (const [, quoted, token] of parameters.matchAll(charset)) {
    if ((quoted ?? token ?? '').toLowerCase() !== 'utf-8') {
      throw new CairnError('unsupported_media_type', 'Cannot read the body: its charset is not UTF-8');
    }
  }
}

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new CairnError('malformed_json', 'Cannot read the body: it is not UTF-8');
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new CairnError('malformed_json', 'Cannot read the body: it begins with a byte order mark');
  }
  return bytes.toString('utf8');
}
