import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';
import type { Request } from './message.ts';

/**
 * Receives a body, its declared type checked before a byte of it is read: one of `mediaTypes`, which are in lower case
 * and without parameters. One that may be left out needs none where it is absent or empty, and is `undefined` then.
 * @throws CairnError `unsupported_media_type`, and what `receiveBody` throws
 */
export async function receiveContent(
  request: Request,
  mediaTypes: readonly string[],
  bytesMax: number,
  optional: boolean,
): Promise<Buffer | undefined> {
  if (!optional) checkContentType(request.fields, mediaTypes);
  const bytes = await request.receiveBody(bytesMax);
  if (optional && bytes.length === 0) return undefined;
  if (optional) checkContentType(request.fields, mediaTypes);
  return bytes;
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
