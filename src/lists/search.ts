import type { Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/**
 * Returns a test of whether a text contains `wanted`, ignoring case, with both in
 * Normalization Form C. A regular expression with the flags `i` and `u` compares by
 * Unicode simple case folding (ECMA-262, Canonicalize).
 */
export function textSearch(wanted: string): (value: Scalar) => boolean {
  const literal = normalised(wanted).replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const pattern = new RegExp(literal, 'iu');
  return (value) => pattern.test(normalised(String(value)));
}

/**
 * Returns a text in Normalization Form C, in time that is linear in its length. The time of
 * `normalize` is quadratic in the length of a run of combining marks, so longer runs than any
 * language has are divided as in the Stream-Safe Text Format (UAX #15 §13).
 */
export function normalised(text: string): string {
  if (isNormalized.test(text)) return text;
  return text
    .replaceAll(/\p{M}{8,}/gu, (run) => (run.length > marksMax ? divided(run) : run))
    .normalize('NFC');
}

const marksMax = 30;
/** Puts a combining grapheme joiner, which ends a run, after each 30 marks. */
const divided = (run: string): string => run.replaceAll(/\p{M}{1,30}/gu, '$&\u034f');

/**
 * Yields the parts of a text, each short enough to be searched in one go. Each goes on as far into
 * the next one as what is searched for can reach.
 */
export function* partsOf(text: string): Generator<string, void> {
  for (let at = 0; at < text.length || at === 0;) {
    const end = dividedFrom(text, at + partLength);
    yield at === 0 && end === text.length
      ? text
      : text.slice(at, dividedFrom(text, end + reachMax));
    at = Math.max(end, 1);
  }
}

/** The length of a part. */
export const partLength = 16 * 1024;
/** In a text that is not normalised, a character of what is searched for can take four. */
const reachMax = Math.max(limits.containedTextMax, 4 * limits.searchLengthMax);

/**
 * Returns the first place from one on where a text can be divided, so that its parts have the same
 * normal form as the whole: before a character that combines with none before it, such as a space.
 * Without one within the reach, it is divided there.
 */
function dividedFrom(text: string, from: number): number {
  let at = from;
  while (at < from + reachMax && at < text.length && !isNormalized.test(text.charAt(at))) at += 1;
  return Math.min(at, text.length);
}

/**
 * Matches texts that Normalization Form C does not change: most Latin, Greek, Cyrillic,
 * Japanese, Chinese and Korean ones. Normalising every text would take most of the time
 * of a search.
 */
const isNormalized =
  /^[\0-\u02ff\u0388-\u0482\u048a-\u052f\u2010-\u2027\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*$/;
