import { isScalar, pointerTo } from '../base/json.ts';
import { didYouMean } from '../base/nearest.ts';
import type { Field } from './field.ts';
import { exampleOf } from './json-schema.ts';
import { ruleViolation } from './rules.ts';

/**
 * The check of declarations, which come from a file, or from a program that may be plain
 * JavaScript. All mistakes are found at once.
 */

/** Receives a mistake: its place, as a JSON Pointer, and a phrase that follows the place. */
export type Report = (pointer: string, problem: string) => void;

/** Reports what is wrong with a value at a place, and returns whether nothing is. */
export type Check = (value: unknown, at: string, report: Report) => boolean;

/** Returns the check of a value that must pass `test`. */
export function must(be: string, test: (value: unknown) => boolean): Check {
  return (value, at, report) => {
    if (test(value)) return true;
    const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
    report(at, `must be ${be}${isScalar(value) ? `, not ${shown}` : ''}`);
    return false;
  };
}

/** Returns the check of a member that may be left out. */
export const maybe =
  (check: Check): Check =>
  (value, at, report) =>
    value === undefined || check(value, at, report);

export const aText = must('a non-empty string', isText);
export const aNumber = must('a number', Number.isFinite);
export const aFlag = must('true or false', (value) => typeof value === 'boolean');
export const anObject = must('an object', isObject);

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the check of an object with these members and no others. */
export function members(table: { readonly [name: string]: Check }): Check {
  const known = Object.keys(table);
  return (value, at, report) => {
    if (!isObject(value)) return anObject(value, at, report);
    let isGood = true;
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(table, name)) continue;
      report(at + pointerTo(name), `is not a known member${didYouMean(name, known)}`);
      isGood = false;
    }
    for (const [name, check] of Object.entries(table)) {
      isGood = check(value[name], at + pointerTo(name), report) && isGood;
    }
    return isGood;
  };
}

/** Returns the check of an array whose elements pass `element`. */
export function elements(what: string, min: number, element: Check): Check {
  return (value, at, report) => {
    if (!Array.isArray(value) || value.length < min) {
      report(at, `must be ${what}`);
      return false;
    }
    return value
      .map((each: unknown, index) => element(each, `${at}/${index}`, report))
      .every(Boolean);
  };
}

/** The highest bound of a length that can be declared. */
export const lengthMax = 100_000;
const aLength = must(`a whole number from 0 to ${lengthMax}`, (value) => {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= lengthMax;
});
const oneOf = (...values: readonly string[]): Check =>
  must(`one of ${values.join(', ')}`, (value) => values.some((known) => known === value));
const numberBounds = { min: maybe(aNumber), max: maybe(aNumber) };

/** The members that only fields of one kind have. */
const ownMembers: { readonly [kind: string]: { readonly [name: string]: Check } } = {
  text: { min: maybe(aLength), max: maybe(aLength), multiline: maybe(aFlag) },
  integer: numberBounds,
  number: numberBounds,
  boolean: {},
  choice: { values: elements('a non-empty array of strings', 1, aText) },
  email: {},
  timestamp: {},
  reference: { to: aText, onDelete: maybe(oneOf('refuse', 'remove', 'clear')) },
  list: { of: checkElement, max: maybe(aLength) },
};
const aKind = oneOf(...Object.keys(ownMembers));

/** The kinds of fields that a list can have as elements, and of those that can be unique. */
const elementKinds = ['text', 'integer', 'number', 'choice', 'email', 'reference'];
const uniqueKinds = ['text', 'email', 'integer', 'timestamp', 'reference'];

const anything: Check = () => true;
const commonMembers = {
  kind: aKind,
  optional: maybe(aFlag),
  default: anything,
  example: anything,
  description: maybe(aText),
  renamedFrom: maybe(aText),
};

/** Checks the declaration of the elements of a list. */
function checkElement(value: unknown, at: string, report: Report): boolean {
  if (!isObject(value)) return anObject(value, at, report);
  const { kind } = value;
  const own = elementKinds.some((known) => known === kind) ? ownMembers[String(kind)] : undefined;
  if (own === undefined) return oneOf(...elementKinds)(kind, `${at}/kind`, report);
  return members({ kind: anything, ...own })(value, at, report);
}

/** Checks the declaration of a field whose values callers set and see. */
export const checkField: Check = (value, at, report) => {
  if (!isObject(value)) return anObject(value, at, report);
  const { kind } = value;
  if (!isText(kind) || !Object.hasOwn(ownMembers, kind)) return aKind(kind, `${at}/kind`, report);
  const unique = uniqueKinds.includes(kind) && { unique: maybe(aFlag) };
  if (!members({ ...commonMembers, ...ownMembers[kind], ...unique })(value, at, report))
    return false;
  // The members are those of the field's kind, and have been checked.
  const field = value as unknown as Field;
  const contradictions = contradictionsIn(field);
  for (const [pointer, problem] of contradictions) report(at + pointer, problem);
  return contradictions.length === 0;
};

/** Returns where a field contradicts its own rule. */
function contradictionsIn(field: Field): (readonly [pointer: string, problem: string])[] {
  const { example, default: fallback, ...rule } = field;
  if (ruleViolation(field, exampleOf(rule)) !== undefined)
    return [['', 'has bounds that no value can satisfy']];
  if (field.optional && fallback !== undefined)
    return [['/default', 'must be left out where the field is optional']];
  if (field.kind === 'reference' && fallback !== undefined)
    return [['/default', 'must be left out: no record needs to have this id']];
  if (field.kind === 'reference' && field.onDelete === 'clear' && !field.optional)
    return [['/onDelete', 'must not be clear where the field is not optional']];
  if ('unique' in field && field.unique && fallback !== undefined)
    return [['/default', 'must be left out where the field is unique']];
  return Object.entries({ example, default: fallback }).flatMap(([member, value]) => {
    const violation = value === undefined ? undefined : ruleViolation(field, value);
    return violation === undefined ? [] : [[pointerTo(member), violation.detail]];
  });
}
