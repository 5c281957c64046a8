// @ts-check
/** What views are made of: elements whose text is never markup, regions that fill themselves, dialogs, the address. */
import { Problem } from './api.js';

/** @typedef {{ [name: string]: string | number | boolean | undefined | ((event: Event) => void) }} Attributes */

/**
 * Makes an element. A function becomes a listener (`onclick`); `false` and `undefined` leave an attribute out; a
 * string among the children becomes text, whatever it contains.
 * @type {<K extends keyof HTMLElementTagNameMap>
 *   (tag: K, attributes?: Attributes, ...children: (Node | string)[]) => HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children);
  return element;
}

/** @type {(text: string, onclick: (event: Event) => void, attributes?: Attributes) => HTMLButtonElement} */
export const button = (text, onclick, attributes) => h('button', { type: 'button', onclick, ...attributes }, text);

/** The element of index.html with this id. @type {(id: string) => HTMLElement} */
export function part(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`Cannot find #${id}: it is not in index.html`);
  return element;
}

let fading = 0;

/** Says something in the status line; `unseen` only aloud. @type {(text: string, unseen?: boolean) => void} */
export function say(text, unseen = false) {
  clearTimeout(fading);
  const status = part('status');
  status.className = unseen ? 'unseen' : '';
  status.textContent = text;
  fading = window.setTimeout(() => (status.textContent = ''), 8_000);
}

/** What a failure is to a person. One that the server did not answer is this page's fault. @param {unknown} error */
export function explain(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return 'Something in this page went wrong. Load it again.';
}

/** Does something that may fail, and says so. @param {() => Promise<void>} work */
export const attempt = (work) => work().catch((error) => say(explain(error)));

/**
 * Asks in a dialog, and gives the value of the choice. The first choice has the focus; Escape is the answer `''`.
 * @type {(heading: string, body: Node[], choices: [value: string, text: string, kind?: string][]) => Promise<string>}
 */
export function ask(heading, body, choices) {
  const buttons = choices.map(([value, text, kind]) => h('button', { value, class: kind }, text));
  const form = h('form', { method: 'dialog' }, h('h2', { id: 'question' }, heading), ...body,
    h('div', { class: 'actions' }, ...buttons));
  const dialog = h('dialog', { 'aria-labelledby': 'question' }, form);
  document.body.append(dialog);
  dialog.showModal();
  buttons[0]?.focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** @type {WeakMap<HTMLElement, AbortController>} */ const running = new WeakMap();

/**
 * Fills `region` with what `work` makes. Until then it is busy and keeps what it shows; where `work` fails, it says so
 * and offers to try again. A later call overtakes an earlier one. The focus stays on the element with the same id.
 * @param {HTMLElement} region @param {(signal: AbortSignal) => Promise<readonly Node[]>} work
 * @param {() => void} [then] done each time that it has been filled
 */
export async function fill(region, work, then) {
  running.get(region)?.abort();
  const controller = new AbortController();
  running.set(region, controller);
  region.ariaBusy = 'true';
  if (region.childElementCount === 0) region.append(h('p', { class: 'hint' }, 'Loading…'));
  const nodes = await work(controller.signal).catch((error) =>
    controller.signal.aborted ? [] : [failure(error, () => fill(region, work, then))]);
  if (controller.signal.aborted) return;
  const focused = region.contains(document.activeElement) ? document.activeElement?.id : undefined;
  region.replaceChildren(...nodes);
  region.ariaBusy = 'false';
  if (focused !== undefined) focus(region, focused);
  then?.();
}

/** Focuses the element with this id, or else the region. @param {HTMLElement} region @param {string} id */
export function focus(region, id) {
  document.getElementById(id)?.focus();
  if (document.activeElement?.id !== id) region.focus();
}

/** @param {unknown} error @param {() => void} retry */
function failure(error, retry) {
  const node = h('div', { class: 'notice', role: 'alert' }, h('p', {}, explain(error)), button('Try again', retry));
  window.addEventListener('online', () => node.isConnected && retry(), { once: true });
  return node;
}

/**
 * Shows another view, or the same with other parameters. `state` is kept with the entry in the browser's history.
 * @type {(view: string, parameters: URLSearchParams, state?: object, replace?: boolean) => void}
 */
export function go(view, parameters, state = {}, replace = false) {
  const hash = parameters.size === 0 ? `#${view}` : `#${view}?${parameters}`;
  history[replace ? 'replaceState' : 'pushState'](state, '', hash);
  window.dispatchEvent(new PopStateEvent('popstate', { state }));
}

/** The page speaks English, so its times and numbers do: as the reader's own kind of English writes them. */
const locale = navigator.languages.find((language) => /^en\b/u.test(language)) ?? 'en';
const instant = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
const distance = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });

/** A time as its distance from now, with the exact one as its title. @param {string} iso */
export function when(iso) {
  const minutes = (Date.parse(iso) - Date.now()) / 60_000;
  const size = Math.abs(minutes);
  const text = size < 90 ? distance.format(Math.round(minutes), 'minute')
    : size < 36 * 60 ? distance.format(Math.round(minutes / 60), 'hour')
      : distance.format(Math.round(minutes / 1_440), 'day');
  return h('time', { datetime: iso, title: instant.format(new Date(iso)) }, text);
}

/** A number with at least so many decimals. @type {(value: number, decimals?: number) => string} */
export const number = (value, decimals = 0) =>
  value.toLocaleString(locale, { minimumFractionDigits: decimals, maximumFractionDigits: 20 });

/** The decimals that let these numbers stand point below point. @param {readonly (number | string)[]} values */
export const decimalsOf = (values) =>
  Math.max(0, ...values.map((value) => String(value).split('.')[1]?.length ?? 0).filter((places) => places <= 4));
