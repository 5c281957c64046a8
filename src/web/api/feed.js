// @ts-check
/**
 * Receives the feed of changes by others while this tab is visible. However many arrive, they are
 * drawn once a frame.
 */
import { list, loadList, showChanges } from '../views/list.js';
import { draw, inNextFrame, page, state } from '../state/state.js';

/** @import { Change } from '../types.js' */

const [togetherMs, activitiesMax, lightMs, lightsMax] = [10_000, 8, 1500, 5];

let last = '';
/** Number of lines that the activity has had. */ let noted = 0;
/** @type {EventSource | undefined} */ let source;
/** Changes that wait for the next frame. @type {Change[]} */ let arrived = [];

/**
 * Follows the changes since the last one received, if someone is signed in. A browser has few connections, so a hidden
 * tab uses none.
 */
export function follow() {
  source?.close();
  if (document.hidden || !state.me) return;
  source = new EventSource(`changes${last && `?since=${last}`}`);
  for (const kind of ['created', 'replaced', 'removed']) source.addEventListener(kind, receive);
  source.addEventListener('reset', () => loadList(true));
  // After the server refuses the feed, the browser does not reconnect by itself.
  source.onerror = () =>
    source?.readyState === EventSource.CLOSED && window.setTimeout(follow, 5000);
}
document.addEventListener('visibilitychange', follow);

/** @param {MessageEvent} event */
function receive({ type, data, lastEventId }) {
  last = lastEventId;
  if (arrived.length === 0) inNextFrame(apply);
  const change = JSON.parse(data);
  // A single resource has no id in the feed.
  arrived.push({ ...change, id: change.id ?? 'value', type });
}

/** Applies the changes that have arrived since the last frame. */
function apply() {
  const changes = arrived;
  arrived = [];
  changes.forEach(note);
  const { view } = state.route;
  const latest = new Map(
    changes.filter(({ collection }) => collection === view).map((each) => [each.id, each]),
  );
  showChanges(view, latest);
  const ids = new Set(list.rows.map(({ id }) => id));
  for (const { type, id } of latest.values()) {
    if (type === 'replaced') {
      if (latest.size <= lightsMax) light(id);
    } else if (ids.has(id) === (type === 'removed')) list.changes += 1;
  }
  page.notice(view, latest);
  draw();
}

const still = matchMedia('(prefers-reduced-motion: reduce)');

/** Lights the row of a record that has changed: among many it would say nothing. @param {number} id */
function light(id) {
  const row = !still.matches && document.getElementById(`open-${id}`)?.closest('tr');
  if (row) row.animate({ background: ['var(--wash)', 'var(--surface)'] }, lightMs);
}

/** Adds a change to the activity that the overview shows. @param {Change} change */
function note(change) {
  const [latest, ...others] = state.activity;
  const at = Date.now();
  const isSame = latest?.type === change.type && latest.collection === change.collection;
  if (latest && isSame && at - latest.at < togetherMs) {
    state.activity = [{ ...latest, ...change, count: latest.count + 1 }, ...others];
  } else {
    const activity = { ...change, key: (noted += 1), count: 1, at };
    state.activity = [activity, ...state.activity].slice(0, activitiesMax);
  }
}
