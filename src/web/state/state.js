// @ts-check
/**
 * The page's state in plain objects. Views read and change `state`; after each event, `draw` shows it. `go` moves to
 * another address; `say` and `ask` talk with the person.
 */
import { Problem } from '../api/call.js';
import { part } from '../lib/dom.js';
import { isAllowed } from '../api/model.js';

/** @import { Activity, ApiDescription, Change, Collection, Removal, Route, Stored } from '../types.js' */
/** @import { Suggestion, User } from '../types.js' */

/** The channel on which tabs tell each other who has signed in: one for each server of this origin. */
export const channelName = `session of ${new URL('.', location.href).pathname}`;

/**
 * What this browser keeps; one that refuses to keeps it until the page is closed.
 * @type {(open: () => { [key: string]: string }) => { [key: string]: string }}
 */
function storageOf(open) {
  try {
    return open();
  } catch {
    return {};
  }
}
export const storage = storageOf(() => localStorage);
/** What is of this tab. */
export const tabStorage = storageOf(() => sessionStorage);

/** The id of the form for a new record, which no record has: an id has no control characters. */
export const newId = '\0';

export const state = {
  /** Whether the server runs without sign-in, so that everyone is an administrator. */
  isOpen: document.documentElement.dataset['auth'] === 'none',
  /** Whether the server has users; else a collection may have their name. */ hasUsers: true,
  /** The person who is signed in. @type {User | undefined} */ me: undefined,
  /** @type {readonly Collection[]} */ collections: [],
  /** What they were read from. @type {ApiDescription | undefined} */ description: undefined,
  route: readRoute(location.hash),
  /** The message in the status line. */ message: '',
  /** Records about to be removed unless the person undoes it; the latest come first. @type {readonly Removal[]} */
  removals: [],
  isImporting: false,
  /** How often names of other records have been read. */ namesRead: 0,
  /** The latest changes; those of one kind that come together are one. @type {readonly Activity[]} */
  activity: [],
};

/**
 * Functions of higher modules for the others: draw the state, follow the browser's address, start, and sign out.
 */
export const page = {
  paint() {},
  /** @type {(isSameForm?: boolean) => Promise<void>} */ arrive: async () => {},
  start: async () => {},
  /** @type {(everywhere: boolean) => Promise<void>} */ signOut: async () => {},
  /** Tells the open form of changes by others. */
  notice: (
    /** @type {string} */ _collection,
    /** @type {ReadonlyMap<number, Change>} */ _changes,
  ) => {},
  /**
   * Carries out this person's own change of a record beside its form, which takes over what is stored.
   * @type {(of: Collection, id: number, work: () => Promise<Stored>) => Promise<Stored>}
   */
  store: (_of, _id, work) => work(),
};

/** The records that were open last. @type {Suggestion[]} */
export const seen = [];

/** Decodes a part of an address; one that is malformed stays, and names nothing. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {string} hash @returns {Route} */
export function readRoute(hash) {
  const [path = '', query] = hash.slice(1).split(/\?(.*)/su);
  const [view = '', id = '', of, operation] = path.split('/');
  return {
    view,
    id: id === 'new' ? newId : decoded(id),
    of,
    operation,
    query: new URLSearchParams(query),
  };
}

/** Returns the collection of a name. @param {string} wanted */
export const collectionOf = (wanted) => state.collections.find(({ name }) => name === wanted);

/**
 * Returns whether the person may carry out an operation on a collection; `holds` as of `isAllowed`.
 * @type {(of: Collection, operation: string, holds?: (word: string) => boolean) => boolean}
 */
export const allows = (of, operation, holds) => isAllowed(of, operation, state.me?.role, holds);

/** Returns the collections on which the person may carry out an operation. @param {string} operation */
export const allowed = (operation) => state.collections.filter((each) => allows(each, operation));

/** The overview and the views of collections. */
export const views = () => [
  { href: '#/', title: 'Overview' },
  ...allowed('list').map(({ name, title }) => ({ href: address(name), title })),
];

