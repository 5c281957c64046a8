// @ts-check
/** Receives changes by others while this tab is visible. */

/**
 * @import { Change } from '../types.js'
 * @typedef {{ path: string, isOn: () => boolean, receive: (change: Change) => void, reset: () => void }} Listener
 */

const retryMs = 5000;

let last = '';
/** @type {EventSource | undefined} */ let source;

/**
 * Follows the changes since the last one received. Browsers limit connections, so a hidden tab does
 * not use any.
 * @param {Listener} listener
 */
export function follow(listener) {
  open(listener);
  document.addEventListener('visibilitychange', () => open(listener));
}

/** @param {Listener} listener */
function open(listener) {
  const { path, isOn, receive, reset } = listener;
  source?.close();
  if (document.hidden || !isOn()) return;
  source = new EventSource(`${path}${last && `?since=${last}`}`);
  for (const type of /** @type {const} */ (['created', 'replaced', 'removed']))
    source.addEventListener(type, ({ data, lastEventId }) => {
      last = lastEventId;
      const change = JSON.parse(data);
      // A single resource has no id in the feed.
      receive({ ...change, id: change.id ?? 'value', type });
    });
  source.addEventListener('reset', reset);
  // If the server refuses the feed, the browser does not reconnect by itself.
  source.onerror = () =>
    source?.readyState === EventSource.CLOSED && window.setTimeout(() => open(listener), retryMs);
}
