// @ts-check
/** Changes records outside of a form, with undo. */
import { call, Problem } from '../api/call.js';
import { own } from '../api/model.js';
import { store } from './draft.js';
import { showChanges } from './list.js';
import { count } from './me.js';
import { toTitle } from './names.js';
import { explain, say } from './news.js';
import { showRelated } from './related.js';

/** @import { Collection, Row } from '../types.js' */

const requestsAtOnce = 8;

/**
 * Changes or removes a record if it is unchanged since it was shown. Lists do not contain entity
 * tags, so an unknown one is read first.
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

/**
 * Does the same with many records, some at once, and returns those that were refused.
 * @type {(of: Collection, rows: readonly Row[], work: (row: Row) => Promise<unknown>) => Promise<Refusal[]>}
 * @typedef {{ what: string, why: string }} Refusal
 */
export async function withEach(collection, rows, work) {
  /** @type {Refusal[]} */ const refusals = [];
  const waiting = rows.values();
  const next = async () => {
    for (const row of waiting)
      await work(row).catch((error) =>
        refusals.push({
          what: `${collection.one} ${toTitle(collection, row)}`,
          why: explain(error),
        }),
      );
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, next));
  return refusals;
}

/**
 * Sets a field of records to the `value` of each, and offers to undo it.
 * @type {(of: Collection, rows: readonly Row[], name: string, value: (row: Row) => unknown) => Promise<Refusal[]>}
 */
export async function setField(collection, rows, name, value) {
  /** @type {Map<unknown, unknown>} */ const before = new Map();
  /** @type {Row[]} */ const after = [];
  const refusals = await withEach(collection, rows, async (row) => {
    const body = { [name]: value(row) ?? null };
    const change = () => sendIfUnchanged('PATCH', collection, row, { body });
    const { data: record } = await store(collection, row.id, change);
    before.set(row.id, own(row, name));
    after.push(record);
    const changes = new Map([[row.id, { record }]]);
    showChanges(collection.name, changes);
    showRelated(collection.name, changes);
  });
  const [first] = after;
  const undo = () => setField(collection, after, name, ({ id }) => before.get(id));
  if (first)
    say(
      after.length > 1
        ? `Changed ${count(after, collection)}.`
        : `Saved ${toTitle(collection, first)}.`,
      undo,
    );
  return refusals;
}
