// @ts-check
/** The page's address: its view, record and parameters. */
import { state } from './me.js';

/** @import { Route } from '../types.js' */

/**
 * The id of the form for a new record. No record has it, because ids have no control characters.
 */
export const newId = '\0';

/** Decodes a part of an address. A malformed one stays, and names nothing. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The page's own views, at `#/api`. A collection with such a name has its pages at `#/%61pi`. */
const ownNames = ['', 'account', 'api', 'invite', 'keys', 'schema', 'server'];

/**
 * Reads an address: `#orders/4` is an order next to its list, and `#/orders/4` is its page.
 * @param {string} hash @returns {Route}
 */
export function readRoute(hash) {
  const [path = '', query] = hash.slice(1).split(/\?(.*)/su);
  const isPage = path.startsWith('/') && !ownNames.includes(path.split('/')[1] ?? '');
  const [view = '', id = '', of, operation] = path.slice(Number(isPage)).split('/');
  return {
    view: decoded(view),
    id: id === 'new' ? newId : decoded(id),
    of,
    operation,
    isPage: isPage && !!id,
    query: new URLSearchParams(query),
  };
}

export const route = readRoute(location.hash);

export const reset = () => void Object.assign(route, readRoute(''));

/** Called once the address has changed. Set by `app.js`. */
export const router = { arrive: async (/** @type {boolean} */ _isSameForm) => {} };

export const isAccount = () => !state.isOpen && !route.view && route.id === 'account';

export const isGuide = () => !route.view && route.id === 'api';

/** @param {string} name */
export const parameter = (name) => route.query.get(name) ?? '';

/** `#items/new` is the form, so the id `new` is written differently. */
const writtenIds = new Map([
  [newId, 'new'],
  ['new', '%6Eew'],
]);

/** @param {string | number} [id] */
export const address = (view = route.view, id = '', query = new URLSearchParams()) =>
  [
    `#${view}`,
    (id || !view) && `/${writtenIds.get(`${id}`) ?? (view ? encodeURIComponent(id) : id)}`,
    query.size > 0 && `?${query}`,
  ]
    .filter(Boolean)
    .join('');

/** @type {(view: string, id: unknown) => string} */
export function pageAddress(view, id) {
  const name = ownNames.includes(view)
    ? `%${view.charCodeAt(0).toString(16)}${view.slice(1)}`
    : view;
  return `#/${name}/${writtenIds.get(`${id}`) ?? encodeURIComponent(`${id}`)}`;
}

/**
 * @type {(query: URLSearchParams, changes: { [name: string]: string | number | undefined }) => URLSearchParams}
 */
export function changed(query, changes) {
  const result = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) result.set(name, `${value}`);
    else result.delete(name);
  }
  return result;
}

/** @param {readonly unknown[]} values */
export const joinValues = (values) =>
  values.map((each) => `${each}`.replaceAll(/[\\,]/gu, '\\$&')).join();

/**
 * Returns the list's address with some parameters changed, at its first page by default.
 * @param {{ [name: string]: string | number | undefined }} changes
 */
export function withQuery(changes) {
  const { view, id, query } = route;
  return address(view, id, changed(query, { offset: '', ...changes }));
}

/**
 * Goes to an address, unless the user stays with an unsaved form. With `replace`, the open form
 * keeps its state and gets the new address.
 * @type {(hash: string, replace?: boolean) => Promise<void>}
 */
export function go(hash, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', hash);
  return router.arrive(replace);
}

/**
 * Returns a selector of a record's link in the list, or else of the title.
 * @param {string | number} id
 */
export const rowOrTitle = (id) =>
  document.getElementById(`open-${id}`) ? `#${CSS.escape(`open-${id}`)}` : '#title';
