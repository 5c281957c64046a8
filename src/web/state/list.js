// @ts-check
/** The current list: its rows, selection and columns. */
import { call, Problem } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { findCollection, isLeaving, storage, explain } from './me.js';
import { rename } from './names.js';
import { related } from './related.js';
import { address, changed, go, parameter, route, withQuery } from './route.js';

/** @import { Collection, Field, Row } from '../types.js' */

const unread = (collection = '') => ({
  collection,
  key: '',
  /** @type {readonly Row[]} */ rows: [],
  total: NaN,
  query: new URLSearchParams(),
  isBusy: false,
  problem: '',
  /** Rows of other pages stay selected. @type {readonly Row[]} */ selected: [],
  changes: 0,
});

export const list = unread();

const ownParameters = ['q', 'sort', 'limit', 'offset'];
const retryMs = 3000;

let loading = new AbortController();
let retry = 0;

function stop() {
  loading.abort();
  clearTimeout(retry);
}

export function reset() {
  stop();
  Object.assign(list, unread());
}

export const collectionNow = () => findCollection(route.view);

export const pageSize = () => Number(parameter('limit')) || 50;

export const readFilters = () => [...route.query].filter(([name]) => !ownParameters.includes(name));

const dayMs = 86_400_000;

/**
 * Turns `createdAt:last=7 days` into the time seven days ago.
 * @param {[string, string]} parameter @returns {[string, string]}
 */
const absolute = ([name, value]) =>
  name.endsWith(':last')
    ? [name.replace(/last$/u, 'gte'), new Date(Date.now() - parseInt(value) * dayMs).toISOString()]
    : [name, value];

/**
 * Returns the API's path for the list in the address: all pages, unless parameters choose one.
 * @param {{ [name: string]: number | string }} page
 */
export const listPath = (page = { limit: '', offset: '' }) =>
  `${route.view}?${changed(new URLSearchParams([...route.query].map(absolute)), page)}`;

/**
 * The list's order: the newest first, unless the address says otherwise.
 * @param {Collection} [collection]
 */
export const chooseOrder = (collection) => parameter('sort') || collection?.newestFirst || '';

/** Loads the list in the address, unless it is loaded already. */
export async function loadList(again = false) {
  const { view, query } = route;
  const order = chooseOrder(findCollection(view));
  const key = `${address(view, '', query)} ${order}`;
  if (key === list.key && !again) return;
  if (list.collection !== view) Object.assign(list, unread(view));
  Object.assign(list, { key, isBusy: true });
  stop();
  const { signal } = (loading = new AbortController());
  draw();
  try {
    const { data: rows, total } = await call('GET', listPath({ limit: pageSize(), sort: order }), {
      signal,
      fields: { Prefer: 'count=exact' },
    });
    // The records of this page are gone.
    if (rows.length === 0 && total > 0 && query.has('offset')) return await go(withQuery({}), true);
    Object.assign(list, { rows, total, query, problem: '', changes: 0 });
    if (!again) document.getElementById('list')?.scrollTo(0, 0);
  } catch (error) {
    if (signal.aborted) return;
    list.problem = explain(error);
    // Retries, so that the list recovers after a restart of the server.
    const { status = 400 } = error instanceof Problem ? error : {};
    if (status === 0 || status === 429 || status > 500)
      retry = window.setTimeout(() => loadList(true), retryMs);
  }
  list.isBusy = false;
  draw();
}

/** @param {Collection} collection */
export const readRows = (collection) => list.rows.filter((row) => !isLeaving(collection, row));

/** @type {(collection: string, rows: readonly Row[], isSelected: boolean) => void} */
export function select(collection, rows, isSelected) {
  if (list.collection !== collection) return;
  const others = list.selected.filter(({ id }) => !rows.some((row) => row.id === id));
  list.selected = isSelected ? [...others, ...rows] : others;
}

/**
 * Replaces the row of a changed record, here and below a record that it refers to, and its name. A selected row
 * is replaced as well, or the next change of the selection would find it out of date.
 * @type {(collection: string, record: Row) => void}
 */
export function showChange(collection, record) {
  const renew = (/** @type {readonly Row[]} */ rows) =>
    rows.map((row) => (row.id === record.id ? record : row));
  for (const of of [list, ...related.all])
    if (of.collection === collection) of.rows = renew(of.rows);
  if (list.collection === collection) list.selected = renew(list.selected);
  rename(collection, record);
}

/** Kinds that a list does not show at first. */
const seldom = new Set(['long', 'url']);

/**
 * The columns of a list, as kept in this browser; at first without ids, long texts, addresses and
 * JSON.
 * @type {(of: Collection) => readonly Field[]}
 */
export function listColumns({ name, nameField, fields }) {
  const all = fields.filter(({ shown }) => shown);
  const names = [...keptColumns(name).keys()];
  return names.length > 0
    ? names.flatMap((each) => all.find((field) => field.name === each) ?? [])
    : all.filter(
        ({ name, kind, declared, schema, created }) =>
          name === nameField ||
          (name !== 'id' &&
            (!seldom.has(kind) || declared.format === 'image') &&
            (kind !== 'json' || schema.properties || declared.like) &&
            (name === 'createdAt' || kind !== 'time' || created)),
      );
}

/**
 * Returns the kept columns of a list with their widths, or 0.
 * @type {(name: string) => Map<string, number>}
 */
export const keptColumns = (name) => new Map(JSON.parse(storage[`columns of ${name}`] ?? '[]'));
