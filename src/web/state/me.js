// @ts-check
/** Who is signed in, what the server is, and what this person may do. */
import { isAllowed } from '../api/model.js';

/** @import { Activity, ApiDescription, Collection, Removal } from '../types.js' */
/** @import { Suggestion, User } from '../types.js' */

/** The channel on which tabs tell each other who has signed in: one for each server of this origin. */
export const channelName = `session of ${new URL('.', location.href).pathname}`;

/**
 * The storage of this browser. If it refuses, values last until the page is closed.
 * @type {(open: () => { [key: string]: string }) => { [key: string]: string }}
 */
function openStorage(open) {
  try {
    return open();
  } catch {
    return {};
  }
}
export const storage = openStorage(() => localStorage);
/** The storage of this tab. */
export const tabStorage = openStorage(() => sessionStorage);

export const state = {
  /** True if the server runs without sign-in, so everyone is an administrator. */
  isOpen: document.documentElement.dataset['auth'] === 'none',
  /** True if the server has users; otherwise a collection may have their name. */ hasUsers: true,
  /** The person who is signed in. @type {User | undefined} */ me: undefined,
  /** @type {readonly Collection[]} */ collections: [],
  /** The document they were read from. @type {ApiDescription | undefined} */ description:
    undefined,
  /** The message in the status line. */ message: '',
  /** Takes back what the message is about. @type {(() => unknown) | undefined} */ undo: undefined,
  /** Records about to be removed unless the person undoes it; the latest come first. @type {readonly Removal[]} */
  removals: [],
  isImporting: false,
  /** The number of times that names of other records were read. */ namesRead: 0,
  /** The latest changes; those of one kind that come together are one. @type {readonly Activity[]} */
  activity: [],
};

/** The records that were open last. @type {Suggestion[]} */
export const seen = [];

/** Returns the collection of a name. @param {string} wanted */
export const findCollection = (wanted) => state.collections.find(({ name }) => name === wanted);

/**
 * Returns whether the person may carry out an operation on a collection; `holds` as of `isAllowed`.
 * @type {(of: Collection, operation: string, holds?: (word: string) => boolean) => boolean}
 */
export const allows = (of, operation, holds) => isAllowed(of, operation, state.me?.role, holds);

/** Returns the collections on which the person may carry out an operation. @param {string} operation */
export const allowed = (operation) => state.collections.filter((each) => allows(each, operation));

/**
 * Returns a path of the server itself, which makes room for a collection of its name.
 * @param {string} name
 */
export const ownPath = (name) =>
  `/-/${name}` in (state.description?.paths ?? {}) ? `-/${name}` : name;

/** `1 item`, `2 items`. @type {(rows: readonly unknown[], collection: Collection) => string} */
export const count = ({ length }, { one, title }) =>
  `${length} ${length === 1 ? one : title.toLowerCase()}`;

/** True if the person can have API keys. */
export const hasKeys = () => !state.isOpen && !!state.description?.paths['/keys'];

/** What curl commands send so that the server knows the caller. */
export const bearer = state.isOpen ? '' : ' -H "Authorization: Bearer $TOKEN"';
