// @ts-check
/** Shows changes by others. */
import { follow } from '../api/feed.js';
import { draw } from '../lib/dom.js';
import { notice } from './draft.js';
import { list, loadList, showChange } from './list.js';
import { ownPath, state } from './me.js';
import { addToTotal } from './places.js';

/** @import { Change } from '../types.js' */

const [togetherMs, activitiesMax] = [10_000, 8];

let noted = 0;

/** Follows the feed if someone is signed in. */
export const followChanges = () => follow(ownPath('changes'), apply, () => loadList(true));

/** @param {Change} change */
function apply(change) {
  const { type, collection, id, record } = change;
  note(change);
  if (record) showChange(collection, record);
  const isShown = list.rows.some((row) => row.id === id);
  if (type !== 'replaced' && list.collection === collection && isShown === (type === 'removed'))
    list.changes += 1;
  notice(change);
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
