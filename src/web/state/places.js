// @ts-check
/** The rail: the collections in their groups, and the page's own views. */
import { draw } from '../lib/dom.js';
import { allowed, hasKeys, state } from './me.js';
import { readPage } from './names.js';
import { address } from './route.js';

/** @type {Map<string, number>} */
const totals = new Map();

export const reset = () => totals.clear();

export async function loadTotals() {
  const lists = allowed('list').filter(({ single, isHidden }) => !single && !isHidden);
  const page = { limit: 1, fields: 'id' };
  await Promise.all(lists.map(async (of) => totals.set(of.name, (await readPage(of, page)).total)));
  draw();
}

/** @type {(collection: string, more: number) => void} */
export const addToTotal = (collection, more) =>
  void (totals.has(collection) && totals.set(collection, (totals.get(collection) ?? 0) + more));

export function places() {
  const lists = allowed('list')
    .filter(({ isHidden }) => !isHidden)
    .map(({ name, title, group, isUsers }) => ({
      href: address(name),
      title,
      total: totals.get(name),
      group: isUsers ? 'People' : group || 'Data',
    }));
  const isLast = (/** @type {{ group: string }} */ { group }) => Number(group === 'People');
  const own = (/** @type {string} */ href, /** @type {string} */ title, group = '') => ({
    href,
    title,
    group,
    total: undefined,
  });
  return [
    own('#/', 'Overview'),
    ...lists.toSorted((one, other) => isLast(one) - isLast(other)),
    !state.isOpen && own('#/account', 'My account', 'People'),
    hasKeys() && own('#/keys', 'API keys', 'People'),
    own('#/api', 'API', 'Develop'),
    own('#/schema', 'Schema', 'Develop'),
    state.me?.role === 'admin' && own('#/server', 'Status', 'Server'),
  ].flatMap((place) => place || []);
}
