// @ts-check
/** Shows what refers to the record that is open: how many records, the newest of them, and a way to make another. */
import { showNumber } from '../api/model.js';
import { bdi, h } from '../lib/dom.js';
import { allows } from '../state/me.js';
import { titleOf } from '../state/names.js';
import { relatedTo } from '../state/related.js';
import { address, newId } from '../state/route.js';
import { line, section } from './parts.js';

/** @import { Collection, Description } from '../types.js' */

/** @type {(collection: Collection, id: string) => Description[]} */
export const relatedView = (collection, id) =>
  relatedTo(collection, id).map(({ from, field, query, total, rows }) => {
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
          h('small', `by ${field.label.toLowerCase()} · ${showNumber(total)}`),
        ),
        allows(from, 'create') && more,
      ],
      total > rows.length ? [...lines, line('all', all)] : lines,
      h('span.quiet', 'None'),
    );
  });
