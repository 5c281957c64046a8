import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

const token = "[!#$%&'*+.^_`|~\\w-]+";
const space = '[\\t ]*';
const quality = '0(?:\\.\\d{0,3})?|1(?:\\.0{0,3})?';
/** The elements of a list (RFC 9110 §5.6.1), in which a comma may be quoted. */
const elements = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
/** A media range with its quality (RFC 9110 §12.5.1); other parameters are passed over. */
const acceptElement = new RegExp(
  `^${space}(${token}/${token})${space}(?:;(?!${space}q=)[^;]*)*(?:;${space}q=(${quality})${space}(?:;.*)?)?$`,
);

/**
 * The one of `offered` (media types without parameters, most preferred first) that `Accept` wants most; `undefined` if
 * it wants none of them. The most specific range that matches a type decides, even if a wider one wants it more.
 * Elements that are not media ranges are ignored.
 */
export function negotiate<T extends string>(accept: string | undefined, offered: readonly T[]): T | undefined {
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

/** Runs of white space never meet, so a long field costs no more than its length. */
const preference = new RegExp(
  `^${space}(${token})${space}(?:=${space}(?:(?:"([^"\\\\]*)"|(${token}))${space})?)?(?:;|$)`,
);

/** The preferences of a `Prefer` field (RFC 7240 §2) by lower-case name; the first of one name counts. */
export function parsePrefer(value = ''): ReadonlyMap<string, string> {
  const preferences = new Map<string, string>();
  for (const [element] of value.matchAll(elements)) {
    const [, name = '', quoted, plain = ''] = preference.exec(element) ?? [];
    if (name !== '' && !preferences.has(name.toLowerCase())) preferences.set(name.toLowerCase(), quoted ?? plain);
  }
  return preferences;
}

/**
 * Checks that content has one of these media types, given in lower case without parameters. The only charset is UTF-8,
 * and no content coding is decoded. @throws CairnError `unsupported_media_type`
 */
export function checkContentType(fields: Fields, mediaTypes: readonly string[]): void {
  if (fields.get('content-encoding') !== undefined) throw unsupported('it has a Content-Encoding');
  const value = fields.get('content-type') ?? '';
  const [type = '', ...parameters] = value.toLowerCase().split(';').map((part) => part.trim());
  if (!mediaTypes.includes(type)) throw unsupported(`its Content-Type is not ${mediaTypes.join(' or ')}`);
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  if (!charsets.every((one) => /^charset=("?)utf-8\1$/.test(one))) throw unsupported('its charset is not UTF-8');
}

function unsupported(what: string): CairnError {
  return new CairnError('unsupported_media_type', `Cannot read the body: ${what}`);
}
