// @ts-check
/** The feed of changes by others, received while this tab is seen. */
import { collectionNow, list, loadList, showChange } from './records.js';
import { draw, state } from './state.js';

let last = '';
/** Returns the module of the record form, which a first list does without. */
let form = () => /** @type {typeof import('./record.js') | undefined} */ (undefined);
/** @type {EventSource | undefined} */ let source;

/**
 * Follows the changes from where it left off, if someone is signed in. A browser has few connections: a hidden tab
 * uses none.
 */
export function follow(formOf = form) {
  form = formOf;
  source?.close();
  if (document.hidden || !state.me) return;
  source = new EventSource(`changes${last && `?since=${last}`}`);
  for (const kind of ['created', 'replaced', 'removed']) source.addEventListener(kind, receive);
  source.addEventListener('reset', () => loadList(true));
  // Where the server has ended the feed, the browser does not ask again by itself.
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
