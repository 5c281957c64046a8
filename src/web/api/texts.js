// @ts-check
/**
 * Converts values to the texts that people type, and back. `12,50` is 12.5 to one reader and a
 * mistake to another; it is never 1250. Does not touch the DOM.
 */
import { toElement, showNumber } from './model.js';

/** @import { Field, Scalar } from '../types.js' */

/**
 * Reads JSON, or explains why that is impossible. `isLoose`: a text needs no quotes.
 * @type {(text: string, isLoose: boolean) => { value?: any, problem?: string }}
 */
export function fromJson(text, isLoose) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return isLoose && !/^\s*["[{]|^$/u.test(text)
      ? { value: text }
      : { problem: 'must be JSON, such as {"city": "Rome"}' };
  }
}

/** True if a text cannot be mistaken for JSON, so it needs no quotes. @param {string} text */
export const isPlainText = (text) => fromJson(text, true).value === text;

/**
 * @type {(field: Field, value: unknown) => string}
 */
export function toText(field, value) {
  const { kind } = field;
  if (kind === 'json') {
    const isPlain = field.declared.like && typeof value === 'string' && isPlainText(value);
    return value === undefined ? '' : isPlain ? value : JSON.stringify(value, null, 1);
  }
  if (Array.isArray(value)) return value.map((each) => toText(toElement(field), each)).join('\n');
  if (typeof value === 'number') return `${value}`.replace('.', readerDecimal);
  return kind === 'time' && value ? writeTime(`${value}`) : `${value ?? ''}`;
}

/**
 * Converts a text to its value, or explains why that is impossible; `null` means no value. The
 * server checks the field's rules.
 * @type {(field: Field, text: string, isRequired?: boolean, decimal?: string) =>
 *   { value?: Scalar | null, problem?: string | undefined }}
 */
export function fromText(field, text, isRequired = field.isRequired, decimal) {
  const { kind, schema, declared, isOptional } = field;
  const mayBeEmpty = (kind === 'text' || kind === 'long') && !schema.minLength && !isOptional;
  if (!text && !mayBeEmpty) return isRequired ? { problem: 'must be filled in' } : { value: null };
  if (kind === 'json') return fromJson(text, !!declared.like);
  if (kind === 'list') {
    const read = text
      .split('\n')
      .filter((line) => line.trim())
      .map((line) => fromText(toElement(field), line, true, decimal));
    const problem = read.find((each) => each.problem)?.problem;
    return problem ? { problem } : { value: read.map(({ value }) => value) };
  }
  if (kind === 'reference' && text.startsWith('?'))
    return { problem: 'must be chosen from what is found' };
  const isText = !schema.type ? /\D/u.test(text) : schema.type.includes('string');
  if (kind === 'reference' && isText) return { value: text };
  if (['number', 'integer', 'reference'].includes(kind)) return readNumber(text, decimal);
  const time = new Date(text);
  if (kind === 'time')
    return +time ? { value: time.toISOString() } : { problem: 'must be a date and a time' };
  return { value: kind === 'boolean' ? text === 'true' : text };
}

/** @type {(field: Field, text: string) => unknown} */
export const fromParameter = (field, text) =>
  field.kind === 'list'
    ? (text.match(/(?:\\.|[^\\,])+/gu) ?? []).map((each) =>
        fromParameter(toElement(field), each.replaceAll(/\\(.)/gu, '$1')),
      )
    : ['number', 'integer'].includes(field.kind)
      ? Number(text)
      : text;

const readerDecimal = showNumber(0.5).charAt(1);
/** The digits of any number that a double keeps. */
const digitsMax = 15;

/**
 * Parses a number, or explains what is wrong. Thousands separators are refused, because the same
 * character separates decimals in another language.
 * @param {string} text
 */
function readNumber(text, decimal = readerDecimal) {
  const marks = new Map([
    ['.', '?'],
    [decimal, '.'],
  ]);
  const number = text.trim().replaceAll(/\D/gu, (mark) => marks.get(mark) ?? mark);
  const value = /^[-+]?[\d.]+(e[-+]?\d+)?$/iu.test(number) ? Number(number) : NaN;
  if (!Number.isFinite(value)) return { problem: `must be a number such as 1250${decimal}5` };
  const isExact = `${value}` === number || number.replaceAll(/e.*|\D/gu, '').length <= digitsMax;
  return isExact ? { value } : { problem: 'must have fewer digits' };
}

/**
 * Formats a time to the minute, for the control for local times. The stored seconds stay unless the
 * user changes the control, because unchanged values are not sent.
 * @param {string} iso
 */
const writeTime = (iso) => {
  const time = new Date(iso);
  return new Date(+time - time.getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, 'yyyy-mm-ddThh:mm'.length);
};

/**
 * @type {(field: Field, value: unknown) => string | undefined}
 */
export function ruleBroken({ schema }, value) {
  if (value === undefined || value === null) return undefined;
  const { enum: values, pattern = '', type = [], minLength = 0, maxLength = Infinity } = schema;
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const types = [type].flat();
  if (types.length > 0 && !types.some((each) => isOfType(each, value)))
    return `must be ${typeWords[types[0] ?? ''] ?? types[0]}`;
  if (values)
    return values.includes(`${value}`) ? undefined : `must be one of ${values.join(', ')}`;
  if (typeof value === 'string') {
    const { length } = [...value];
    if (!length && minLength) return 'must be filled in';
    if (length < minLength) return `must have at least ${minLength} characters`;
    if (length > maxLength) return `must have at most ${maxLength} characters`;
    return new RegExp(pattern, 'u').test(value) ? undefined : 'has characters that are not allowed';
  }
  if (typeof value !== 'number') return undefined;
  if (value < minimum) return `must be at least ${minimum}`;
  return value > maximum ? `must be at most ${maximum}` : undefined;
}

/** @type {{ [type: string]: string }} */
const typeWords = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** @type {(type: string, value: unknown) => boolean} */
const isOfType = (type, value) =>
  type === 'array'
    ? Array.isArray(value)
    : type === 'integer'
      ? Number.isInteger(value)
      : typeof value === type && !Array.isArray(value);