/** The page's own views beside them. */
export const ownViews = [
  { href: '#/schema', title: 'Schema' },
  { href: '#/api', title: 'Documentation' },
  ...(state.isOpen ? [] : [{ href: '#/account', title: 'Account' }]),
];

/** Whether the person's own record is open, beside the overview. */
export const isAccount = () => !state.isOpen && !state.route.view && state.route.id === 'account';

/** Whether the documentation is open, which people read without signing in, too. */
export const isGuide = () => !state.route.view && state.route.id === 'api';

/** Returns a parameter of the address, or an empty text. @param {string} name */
export const parameter = (name) => state.route.query.get(name) ?? '';

/** Ids with an address of their own: `#items/new` is the form, so the record `new` is written otherwise. */
const writtenIds = new Map([
  [newId, 'new'],
  ['new', '%6Eew'],
]);

/** Returns the address of a view or a record. @param {string | number} [id] */
export const address = (view = state.route.view, id = '', query = new URLSearchParams()) =>
  [
    `#${view}`,
    (id || !view) && `/${writtenIds.get(`${id}`) ?? (view ? encodeURIComponent(id) : id)}`,
    query.size > 0 && `?${query}`,
  ]
    .filter(Boolean)
    .join('');

/**
 * Returns parameters with some of them changed; an empty value leaves a parameter out.
 * @type {(query: URLSearchParams, changes: { [name: string]: string | number | undefined }) => URLSearchParams}
 */
export function changed(query, changes) {
  const result = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    result.delete(name);
    if (value) result.set(name, `${value}`);
  }
  return result;
}

/**
 * Returns the address of the list with some parameters changed; at its first page unless they name another.
 * @param {{ [name: string]: string | number | undefined }} changes
 */
export function withQuery(changes) {
  const { view, id, query } = state.route;
  return address(view, id, changed(query, { offset: '', ...changes }));
}

/**
 * Goes to another address unless the person stays with an unsaved form; `replace` gives the same form a new address.
 * @type {(hash: string, replace?: boolean) => Promise<void>}
 */
export function go(hash, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', hash);
  return page.arrive(replace);
}

let isDue = false;
/** @type {string | undefined} */ let wanted;

/** Runs a function with the next frame; a hidden tab has no frames. @param {() => void} work */
export const inNextFrame = (work) =>
  void (document.hidden ? setTimeout(work) : requestAnimationFrame(work));

/** Draws the state with the next frame, then focuses an element. @param {string} [focus] a selector */
export function draw(focus) {
  wanted = focus ?? wanted;
  if (isDue) return;
  isDue = true;
  inNextFrame(() => {
    isDue = false;
    page.paint();
    const target = wanted && document.querySelector(wanted);
    if (!(target instanceof HTMLElement)) return;
    target.closest('details')?.setAttribute('open', '');
    target.focus();
    wanted = undefined;
  });
}

/** Returns a selector of the link to a record in its list, or else of the title. @param {string | number} id */
export const rowOrTitle = (id) =>
  document.getElementById(`open-${id}`) ? `#${CSS.escape(`open-${id}`)}` : '#title';

let fading = 0;

/** Shows a message in the status line. @param {string} text */
export function say(text, seconds = 8) {
  clearTimeout(fading);
  state.message = text;
  fading = window.setTimeout(() => say(''), seconds * 1000);
  draw();
}

/**
 * Opens a dialog of index.html and resolves with the value of the button pressed; `''` after Escape, or if the dialog
 * is open already.
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
 * Describes a failure for a person. An error that is no `Problem` is a defect of this page.
 * @param {unknown} error
 */
export function explain(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return 'Something went wrong in this page. Reload it.';
}

/** `1 item`, `2 items`. @type {(rows: readonly unknown[], collection: Collection) => string} */
export const count = ({ length }, { one, title }) =>
  `${length} ${length === 1 ? one : title.toLowerCase()}`;

/** What curl commands send so that the server knows the caller. */
export const bearer = state.isOpen ? '' : ' -H "Authorization: Bearer $TOKEN"';
