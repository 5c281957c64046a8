// @ts-check
/** The records that refer to the open one, and the next such record to add. */
import { findTarget } from '../api/model.js';
import { draw } from '../lib/dom.js';
import { allowed } from './me.js';
import { readPage } from './names.js';
import { route } from './route.js';

/**
 * @import { Collection, Field, Row, Texts } from '../types.js'
 * @typedef {{ from: Collection, collection: string, field: Field, query: URLSearchParams, total: number,
 *   rows: readonly Row[], texts: Texts, isTried: boolean }} Related `texts` are those of the next record that is added
 */

const [peekMax, pageMax] = [3, 50];

/** `key` names the record that was read. @type {{ key: string, all: readonly Related[] }} */
export let related = { key: '', all: [] };
export const reset = () => void (related = { key: '', all: [] });

/**
 * Returns the visible fields that refer to a collection, each with its own collection, if the user
 * may list it.
 * @param {string} name
 */
export const referencesTo = (name) =>
  allowed('list').flatMap((from) =>
    from.fields
      .filter((field) => field.shown && findTarget(field) === name)
      .map((field) => ({ from, field })),
  );

/**
 * @type {(collection: Collection, id: unknown) => string}
 */
const toKey = ({ name }, id) => `${name}/${id} ${route.isPage}`;

/**
 * @type {(collection: Collection, id: unknown) => Promise<void>}
 */
export async function loadRelated(collection, id) {
  const key = toKey(collection, id);
  if (related.key !== key) related = { key, all: [] };
  const all = await Promise.all(
    referencesTo(collection.name).map(async ({ from, field }, index) => {
      const query = new URLSearchParams({
        [field.kind === 'list' ? `${field.name}:has` : field.name]: `${id}`,
      });
      const page = {
        limit: route.isPage ? pageMax : peekMax,
        sort: from.newestFirst ?? (route.isPage ? undefined : '-id'),
      };
      const { total, data: rows } = await readPage(from, page, query);
      const { texts = {}, isTried = false } = related.all[index] ?? {};
      return { from, collection: from.name, field, query, total, rows, texts, isTried };
    }),
  );
  if (related.key === key) related = { key, all };
  draw();
}

/** @type {(of: Collection, id: unknown) => readonly Related[]} */
export const relatedTo = (collection, id) =>
  related.key === toKey(collection, id) ? related.all : [];
