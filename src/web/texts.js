// @ts-check
/**
 * Values as texts that a person types, and back. `12,50` is 12.5 to one reader and a mistake to another; it is never
 * 1250. Nothing here touches the DOM.
 */
import { showNumber } from './numbers.js';

/** @import { Field, Scalar } from './types.js' */

/** A stored value as the text of its control. @type {(field: Field, value: unknown) => string} */
export function toText({ kind }, value) {
  if (typeof value === 'number') return writeNumber(value);
  return kind === 'time' && value ? writeTime(`${value}`) : `${value ?? ''}`;
}

/**
 * The value that a text means, or why it means none; `null` is no value. The rules of values are the server's to keep.
 * @type {(field: Field, text: string, isRequired?: boolean, decimal?: string) =>
 *   { value?: Scalar | null, problem?: string | undefined }}
 */
export function fromText(field, text, isRequired = field.isRequired, decimal) {
  const { kind, schema, isOptional } = field;
  const mayBeEmpty = kind === 'text' && !schema.minLength && !isOptional;
  if (!text && !mayBeEmpty) return isRequired ? { problem: 'must be filled in' } : { value: null };
  if (kind === 'number' || kind === 'integer') return readNumber(text, decimal);
  const time = new Date(text);
  if (kind === 'time') return +time ? { value: time.toISOString() } : { problem: 'must be a date and a time' };
  return { value: kind === 'boolean' ? text === 'true' : text };
}

/** What this reader writes before the decimals. */
const readerDecimal = showNumber(0.5).charAt(1);
/** A double keeps as many digits of any number. */
const digitsMax = 15;

/**
 * The number that was meant, or what is wrong with the text. A separator of thousands is refused: what groups the
 * digits of one language separates the decimals of another.
 * @param {string} text
 */
function readNumber(text, decimal = readerDecimal) {
  const marks = new Map([['.', '?'], [decimal, '.']]);
  const number = text.trim().replaceAll(/\D/gu, (mark) => marks.get(mark) ?? mark);
  const value = /^[-+]?[\d.]+(e[-+]?\d+)?$/iu.test(number) ? Number(number) : NaN;
  if (!Number.isFinite(value)) return { problem: `must be a number such as 1250${decimal}5` };
  return number.replaceAll(/e.*|\D/gu, '').length > digitsMax ? { problem: 'must have fewer digits' } : { value };
}

/** A number as it stands in a control: every digit of it, and no groups. @param {number} value */
const writeNumber = (value) => `${value}`.replace('.', readerDecimal);

/** A moment as the control for local times has it. @param {string} iso */
const writeTime = (iso) => {
  const time = new Date(iso);
  return new Date(+time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
};
