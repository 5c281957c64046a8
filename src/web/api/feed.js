// @ts-check
/** Receives changes by others while this tab is visible. */

/**
 * @import { Change } from '../types.js'
 * @typedef {{ path: string, receive: (change: Change) => void, reset: () => void }} Listener
 */

const retryMs = 5000;

let last = '';
/** @type {EventSource | undefined} */ let source;
/** @type {Listener | undefined} */ let listener;

/** @param {Listener} next */
export function follow(next) {
  listener = next;
  open();
}

export function reset() {
  source?.close();
  listener = source = undefined;
  last = '';
}

/** Opens the feed. Browsers limit connections, so a hidden tab does not use any. */
function open() {
  source?.close();
  if (document.hidden || !listener) return;
  const { path, receive, reset: readAgain } = listener;
  source = new EventSource(`${path}${last && `?since=${last}`}`);
  for (const type of /** @type {const} */ (['created', 'replaced', 'removed']))
    source.addEventListener(type, ({ data, lastEventId }) => {
      last = lastEventId;
      const change = JSON.parse(data);
      // A single resource has no id in the feed.
      receive({ ...change, id: change.id ?? 'value', type });
    });
  source.addEventListener('reset', readAgain);
  // If the server refuses the feed, the browser does not reconnect by itself.
  source.onerror = () =>
    source?.readyState === EventSource.CLOSED && window.setTimeout(open, retryMs);
}

document.addEventListener('visibilitychange', open);
