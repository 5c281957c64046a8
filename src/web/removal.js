// @ts-check
/** Removes records after a delay in which the person can undo it. */
import { Problem, call } from './api.js';
import { set } from './dom.js';
import { loadList, select } from './records.js';
import { report } from './refused.js';
import { count, draw, explain, say, state } from './state.js';

/** @import { Collection, Row } from './types.js' */

const undoSeconds = 10;
const requestsAtOnce = 8;

/** Removes records after the delay. @type {(collection: Collection, rows: readonly Row[]) => Promise<void>} */
export async function removeSoon(collection, rows) {
  const what = count(rows, collection);
  const ticking = window.setInterval(draw, 1000);
  select(rows, false);
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
  else await removeNow(collection, rows, what);
  state.removals = state.removals.filter((each) => each.rows !== rows);
  draw();
  if (!isUndone && state.route.view === collection.name) await loadList(true);
}

/** @type {(collection: Collection, rows: readonly Row[], what: string) => Promise<void>} */
async function removeNow(collection, rows, what) {
  const { name, one, nameField } = collection;
  const waiting = rows.values();
  /** @type {{ what: string, why: string }[]} */ const kept = [];
  const work = async () => {
    for (const row of waiting) {
      await remove(`${name}/${encodeURIComponent(row.id)}`, row).catch((error) =>
        kept.push({ what: `${one} ${row[nameField]}`, why: explain(error) }),
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

/** Removes a record if it is unchanged since it was shown. @type {(path: string, row: Row) => Promise<void>} */
async function remove(path, row) {
  const { data, etag } = await call('GET', path);
  const isSame = JSON.stringify(data) === JSON.stringify(row);
  const { status } = isSame
    ? await call('DELETE', path, { fields: { 'If-Match': etag } })
    : { status: 412 };
  if (status === 412)
    throw new Problem('Someone else has changed it. Check it, then remove it again.');
}
