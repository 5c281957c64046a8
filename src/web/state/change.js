// @ts-check
/** Changes records outside of a form, with undo. */
import { call, newKey, Problem } from '../api/call.js';
import { capitalized, own } from '../api/model.js';
import { store } from './draft.js';
import { showChange } from './list.js';
import { count, explain, say } from './me.js';
import { toTitle } from './names.js';

/** @import { Collection, Row } from '../types.js' */

const requestsAtOnce = 8;

/**
 * Changes or removes a record if it is unchanged since it was shown. Lists do not contain entity
 * tags, so they are read first.
 * @type {(method: string, of: Collection, row: Row, body?: object) => ReturnType<typeof call>}
 */
export async function sendIfUnchanged(method, { name }, row, body) {
  const path = `${name}/${encodeURIComponent(row.id)}`;
  const { data: record, etag } = await call('GET', path);
  if (JSON.stringify(record) === JSON.stringify(row)) {
    const answer = await call(method, path, { body, fields: { 'If-Match': etag } });
    if (answer.status !== 412) {
      // The answer to a removal is empty.
      if (answer.data) showChange(name, answer.data);
      return answer;
    }
  } else showChange(name, record);
  throw new Problem('Someone else has changed it. Check it, then try again.');
}

/** @typedef {{ what: string, why: string }} Refusal */

/** Names a record in a refusal. @param {Collection} collection */
export const rowNamer = (collection) => (/** @type {Row} */ row) =>
  `${collection.one} ${toTitle(collection, row)}`;

/**
 * Does the same with many things, some at once, and returns the refused ones.
 * @template T
 * @param {readonly T[]} all @param {(one: T) => string} name @param {(one: T) => Promise<unknown>} work
 */
export async function withEach(all, name, work) {
  /** @type {(Refusal & { of: T })[]} */ const refusals = [];
  const waiting = all.values();
  const next = async () => {
    for (const of of waiting)
      await work(of).catch((error) => refusals.push({ of, what: name(of), why: explain(error) }));
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, next));
  return refusals;
}

/**
 * Creates records, as many in one request as the server allows, and returns the refused ones.
 * @template {{ record?: object }} T
 * @param {Collection} collection @param {readonly T[]} all @param {(one: T) => string} name
 */
export async function createEach({ name: path, title, bulkMax }, all, name) {
  /** @type {(Refusal & { of: T })[]} */ const refusals = [];
  const isBulk = bulkMax > 1;
  /** @type {(readonly T[])[]} */ const parts = [];
  for (let at = 0; at < all.length; at += bulkMax) parts.push(all.slice(at, at + bulkMax));
  for (const [at, part] of parts.entries()) {
    const bodies = part.map(({ record }) => record);
    const request = {
      body: isBulk ? bodies : bodies[0],
      fields: { 'Idempotency-Key': newKey() },
    };
    say(`Creating ${title.toLowerCase()}…`);
    await call('POST', isBulk ? `${path}/batch` : path, request).catch((error) => {
      // Too long for one request, so the halves are sent next.
      const half = part.length >> 1;
      if (error.status === 413 && half > 0)
        return void parts.splice(at + 1, 0, part.slice(0, half), part.slice(half));
      const issues = error instanceof Problem && isBulk ? error.issues : [];
      const reasons = new Map(
        issues.map(({ pointer, detail }) => {
          const [, index, field = 'it'] = pointer.split('/');
          return [part[Number(index)], `${capitalized(field)} ${detail}.`];
        }),
      );
      // A refused record keeps the whole request from being carried out, so the others are sent again.
      const others = part.filter((of) => reasons.size > 0 && !reasons.has(of));
      if (others.length > 0) parts.push(others);
      for (const of of part)
        if (!others.includes(of))
          refusals.push({ of, what: name(of), why: reasons.get(of) ?? explain(error) });
    });
  }
  return refusals;
}

/**
 * Sets a field of records to the `value` of each, reports what was refused, and offers to undo it.
 * @type {(of: Collection, rows: readonly Row[], name: string, value: (row: Row) => unknown,
 *   report: (refusals: readonly Refusal[]) => unknown, isUndo?: boolean) => Promise<void>}
 */
export async function setField(collection, rows, name, value, report, isUndo = false) {
  /** @type {Map<unknown, unknown>} */ const before = new Map();
  /** @type {Row[]} */ const after = [];
  const refusals = await withEach(rows, rowNamer(collection), async (row) => {
    const body = { [name]: value(row) ?? null };
    const { data: record } = await store(collection, row.id, () =>
      sendIfUnchanged('PATCH', collection, row, body),
    );
    before.set(row.id, own(row, name));
    after.push(record);
  });
  const [first] = after;
  const undo = () => setField(collection, after, name, ({ id }) => before.get(id), report, true);
  const [done, what] =
    after.length > 1
      ? ['Changed', count(after, collection)]
      : ['Saved', first && toTitle(collection, first)];
  if (first) say(`${isUndo ? 'Restored' : done} ${what}.`, undo);
  await report(refusals);
}
