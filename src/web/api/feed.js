// @ts-check
/** Receives changes by others while this tab is visible. */

/** @import { Change } from '../types.js' */

const retryMs = 5000;

let last = '';
/** @type {EventSource | undefined} */ let source;
/** Opens the feed; `undefined` if nobody follows it. @type {(() => void) | undefined} */ let open;

/**
 * Follows the changes since the last one received. Browsers limit connections, so a hidden tab does not use any.
 * @type {(path: string, receive: (change: Change) => void, readAgain: () => void) => void}
 */
export function follow(path, receive, readAgain) {
  open = () => {
    source?.close();
    if (document.hidden) return;
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
      source?.readyState === EventSource.CLOSED && window.setTimeout(() => open?.(), retryMs);
  };
  open();
}

/** Ends the feed, and forgets it. */
export function reset() {
  source?.close();
  open = source = undefined;
  last = '';
}

document.addEventListener('visibilitychange', () => open?.());
