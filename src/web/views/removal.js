// @ts-check
/** Changes and removes records of a list; what is removed can be undone for some seconds. */
import { Problem, call } from '../api/call.js';
import { set } from '../lib/dom.js';
import { titleOf } from '../api/model.js';
import { loadList, select, showChanges } from './list.js';
import { report } from './refused.js';
import { count, draw, explain, page, say, state } from '../state/state.js';

/** @import { Collection, Row } from '../types.js' */

const undoSeconds = 10;
const requestsAtOnce = 8;

/**
 * Removes records after the delay.
 * @type {(collection: Collection, rows: readonly Row[], etag?: string) => Promise<void>} `etag` of a single one
 */
export async function removeSoon(collection, rows, etag) {
  const what = count(rows, collection);
  const ticking = window.setInterval(draw, 1000);
  select(collection.name, rows, false);
  const isUndone = await new Promise((resolve) => {
    const until = performance.now() + undoSeconds * 1000;
    const removal = {
      collection,
      rows,
      text: `Removing ${what}`,
      until,
      undo: () => resolve(true),
    };
    state.removals = [removal, ...state.removals];
    window.setTimeout(() => resolve(false), undoSeconds * 1000);
    draw();
  });
  clearInterval(ticking);
  if (isUndone) say(`Kept ${what}.`);
  else await removeNow(collection, rows, what, etag);
  state.removals = state.removals.filter((each) => each.rows !== rows);
  draw();
  if (!isUndone && state.route.view === collection.name) await loadList(true);
}

/** @type {(collection: Collection, rows: readonly Row[], what: string, etag?: string) => Promise<void>} */
async function removeNow(collection, rows, what, etag) {
  const { one } = collection;
  const waiting = rows.values();
  /** @type {{ what: string, why: string }[]} */ const kept = [];
  const work = async () => {
    for (const row of waiting) {
      await sendIfUnchanged('DELETE', collection, row, {}, etag).catch((error) =>
        kept.push({ what: `${one} ${titleOf(collection, row)}`, why: explain(error) }),
      );
    }
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, work));
  const news = `Removed ${rows.length - kept.length} of ${what}.`;
  say(kept.length > 0 ? news : `Removed ${what}.`);
  if (kept.length === 0) return;
  set('refused-save', { hidden: true });
  void report(news, kept);
}

/**
 * Changes or removes a record if it is unchanged since it was shown. A list has no entity tags of its records, so it is
 * read for its tag where that is not known.
 * @type {(method: string, of: Collection, row: Row, options: { body?: object }, etag?: string) =>
 *   ReturnType<typeof call>}
 */
export async function sendIfUnchanged(method, { name }, row, options, etag) {
  const path = `${name}/${encodeURIComponent(row.id)}`;
  const { data: record, ...read } = etag ? { data: row, etag } : await call('GET', path);
  if (JSON.stringify(record) === JSON.stringify(row)) {
    const answer = await call(method, path, { ...options, fields: { 'If-Match': read.etag } });
    if (answer.status !== 412) return answer;
  } else showChanges(name, new Map([[row.id, { record }]]));
  throw new Problem('Someone else has changed it. Check it, then try again.');
}

/** Turns a truth of a record around. @type {(of: Collection, row: Row, name: string) => Promise<void>} */
export async function flip(collection, row, name) {
  const body = { [name]: !row[name] };
  const change = () => sendIfUnchanged('PATCH', collection, row, { body });
  const { data: record } = await page.store(collection, row.id, change);
  showChanges(collection.name, new Map([[row.id, { record }]]));
}
