// @ts-check
/** Shows changes by others, at most once a frame. */
import { follow, reset as stopFeed } from '../api/feed.js';
import { draw, inNextFrame } from '../lib/dom.js';
import { notice } from './draft.js';
import { list, loadList, showChanges } from './list.js';
import { ownPath, state } from './me.js';
import { addToTotal } from './places.js';
import { showRelated } from './related.js';
import { route } from './route.js';

/** @import { Change } from '../types.js' */

const [togetherMs, activitiesMax] = [10_000, 8];

let noted = 0;
/** @type {Change[]} */ let arrived = [];

export function reset() {
  arrived = [];
  stopFeed();
}

/** Follows the feed if someone is signed in. */
export const followChanges = () =>
  follow(
    ownPath('changes'),
    (change) => {
      if (arrived.length === 0) inNextFrame(apply);
      arrived.push(change);
    },
    () => loadList(true),
  );

function apply() {
  const changes = arrived;
  arrived = [];
  changes.forEach(note);
  const { view } = route;
  const latest = new Map(
    changes.filter(({ collection }) => collection === view).map((each) => [each.id, each]),
  );
  showChanges(view, latest);
  const ids = new Set(list.rows.map(({ id }) => id));
  for (const { type, id } of latest.values())
    if (type !== 'replaced' && ids.has(id) === (type === 'removed')) list.changes += 1;
  notice(view, latest);
  for (const { collection, id, record } of changes)
    showRelated(collection, new Map([[id, { record }]]));
  draw();
}

/** @param {Change} change */
function note(change) {
  if (change.type !== 'replaced') addToTotal(change.collection, change.type === 'created' ? 1 : -1);
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
