// @ts-check
/** The signed-in person and their permissions, and the server's description. */
import { Problem } from '../api/call.js';
import { isAllowed, showNumber } from '../api/model.js';
import { draw } from '../lib/dom.js';

/** @import { Activity, ApiDescription, Collection, Removal } from '../types.js' */
/** @import { Row, User } from '../types.js' */

/** @returns {{ [key: string]: string }} */
function openStorage() {
  try {
    return localStorage;
  } catch {
    return {};
  }
}
/** The browser's storage, or, if that refuses, values that last until the page is closed. */
export const storage = openStorage();

/** The state before anyone has signed in. */
const nobody = () => ({
  /** @type {User | undefined} */ me: undefined,
  message: '',
  /** @type {(() => unknown) | undefined} */ undo: undefined,
  /**
   * Records to be removed unless the person undoes it, the latest first.
   * @type {readonly Removal[]}
   */
  removals: [],
  isImporting: false,
  namesRead: 0,
  /** The latest changes. Simultaneous ones of one kind are combined. @type {readonly Activity[]} */
  activity: [],
  /** @type {readonly Collection[]} */ collections: [],
  /** @type {ApiDescription | undefined} */ description: undefined,
});

export const state = {
  /** True if the server runs without sign-in, so that everyone is an administrator. */
  isOpen: document.documentElement.dataset['auth'] === 'none',
  ...nobody(),
};

export function reset() {
  clearTimeout(fading);
  Object.assign(state, nobody());
}

/** @param {string} wanted */
export const findCollection = (wanted) => state.collections.find(({ name }) => name === wanted);

/**
 * True if the person may carry out an operation on a collection. For `holds`, see `isAllowed`.
 * @type {(of: Collection, operation: string, holds?: (word: string) => boolean) => boolean}
 */
export const allows = (of, operation, holds) => isAllowed(of, operation, state.me?.role, holds);

/**
 * @param {string} operation
 */
export const allowed = (operation) => state.collections.filter((each) => allows(each, operation));

/**
 * Returns one of the server's own paths, which moves if a collection has its name.
 * @param {string} name
 */
export const ownPath = (name) =>
  `/-/${name}` in (state.description?.paths ?? {}) ? `-/${name}` : name;

/** @type {(of: Collection, row: Row) => boolean} */
export const isLeaving = ({ name }, { id }) =>
  state.removals.some(
    (each) => each.collection.name === name && each.rows.some((row) => row.id === id),
  );

/** @type {(rows: { length: number }, collection: Collection) => string} */
export const count = ({ length }, { one, title }) =>
  `${showNumber(length)} ${length === 1 ? one : title.toLowerCase()}`;

export const hasKeys = () => !state.isOpen && !!state.description?.paths['/keys'];

export const bearer = state.isOpen ? '' : ' -H "Authorization: Bearer $TOKEN"';

let fading = 0;
const [seconds, undoSeconds] = [8, 10];

/**
 * Shows a message in the status line, with `undo` if it can be undone.
 * @type {(text: string, undo?: () => unknown) => void}
 */
export function say(text, undo) {
  clearTimeout(fading);
  state.message = text;
  state.undo = undo && (() => (say(''), undo()));
  fading = window.setTimeout(() => say(''), (undo ? undoSeconds : seconds) * 1000);
  draw();
}

/**
 * Describes a failure for a person. An error other than `Problem` is a bug in this page.
 * @param {unknown} error
 */
export function explain(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return 'Something went wrong in this page. Reload it.';
}
