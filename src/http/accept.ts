import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

const token = "[!#$%&'*+.^_`|~\\w-]+";
const space = '[\\t ]*';
const quality = '0(?:\\.\\d{0,3})?|1(?:\\.0{0,3})?';
/** The elements of a list (RFC 9110 §5.6.1), in which a comma may be quoted. */
const elements = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
/** A media range with its quality (RFC 9110 §12.5.1). Other parameters are ignored. */
const acceptElement = new RegExp(
  `^${space}(${token}/${token})${space}(?:;(?!${space}q=)[^;]*)*(?:;${space}q=(${quality})${space}(?:;.*)?)?$`,
);

/**
 * Returns the media type of `offered` that `Accept` prefers; `undefined` if it accepts
 * none. `offered` has no parameters, and the server's preference first. For each type,
 * the most specific range that matches it counts. Elements that are not media ranges are
 * ignored.
 */
export function negotiate<T extends string>(
  accept: string | undefined,
  offered: readonly T[],
): T | undefined {
  if (accept === undefined || accept === '*/*' || accept === '') return offered[0];
  const qualities = new Map<string, number>();
  for (const [element] of accept.toLowerCase().matchAll(elements)) {
    const [, range, weight = '1'] = acceptElement.exec(element) ?? [];
    if (range !== undefined) qualities.set(range, Number(weight));
  }
  const qualityOf = (type: string): number =>
    qualities.get(type) ?? qualities.get(type.replace(/\/.*/, '/*')) ?? qualities.get('*/*') ?? 0;
  const best = Math.max(...offered.map(qualityOf));
  return best === 0 ? undefined : offered.find((type) => qualityOf(type) === best);
}

/** Two runs of white space are never adjacent, so that matching takes linear time. */
const preference = new RegExp(
  `^${space}(${token})${space}(?:=${space}(?:(?:"([^"\\\\]*)"|(${token}))${space})?)?(?:;|$)`,
);

/**
 * Returns the value of one preference in a `Prefer` field (RFC 7240 §2), empty if it has
 * none; `undefined` if it was not sent. If it is repeated, the first one counts.
 */
export function preferenceIn(prefer: string, name: string): string | undefined {
  for (const [element] of prefer.matchAll(elements)) {
    const [, sent, quoted, plain = ''] = preference.exec(element) ?? [];
    if (sent?.toLowerCase() === name) return quoted ?? plain;
  }
  return undefined;
}

/**
 * Checks that the content has one of these media types, which are in lower case and
 * without parameters. The only charset is UTF-8, and no content coding is supported.
 * `acceptField` is the field of the reply that lists the types.
 * @throws CairnError `unsupported_media_type`, with what is supported (RFC 9110 §15.5.16)
 */
export function checkContentType(
  fields: Fields,
  mediaTypes: readonly string[],
  acceptField: 'Accept' | 'Accept-Patch' = 'Accept',
): void {
  const refuse = (detail: string, field: string, supported: string): CairnError =>
    new CairnError('unsupported_media_type', `Cannot read the body: ${detail}`, {
      fields: [field, supported],
    });
  if (fields.get('content-encoding') !== undefined) {
    throw refuse('send it without a Content-Encoding', 'Accept-Encoding', 'identity');
  }
  const value = fields.get('content-type') ?? '';
  const [type = '', ...parameters] = value
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  const isUtf8 = charsets.every((one) => /^charset=("?)utf-8\1$/.test(one));
  if (mediaTypes.includes(type) && isUtf8) return;
  const rule = `its Content-Type must be ${mediaTypes.join(' or ')}, in UTF-8`;
  throw refuse(rule, acceptField, mediaTypes.join(', '));
}
