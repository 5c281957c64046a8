/**
 * Returns a pattern that finds `wanted`, ignoring case and accents, in text without accents. The
 * flags `i` and `u` compare by Unicode simple case folding (ECMA-262, Canonicalize).
 */
export function searchPattern(wanted: string): RegExp {
  return new RegExp(withoutAccents(wanted).replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
}

/**
 * Removes the combining marks of the decomposed text (NFD). The result is composed again, because
 * the letters of a Korean syllable are not marks. Marks are removed first, to keep the time linear:
 * `normalize` would sort a long run of them in quadratic time.
 */
export function withoutAccents(text: string): string {
  if (hasNoAccents.test(text)) return text;
  return text.replaceAll(marks, '').normalize('NFD').replaceAll(marks, '').normalize('NFC');
}

const marks = /\p{M}+/gu;

/**
 * Matches most English, Chinese and Korean texts. Decomposing them all would take most of the time.
 */
const hasNoAccents = /^[\0-\xbf\u2010-\u2027\u4e00-\u9fff\uac00-\ud7a3]*$/;
