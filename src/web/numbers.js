// @ts-check
/** Formats numbers and times in the reader's language. */

const locale = globalThis.navigator?.language ?? 'en';
const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 });
const times = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });

/** Formats a number for reading. @param {number} value */
export const showNumber = (value) => numbers.format(value);

/** Formats a point in time for reading. @param {string} iso */
export const showTime = (iso) => times.format(new Date(iso));
