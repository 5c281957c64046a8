// @ts-check
/** Shows what refers to the record that is open: how many records, the newest of them, and a way to make another. */
import { bdi, h } from '../lib/dom.js';
import { showNumber, targetOf, titleOf } from '../api/model.js';
import { line, readNewest, section } from './parts.js';
import { address, allowed, allows, draw, newId, state } from '../state/state.js';

/** @import { Collection, Description, Row } from '../types.js' */

const newestMax = 3;

/**
 * @typedef {{ from: Collection, label: string, query: URLSearchParams, total: number, rows: readonly Row[] }} Referring
 */

/** `key` names the record that was read. @type {{ key: string, all: readonly Referring[] }} */
let known = { key: '', all: [] };

/** Reads what refers to a record. @type {(collection: Collection, id: string) => Promise<void>} */
export async function loadReferring({ name }, id) {
  const key = `${state.me?.id} ${name}/${id}`;
  if (known.key !== key) known = { key, all: [] };
  const all = await Promise.all(
    allowed('list')
      .flatMap((from) =>
        from.fields
          .filter((field) => field.shown && targetOf(field) === name)
          .map((field) => ({ from, field })),
      )
      .map(async ({ from, field }) => {
        const query = new URLSearchParams({
          [field.kind === 'list' ? `${field.name}:has` : field.name]: id,
        });
        const { total, data: rows } = await readNewest(from, newestMax, query);
        return { from, label: field.label, query, total, rows };
      }),
  );
  if (known.key === key) known = { key, all };
  draw();
}

/** @type {(collection: Collection, id: string) => Description[]} */
export const referringView = ({ name }, id) =>
  (known.key === `${state.me?.id} ${name}/${id}` ? known.all : []).map(
    ({ from, label, query, total, rows }) => {
      const lines = rows.map((row) =>
        line(row.id, h('a', { href: address(from.name, row.id) }, bdi(titleOf(from, row)))),
      );
      const all = h('a', { href: address(from.name, '', query) }, `All ${showNumber(total)}`);
      const more = h('a.quiet', { href: address(from.name, newId, query) }, `+ New ${from.one}`);
      return section(
        [
          h(
            'span',
            `${from.title} `,
            h('small', `by ${label.toLowerCase()} · ${showNumber(total)}`),
          ),
          allows(from, 'create') && more,
        ],
        total > rows.length ? [...lines, line('all', all)] : lines,
        h('span.quiet', 'None'),
      );
    },
  );
