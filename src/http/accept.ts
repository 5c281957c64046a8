import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

const token = "[!#$%&'*+.^_`|~\\w-]";
const rangeGrammar = new RegExp(`^${token}+/${token}+$`);
const qualityGrammar = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The one of `offered` (media types without parameters, most preferred first) that `Accept` (RFC 9110 §12.5.1) wants
 * most, or `undefined` when it wants none of them. The most specific range that matches a type decides, even where a
 * wider one wants it more. Parameters other than `q` are ignored, and so are elements that are not media ranges.
 */
export function negotiate<T extends string>(accept: string | undefined, offered: readonly T[]): T | undefined {
  if (accept === undefined || accept === '*/*' || accept === '') return offered[0];
  const qualities = new Map<string, number>();
  for (const element of elementsOf(accept)) {
    const [range = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase());
    const written = parameters.find((parameter) => parameter.startsWith('q=')) ?? 'q=1';
    const quality = rangeGrammar.test(range) ? qualityGrammar.exec(written)?.[1] : undefined;
    if (quality !== undefined && !qualities.has(range)) qualities.set(range, Number(quality));
  }
  let best: T | undefined;
  let bestQuality = 0;
  for (const type of offered) {
    const ranges = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
    const quality = qualities.get(ranges.find((range) => qualities.has(range)) ?? '') ?? 0;
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

/** The elements of a list (RFC 9110 §5.6.1), in which a comma may be quoted. */
function elementsOf(value: string): readonly string[] {
  return value.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
}

/** No two runs of white space meet: so there is one way to match, and a long field costs no more than its length. */
const preferenceGrammar = new RegExp(
  `^(${token}+)[\\t ]*(?:=[\\t ]*(?:(?:"([^"\\\\]*)"|(${token}+))[\\t ]*)?)?(?:;|$)`,
);

/** The preferences of a `Prefer` field (RFC 7240 §2) by lower-case name; the first of one name counts. */
export function parsePrefer(value: string | undefined): ReadonlyMap<string, string> {
  const preferences = new Map<string, string>();
  for (const element of elementsOf(value ?? '')) {
    const match = preferenceGrammar.exec(element.trim());
    const name = match?.[1]?.toLowerCase();
    if (name !== undefined && !preferences.has(name)) preferences.set(name, match?.[2] ?? match?.[3] ?? '');
  }
  return preferences;
}

const contentType = new RegExp(`^(${token}+/${token}+)[\\t ]*((?:;.*)?)$`);
const charset = /;[\t ]*charset=(?:"([^"]*)"|([^\t ;]*))/gi;

/**
 * Whether content has one of these media types, in lower case and without parameters. The only charset is UTF-8, and no
 * content coding is decoded. @throws CairnError `unsupported_media_type`
 */
export function checkContentType(fields: Fields, mediaTypes: readonly string[]): void {
  if (fields.get('content-encoding') !== undefined) throw unsupported('it has a Content-Encoding');
  const value = fields.get('content-type');
  if (value !== undefined && mediaTypes.includes(value)) return;
  const [, type = '', parameters = ''] = contentType.exec(value ?? '') ?? [];
  if (!mediaTypes.includes(type.toLowerCase())) throw unsupported(`its Content-Type is not ${mediaTypes.join(' or ')}`);
  for (const [, quoted, plain = ''] of parameters.matchAll(charset)) {
    if ((quoted ?? plain).toLowerCase() !== 'utf-8') throw unsupported('its charset is not UTF-8');
  }
}

function unsupported(what: string): CairnError {
  return new CairnError('unsupported_media_type', `Cannot read the body: ${what}`);
}
