import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

/**
 * Checks for one of these media types, given in lower case without parameters. The only charset is
 * UTF-8, and content codings are not supported. `acceptField` names the response's list of types.
 * @throws CairnError `unsupported_media_type`, with the supported types (RFC 9110 §15.5.16)
 */
export function checkContentType(
  fields: Fields,
  mediaTypes: readonly string[],
  acceptField: 'Accept' | 'Accept-Patch' = 'Accept',
): void {
  if (fields.get('content-encoding') !== undefined) {
    throw unsupported('send it without a Content-Encoding', 'Accept-Encoding', 'identity');
  }
  const value = fields.get('content-type') ?? '';
  // The usual form, without parsing.
  if (mediaTypes.includes(value)) return;
  const [type = '', ...parameters] = value
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  const isUtf8 = charsets.every((one) => /^charset=("?)utf-?8\1$/.test(one));
  if (mediaTypes.includes(type) && isUtf8) return;
  const rule = `its Content-Type must be ${mediaTypes.join(' or ')}, in UTF-8`;
  throw unsupported(rule, acceptField, mediaTypes.join(', '));
}

function unsupported(detail: string, field: string, supported: string): CairnError {
  return new CairnError('unsupported_media_type', `Cannot read the body: ${detail}`, {
    fields: [field, supported],
  });
}
