// @ts-check
/** Receives the feed of changes by others while this tab is visible. */
import { collectionNow, list, loadList, showChange } from './records.js';
import { draw, state } from './state.js';

let last = '';
/** Returns the module of the record form, once it is loaded. */
let form = () => /** @type {typeof import('./record.js') | undefined} */ (undefined);
/** @type {EventSource | undefined} */ let source;

/**
 * Follows the changes since the last one received, if someone is signed in. A browser has few connections, so a hidden
 * tab uses none.
 */
export function follow(formOf = form) {
  form = formOf;
  source?.close();
  if (document.hidden || !state.me) return;
  source = new EventSource(`changes${last && `?since=${last}`}`);
  for (const kind of ['created', 'replaced', 'removed']) source.addEventListener(kind, receive);
  source.addEventListener('reset', () => loadList(true));
  // After the server refuses the feed, the browser does not reconnect by itself.
  source.onerror = () => source?.readyState === EventSource.CLOSED && window.setTimeout(() => follow(), 5000);
}
document.addEventListener('visibilitychange', () => follow());

/** @param {MessageEvent} event */
async function receive({ type, data, lastEventId }) {
  last = lastEventId;
  const { collection, id, record } = JSON.parse(data);
  if (collection !== collectionNow()?.name) return;
  const isListed = list.rows.some((row) => row.id === id);
  if (type === 'replaced') showChange(record);
  else if (isListed === (type === 'removed')) list.changes += 1;
  const draft = form()?.draft;
  if (draft?.id !== `${id}` || draft.isSaving) return draw();
  if (JSON.stringify(draft.base?.data) !== JSON.stringify(record)) await form()?.loadDraft(draft);
  draw();
}
