// @ts-check
/** Numbers and times as the reader writes them. */

/** The reader's language, which decides how numbers and times are written. */
const locale = globalThis.navigator?.language ?? 'en';
const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 });
const times = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });

/** A number to be read. @param {number} value */
export const showNumber = (value) => numbers.format(value);

/** A moment to be read. @param {string} iso */
export const showTime = (iso) => times.format(new Date(iso));
