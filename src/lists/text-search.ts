import type { Scalar } from '../base/json.ts';

/**
 * Returns a test of whether a text contains `wanted`, ignoring case, with both in
 * Normalization Form C. A regular expression with the flags `i` and `u` compares by
 * Unicode simple case folding (ECMA-262, Canonicalize).
 */
export function textSearch(wanted: string): (value: Scalar) => boolean {
  const literal = wanted.normalize('NFC').replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const pattern = new RegExp(literal, 'iu');
  return (value) => {
    const text = String(value);
    return pattern.test(isNormalized.test(text) ? text : text.normalize('NFC'));
  };
}

/**
 * Matches texts that Normalization Form C does not change: most Latin, Greek, Cyrillic,
 * Japanese, Chinese and Korean ones. Normalising every text would take most of the time
 * of a search.
 */
const isNormalized =
  /^[\0-\u02ff\u0388-\u0482\u048a-\u052f\u2010-\u2027\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*$/;
