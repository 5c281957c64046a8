/**
 * Returns the expression that finds `wanted`, whatever its case and accents, in texts without
 * accents. The flags `i` and `u` compare by Unicode simple case folding (ECMA-262, Canonicalize).
 */
export function searchPattern(wanted: string): RegExp {
  return new RegExp(withoutAccents(wanted).replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
}

/**
 * Returns a text without the marks that it has when it is decomposed (NFD). The text is composed
 * again, because the letters of a Korean syllable are not marks. The time is linear: `normalize` would
 * sort a long run of marks in quadratic time, so they go first.
 */
export function withoutAccents(text: string): string {
  if (hasNoAccents.test(text)) return text;
  return text.replaceAll(marks, '').normalize('NFD').replaceAll(marks, '').normalize('NFC');
}

const marks = /\p{M}+/gu;

/** Matches most English, Chinese and Korean texts. Decomposing all would take most of the time. */
const hasNoAccents = /^[\0-\xbf\u2010-\u2027\u4e00-\u9fff\uac00-\ud7a3]*$/;
