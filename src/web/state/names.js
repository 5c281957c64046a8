// @ts-check
/** Names of records. Related records are read together once their names are shown. */
import { call } from '../api/call.js';
import { own, findTarget, toShow } from '../api/model.js';
import { draw } from '../lib/dom.js';
import { allows, findCollection, state } from './me.js';
import { changed, joinValues } from './route.js';

/** @import { Collection, Row } from '../types.js' */

const titleMax = 200;

/** @type {Map<string, Row | undefined>} */
const records = new Map();
/** @type {Map<string, Set<unknown>>} */
let wanted = new Map();

export function reset() {
  records.clear();
  wanted.clear();
}

/**
 * Returns a record's name. References in it are followed to a `depth`.
 * @type {(target: string, id: unknown, depth?: number) => string}
 */
export function findName(target, id, depth = 1) {
  const key = `${target}/${id}`;
  const of = findCollection(target);
  if (!records.has(key) && of && allows(of, 'list')) {
    records.set(key, undefined);
    if (wanted.size === 0) setTimeout(readNames);
    wanted.set(target, (wanted.get(target) ?? new Set()).add(id));
  }
  const row = records.get(key);
  return row && of ? toTitle(of, row, depth) : `${id}`;
}

/** Renews the name of a changed record where it is shown. @type {(collection: string, record: Row) => void} */
export function rename(collection, record) {
  const key = `${collection}/${record.id}`;
  if (!records.has(key)) return;
  records.set(key, record);
  state.namesRead += 1;
}

/**
 * Returns a record's title, or its id if that would be empty.
 * @type {(of: Collection, row: Row, depth?: number) => string}
 */
export function toTitle({ display, fields }, row, depth = 2) {
  const text = (/** @type {string} */ name) => {
    const field = fields.find((each) => each.name === name);
    const value = own(row, name);
    if (!field || value === undefined || value === null) return '';
    const target = findTarget(field);
    return target && depth > 0 ? findName(target, value, depth - 1) : toShow(field, value);
  };
  const title = display.replaceAll(/\{\{|\}\}|\{([^{}]*)\}/gu, (brace, name) =>
    name === undefined ? brace.charAt(0) : text(name),
  );
  return [...title].slice(0, titleMax).join('').trim() || `${row.id}`;
}

const idsAtOnce = 100;

async function readNames() {
  const reading = wanted;
  wanted = new Map();
  for (const [target, ids] of reading) {
    const all = [...ids];
    while (all.length > 0) {
      // Without a name, the id is shown.
      await find(target, { 'id:in': joinValues(all.splice(0, idsAtOnce)) }).catch(() => []);
    }
  }
  state.namesRead += 1;
  draw();
}

/**
 * @type {(target: string, query: Record<string, string>, more?: string) => Promise<Row[]>} `more` names a field
 */
export async function find(target, query, more) {
  const shown = findCollection(target)?.display.matchAll(/\{([^{}]+)\}/gu) ?? [];
  const names = ['id', ...Array.from(shown, ([, name]) => name), more];
  const fields = [...new Set(names.filter(Boolean))].join();
  const { data } = await call('GET', `${target}?${new URLSearchParams({ ...query, fields })}`);
  for (const row of data) records.set(`${target}/${row.id}`, row);
  return data;
}

/**
 * @type {(collection: Collection, page: Parameters<typeof changed>[1], query?: URLSearchParams) =>
 *   ReturnType<typeof call>}
 */
export const readPage = ({ name }, page, query = new URLSearchParams()) =>
  call('GET', `${name}?${changed(query, page)}`, { fields: { Prefer: 'count=exact' } });
