// @ts-check
/**
 * What the page is about, in plain objects. `draw` shows it; `go` moves to another address; `say` and `ask` talk with
 * the person. Views read `state` and change it; after each event, it is drawn.
 */
import { Problem } from './api.js';
import { part } from './dom.js';

/** @import { Collection, Route, Toast, User } from './types.js' */

export const state = {
  /** Whether nobody has to sign in here, and everyone is an administrator. */
  isOpen: document.documentElement.dataset['auth'] === 'none',
  /** The person who is signed in. @type {User | undefined} */ me: undefined,
  /** @type {readonly Collection[]} */ collections: [],
  route: readRoute(location.hash),
  /** @type {Toast} */ toast: { text: '', undo: undefined },
};

/**
 * What `app.js` does for the others: shows the state, goes to the address that the browser has, starts, and signs out.
 */
export const page = {
  paint() {},
  /** @type {(isSameForm?: boolean) => Promise<void>} */ arrive: async () => {},
  start: async () => {},
  /** @type {(everywhere: boolean) => Promise<void>} */ signOut: async () => {},
};

/** @param {string} hash @returns {Route} */
export function readRoute(hash) {
  const [path = '', query] = hash.slice(1).split(/\?(.*)/su);
  const [view = '', id = ''] = path.split('/');
  return { view, id, query: new URLSearchParams(query) };
}

/** A parameter of the address. @param {string} name */
export const parameter = (name) => state.route.query.get(name) ?? '';

/** The address of a view or a record, with the parameters of this one. @param {string | number} [id] */
export const address = (view = state.route.view, id = '', query = new URLSearchParams()) =>
  [`#${view}`, (id || !view) && `/${id}`, query.size > 0 && `?${query}`].filter(Boolean).join('');

/**
 * The address of the list with other parameters; without a place, at its first page.
 * @param {{ [name: string]: string | number | undefined }} changes
 */
export function withQuery(changes) {
  const { view, id, query } = state.route;
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries({ cursor: '', until: '', at: '', ...changes })) {
    changed.delete(name);
    if (value) changed.set(name, String(value));
  }
  return address(view, id, changed);
}

/**
 * Goes to another address, if the person agrees; or to another one for the same form.
 * @type {(hash: string, replace?: boolean) => Promise<void>}
 */
export function go(hash, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', hash);
  return page.arrive(replace);
}

let isDue = false;
/** @type {string | undefined} */ let wanted;

/** Shows the state, once the code that is running has ended. @param {string} [focus] a selector */
export function draw(focus) {
  wanted = focus ?? wanted;
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    page.paint();
    const target = wanted && document.querySelector(wanted);
    if (!(target instanceof HTMLElement)) return;
    target.focus();
    wanted = undefined;
  });
}

let fading = 0;

/**
 * Says something in the status line, where the person may undo it.
 * @type {(text: string, undo?: () => void, seconds?: number) => void}
 */
export function say(text, undo, seconds = 8) {
  clearTimeout(fading);
  state.toast = { text, undo };
  fading = window.setTimeout(() => say(''), seconds * 1000);
  draw();
}

/**
 * Asks with a dialog of index.html, and gives the value of the button. Escape is `''`; so is a question that is open
 * already.
 */
export function ask(/** @type {string} */ id, what = '') {
  const dialog = part(id, HTMLDialogElement);
  return new Promise((/** @type {(choice: string) => void} */ resolve) => {
    if (dialog.open) return resolve('');
    for (const output of dialog.getElementsByTagName('output')) output.textContent = what;
    dialog.returnValue = '';
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.showModal();
  });
}

/**
 * What a failure is to a person. One that the server did not answer is a mistake of this page.
 * @param {unknown} error
 */
export function explain(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return 'Something in this page went wrong. Load it again.';
}

/** `1 item`, `2 items`. @type {(rows: readonly unknown[], collection: Collection) => string} */
export const count = ({ length }, { one, title }) => `${length} ${length === 1 ? one : title.toLowerCase()}`;

/** Copies the command that makes the same request. @param {string} path */
export async function copyAsCurl(path) {
  const { href } = new URL(path, location.href);
  const token = state.isOpen ? '' : ' -H "Authorization: Bearer $TOKEN"';
  await navigator.clipboard.writeText(`curl -sS '${href.replaceAll("'", '%27')}'${token}`);
  say('Copied. Put an access token into TOKEN: POST /tokens gives one.');
}
