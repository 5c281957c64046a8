// @ts-check
/** Formats numbers and times in the reader's language. */

const locale = globalThis.navigator?.language ?? 'en';
const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 });
const times = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });

/** Formats a number for reading. @param {number} value */
export const showNumber = (value) => numbers.format(value);

/** Formats a point in time for reading. @param {string} iso */
export const showTime = (iso) => times.format(new Date(iso));

const ages = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
/** @type {readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][]} */
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];
const agesDaysMax = 30;

/** Formats a point in time by its distance from now; one that is far by its date. @param {string} iso */
export function showAge(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  if (Math.abs(seconds) > agesDaysMax * 86_400) return showTime(iso);
  return ages.format(Math.round(seconds / size), unit);
}
