import type { Scalar } from '../base/json.ts';

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
 * Matches texts that Normalization Form C does not change: most Latin, Greek, Cyrillic,
 * Japanese, Chinese and Korean ones. Normalising every text would take most of the time
 * of a search.
 */
const isNormalized =
  /^[\0-\u02ff\u0388-\u0482\u048a-\u052f\u2010-\u2027\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*$/;
