// @ts-check
/** Removes records. Asks the server what refers to them, and allows undo for some seconds. */
import { newKey } from '../api/call.js';
import { readOnDelete, showNumber } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { draw, events, h, part } from '../lib/dom.js';
import { rowNamer, sendIfUnchanged, withEach } from '../state/change.js';
import { reloadRelated } from '../state/draft.js';
import { loadList, select } from '../state/list.js';
import { count, isLeaving, state, say } from '../state/me.js';
import { readPage } from '../state/names.js';
import { referencesTo } from '../state/related.js';
import { address, joinValues, route } from '../state/route.js';
import { report, tell } from './refused.js';

/** @import { Collection, Row } from '../types.js' */

const [undoSeconds, confirmMin, idsMax] = [10, 20, 100];

/**
 * Removes records after the delay, if that is allowed and the person has left their form.
 * @type {(collection: Collection, rows: readonly Row[], leave?: () => Promise<boolean>) => Promise<void>}
 */
export async function removeSoon(collection, rows, leave) {
  const [row] = rows;
  const what = count(rows, collection);
  const all = await consequences(collection, rows);
  const refusing = all.filter(({ onDelete }) => onDelete === 'refuse');
  const named = row && rows.length === 1 ? rowNamer(collection)(row) : what;
  const close = () => part('refused', HTMLDialogElement).close();
  const reasons = refusing.map(({ from, total, query }) => {
    const href = address(from.name, '', query);
    const link = h('a', { href, onclick: close }, count({ length: total }, from));
    const verb = total === 1 ? 'refers' : 'refer';
    return h('li', { key: from.name }, link, ` ${verb} to ${rows.length === 1 ? 'it' : 'them'}.`);
  });
  if (reasons.length > 0) return void (await tell(`Cannot remove ${named}`, reasons));
  const others = all
    .filter(({ onDelete }) => onDelete === 'remove')
    .map(({ from, total }) => count({ length: total }, from));
  const text = [what, ...others].join(' and ');
  if (rows.length >= confirmMin && !(await ask('remove', text))) return;
  if (leave && !(await leave())) return;
  // Someone who presses twice removes once, so that one undo keeps everything.
  const due = rows.filter((each) => !isLeaving(collection, each));
  if (due.length === 0) return;
  select(collection.name, due, false);
  // More can be removed meanwhile.
  void events.run(() => removeLater(collection, due, `Removing ${text}`));
}

/** @type {(collection: Collection, rows: readonly Row[], text: string) => Promise<void>} */
async function removeLater(collection, rows, text) {
  const isUndone = await new Promise((resolve) => {
    const undo = () => resolve(true);
    state.removals = [{ collection, rows, text, key: newKey(), undo }, ...state.removals];
    window.setTimeout(() => resolve(false), undoSeconds * 1000);
  });
  const what = count(rows, collection);
  if (isUndone) say(`Kept ${what}.`);
  else {
    const kept = await withEach(rows, rowNamer(collection), (row) =>
      sendIfUnchanged('DELETE', collection, row),
    );
    const news = `Removed ${showNumber(rows.length - kept.length)} of ${what}.`;
    say(kept.length > 0 ? news : `Removed ${what}.`);
    void report(news, kept);
  }
  state.removals = state.removals.filter((each) => each.rows !== rows);
  draw();
  if (isUndone) return;
  if (route.view === collection.name && !route.isPage) await loadList(true);
  await reloadRelated();
}

/**
 * Asks the server what refers to records, and how their removal affects it.
 * @type {(collection: Collection, rows: readonly Row[]) => Promise<Consequence[]>}
 * @typedef {{ from: Collection, onDelete: string, total: number, query: URLSearchParams }} Consequence
 */
async function consequences({ name }, rows) {
  const ids = rows.slice(0, idsMax).map(({ id }) => id);
  const all = await Promise.all(
    referencesTo(name).map(async ({ from, field }) => {
      const isList = field.kind === 'list';
      if (isList && ids.length > 1) return [];
      const query = new URLSearchParams(
        isList ? { [`${field.name}:has`]: `${ids[0]}` } : { [`${field.name}:in`]: joinValues(ids) },
      );
      const { total } = await readPage(from, { limit: 1 }, query);
      return total > 0 ? [{ from, onDelete: readOnDelete(field), total, query }] : [];
    }),
  );
  return all.flat();
}
