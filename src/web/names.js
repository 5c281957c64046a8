// @ts-check
/** Names of the records that others refer to, read together once they are shown. */
import { call } from './api.js';
import { collectionOf, draw, state } from './state.js';

/** @import { Row } from './types.js' */

/** By collection and id; empty until it is known. @type {Map<string, string>} */
export const names = new Map();
/** Ids to be read, by collection. @type {Map<string, Set<unknown>>} */
let wanted = new Map();

/** Returns the name of a record, or its id until the name is known. @type {(target: string, id: unknown) => string} */
export function nameOf(target, id) {
  const key = `${target}/${id}`;
  if (!names.has(key)) {
    names.set(key, '');
    if (wanted.size === 0) setTimeout(readNames);
    wanted.set(target, (wanted.get(target) ?? new Set()).add(id));
  }
  return names.get(key) || `${id}`;
}

async function readNames() {
  const reading = wanted;
  wanted = new Map();
  for (const [target, ids] of reading) {
    // Without a name, the id is shown.
    await find(target, { 'id:in': [...ids].join() }).catch(() => []);
  }
  state.namesRead += 1;
  draw();
}

/**
 * Finds records by parameters of their list, and notes their names.
 * @type {(target: string, query: Record<string, string>) => Promise<Row[]>}
 */
export async function find(target, query) {
  const { data } = await call('GET', `${target}?${new URLSearchParams(query)}`);
  const nameField = collectionOf(target)?.nameField ?? 'id';
  for (const row of data) names.set(`${target}/${row.id}`, `${row[nameField]}`);
  return data;
}
