/** One element of `Accept` (RFC 9110 §12.5.1): a media range, and how much it is wanted, 0 to 1. */
interface MediaRange {
  readonly range: string;
  readonly quality: number;
}

const token = "[!#$%&'*+.^_`|~\\w-]";
const rangeGrammar = new RegExp(`^${token}+/${token}+$`);
const qualityGrammar = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The one of `offered` (media types without parameters, most preferred first) that `Accept` wants most, or `undefined`
 * when it wants none of them. Parameters other than `q` are ignored, and so are elements that are not media ranges.
 */
export function negotiate<T extends string>(accept: string | undefined, offered: readonly T[]): T | undefined {
  if (accept === undefined || accept === '*/*' || accept === '') return offered[0];
  const ranges = elementsOf(accept).flatMap(parseRange);
  let best: T | undefined;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

/** The elements of a list (RFC 9110 §5.6.1), in which a comma may be quoted. */
function elementsOf(value: string): readonly string[] {
  return value.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
}

function parseRange(element: string): MediaRange[] {
  const [range = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase());
  if (!rangeGrammar.test(range)) return [];
  const quality = parameters.find((parameter) => parameter.startsWith('q='));
  if (quality === undefined) return [{ range, quality: 1 }];
  const value = qualityGrammar.exec(quality)?.[1];
  return value === undefined ? [] : [{ range, quality: Number(value) }];
}

/** The most specific range that matches decides, even where a wider one wants the type more. */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  for (const range of [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*']) {
    const match = ranges.find((candidate) => candidate.range === range);
    if (match !== undefined) return match.quality;
  }
  return 0;
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
