// @ts-check
/** Removes records after a delay in which the person can undo it. */
import { Problem, call } from './api.js';
import { list, loadList, select } from './records.js';
import { count, explain, say } from './state.js';

/** @import { Collection, Row } from './types.js' */

const undoSeconds = 10;

/** Removes records after the delay. @type {(collection: Collection, rows: readonly Row[]) => Promise<void>} */
export async function removeSoon(collection, rows) {
  const { name, one } = collection;
  const what = count(rows, collection);
  list.leaving = [...list.leaving, ...rows];
  select(rows, false);
  const isUndone = await new Promise((resolve) => {
    say(`Removing ${what}…`, () => resolve(true), undoSeconds);
    window.setTimeout(() => resolve(false), undoSeconds * 1000);
  });
  /** @type {string[]} */ const kept = [];
  for (const row of isUndone ? [] : rows) {
    await remove(`${name}/${row.id}`, row).catch((error) => kept.push(`${one} ${row.id}: ${explain(error)}`));
  }
  list.leaving = list.leaving.filter((row) => !rows.includes(row));
  if (kept.length > 0) say(`Not removed: ${kept.join(' ')}`, undefined, 60);
  else say(isUndone ? 'Nothing was removed.' : `Removed ${what}.`);
  await loadList(true);
}

/** Removes a record if it is unchanged since it was shown. @type {(path: string, row: Row) => Promise<void>} */
async function remove(path, row) {
  const { data, etag } = await call('GET', path);
  const isSame = JSON.stringify(data) === JSON.stringify(row);
  const { status } = isSame ? await call('DELETE', path, { fields: { 'If-Match': etag } }) : { status: 412 };
  if (status === 412) throw new Problem('Someone else has changed it. Check it, then remove it again.');
}
