// @ts-check
/**
 * Converts records to table cells and back without loss. Each member of an object has a column
 * (`address.city`), and a list is JSON in its cell. Does not touch the DOM.
 */
import { listLeaves, own } from './model.js';
import { fromJson, fromText, isPlainText, ruleBroken } from './texts.js';

/**
 * @import { Collection, Field } from '../types.js'
 * @typedef {string | number | undefined} Cell
 * @typedef {{ value?: unknown, problem?: string | undefined }} Read
 * @typedef {{ path: readonly string[], value?: unknown }} Change `undefined` removes what is there
 */

/**
 * @type {(record: unknown, path: readonly string[]) => unknown}
 */
export const at = (record, path) => path.reduce(own, record);

/**
 * The columns of a collection by their heads, with one for each part of an object.
 * @param {readonly Field[]} fields
 */
const listColumns = (fields) =>
  new Map(
    fields
      .flatMap((field) => listLeaves(field, true))
      .map((field) => /** @type {const} */ ([field.name.replaceAll('/', '.'), field])),
  );

/**
 * Returns a table of records, beginning with its head. Members that are not fields also have
 * columns.
 * @type {(fields: readonly Field[], records: readonly object[]) => Cell[][]}
 */
export function toTable(fields, records) {
  const further = new Set(records.flatMap(Object.keys));
  for (const { name } of fields) further.delete(name);
  const columns = listColumns(fields.filter(({ shown }) => shown));
  return [
    [...columns.keys(), ...further],
    ...records.map((record) => [
      ...[...columns.values()].map((field) => toCell(field, at(record, field.name.split('/')))),
      ...Array.from(further, (name) => toLooseCell(own(record, name))),
    ]),
  ];
}

/**
 * True if a field accepts both texts and other values, which its cells tell apart.
 * @param {Field} field
 */
const isLoose = ({ kind, schema }) => kind === 'json' || !schema.type;

/** @type {(field: Field, value: unknown) => Cell} */
function toCell(field, value) {
  if (isLoose(field)) return toLooseCell(value);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number') return value;
  return Array.isArray(value) ? JSON.stringify(value) : `${value}`;
}

/**
 * Writes any value; a text without quotes if it cannot be mistaken for JSON.
 * @param {unknown} value
 */
const toLooseCell = (value) =>
  value === undefined || typeof value === 'number'
    ? value
    : typeof value === 'string' && isPlainText(value)
      ? value
      : JSON.stringify(value);

/** @type {{ [text: string]: boolean }} */
// prettier-ignore
const truths = {
  true: true, yes: true, y: true, on: true, 1: true,
  false: false, no: false, n: false, off: false, 0: false,
};

/**
 * Reads a cell, or explains why that is impossible; `undefined` means no value.
 * @type {(field: Field, cell: string | undefined, decimal: string) => Read}
 */
function fromCell(field, cell, decimal) {
  const { kind, schema, isRequired } = field;
  const isText = kind === 'text' || kind === 'long';
  if (cell === undefined && isRequired && schema.type?.includes('null')) return { value: null };
  if (cell === '' && isText && !schema.minLength) return { value: '' };
  if (cell && (isLoose(field) || (kind === 'list' && cell.startsWith('['))))
    return fromJson(cell, true);
  if (cell && kind === 'boolean') {
    const value = own(truths, cell.trim().toLowerCase());
    return value === undefined ? { problem: 'must be true or false' } : { value };
  }
  const { value, problem } = fromText(field, cell ?? '', isRequired, decimal);
  return { value: value ?? undefined, problem };
}

/** @param {string} name */
const bare = (name) => name.trim().toLowerCase();

/**
 * Reads a value from a JSON file, which keeps its type.
 * @type {(field: Field, value: unknown) => Read}
 */
function fromValue({ schema, isRequired }, value) {
  if (value !== null || !schema.type || schema.type.includes('null')) return { value };
  return isRequired ? { problem: 'must not be null' } : {};
}

/**
 * Returns a function that reads a line of a file: an object of cells if `decimal` separates
 * decimals, else of values. It returns the line's changes to a record, its id, the fields that the
 * server fills in (`given`), and problems.
 * @param {Collection} collection @param {string} [decimal]
 */
export function lineReader({ fields, isOpenEnded }, decimal) {
  const columns = decimal ? listColumns(fields) : new Map(fields.map((each) => [each.name, each]));
  const known = new Map([...columns.values()].map((field) => [bare(field.label), field]));
  for (const [head, field] of columns) known.set(bare(head), field);

  return (/** @type {object} */ source) => {
    /** @type {Change[]} */ const changes = [];
    /** @type {string[]} */ const problems = [];
    /** @type {Map<Field, any>} */ const found = new Map();
    for (const [name, content] of Object.entries(source)) {
      const field = columns.get(name) ?? known.get(bare(name));
      if (field) found.set(field, content);
      else if (!isOpenEnded) problems.push(`There is no field ${name}.`);
      else if (content !== undefined)
        changes.push({ path: [name], ...(decimal ? fromJson(content, true) : { value: content }) });
    }
    for (const [field, content] of found) {
      const blank = field.within?.find((path) =>
        [...found].every(([{ name }, each]) => !name.startsWith(`${path}/`) || each === undefined),
      );
      const path = (blank ?? field.name).split('/');
      if (!field.created) continue;
      const read = decimal ? fromCell(field, content, decimal) : fromValue(field, content);
      const { value, problem = ruleBroken(field, value) } = blank ? {} : read;
      if (problem) problems.push(`${field.label} ${problem}.`);
      changes.push({ path, value });
    }
    const [field, content] = [...found].find(([{ name }]) => name === 'id') ?? [];
    const id =
      decimal && content && field && isLoose(field) ? fromJson(content, true).value : content;
    const given = [...found].flatMap(([{ created, label }, each]) =>
      created || each === undefined ? [] : label,
    );
    return { changes, problems, given, id };
  };
}

/**
 * @type {(record: object, changes: readonly Change[]) => { [field: string]: unknown }}
 */
export function withChanges(record, changes) {
  const result = structuredClone(record);
  for (const { path, value } of changes) {
    const name = path.at(-1) ?? '';
    /** @type {any} */ let place = result;
    for (const part of path.slice(0, -1)) {
      if (value !== undefined && !own(place, part)) define(place, part, {});
      place = own(place, part);
    }
    if (value !== undefined) define(place, name, value);
    else if (place) delete place[name];
  }
  return /** @type {{ [field: string]: unknown }} */ (result);
}

/**
 * A member may be called `__proto__`.
 * @type {(object: object, name: string, value: unknown) => unknown}
 */
const define = (object, name, value) =>
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });

/**
 * True if two JSON values are equal. Absent equals null.
 * @type {(one: unknown, other: unknown) => boolean}
 */
export function isSame(one, other) {
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other)
    return (one ?? null) === (other ?? null);
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => isSame(own(one, name), own(other, name)));
}
