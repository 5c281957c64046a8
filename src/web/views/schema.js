// @ts-check
/**
 * The picture of the collections: a card for each, and a line for each reference, styled by its
 * `onDelete`.
 */
import { readOnDelete, findTarget } from '../api/model.js';
import { h } from '../lib/dom.js';
import { findCollection, state } from '../state/me.js';
import { address } from '../state/route.js';
import { ownView } from './parts.js';

/** @import { Collection, Field } from '../types.js' */

const [width, gap, row] = [250, 90, 22];
const nowhere = { x: 0, y: 0 };

/**
 * What only a change takes, such as the current password, is no part of a record.
 * @param {Collection} of
 */
const listStored = (of) => of.fields.filter(({ shown, created }) => shown || created);

/**
 * Places the cards: what refers to another stands behind it, and the rest go to the shortest
 * column.
 */
function placed() {
  const all = state.collections.flatMap((of) =>
    listStored(of).flatMap((field, index) => {
      const to = findCollection(findTarget(field) ?? '');
      return to ? [{ of, index, to, onDelete: readOnDelete(field) }] : [];
    }),
  );
  /** @type {Map<Collection, number>} */ const columns = new Map();
  for (const { of, to } of all) columns.set(of, 0).set(to, 0);
  // A cycle ends after as many rounds as there are collections.
  for (let round = 1; round < columns.size; round += 1)
    for (const { of, to } of all)
      if (of !== to)
        columns.set(
          of,
          Math.min(Math.max(columns.get(of) ?? 0, (columns.get(to) ?? 0) + 1), columns.size),
        );
  const heights = Array.from({ length: Math.max(2, ...columns.values()) + 1 }, () => 8);
  /** @type {(of: Collection) => [Collection, { x: number, y: number, height: number }]} */
  const place = (of) => {
    const column = columns.get(of) ?? heights.indexOf(Math.min(...heights));
    const y = heights[column] ?? 8;
    const height = (listStored(of).length + 1.7) * row;
    heights[column] = y + height + row;
    return [of, { x: column * (width + gap) + gap / 2, y, height }];
  };
  const sorted = [...new Set([...columns.keys(), ...state.collections])];
  const places = new Map(sorted.map(place));
  return { all, places, size: heights.length * (width + gap), bottom: Math.max(...heights) };
}

/** Says what a field holds, in the words of a declaration. @param {Field} field */
function describeKind(field) {
  const { kind = 'any', of, unique } = field.declared;
  const target = findTarget(field);
  const held = target ? `→ ${target}` : (of?.kind ?? kind);
  return [of ? `${held} list` : held, unique && 'unique', target && readOnDelete(field)]
    .filter(Boolean)
    .join(' · ');
}

export function view() {
  const { all, places, size, bottom } = placed();
  const lines = all.map(({ of, to, index, onDelete }) => {
    const from = places.get(of) ?? nowhere;
    const target = places.get(to) ?? nowhere;
    const [start, end] = [from.y + (index + 2) * row, target.y + row * 0.75];
    const [right, bend] = of === to ? [from.x, -gap / 2] : [target.x + width, gap / 2];
    const d = `M${from.x} ${start}C${from.x - gap / 2} ${start} ${right + bend} ${end} ${right} ${end}`;
    return h('path', { d, class: onDelete });
  });
  const cards = [...places].map(([of, { x, y, height }]) => {
    const texts = listStored(of).flatMap((field, index) => {
      const at = y + (index + 2.2) * row;
      return [
        h('text', { x: x + 12, y: at }, field.isRequired ? `${field.name} *` : field.name),
        h('text.kind', { x: x + width - 12, y: at }, describeKind(field)),
      ];
    });
    return h(
      'a',
      { href: address('', `api/${of.name}`) },
      h('rect', { x, y, width, height, rx: 8 }),
      h('text.title', { x: x + 12, y: y + row }, of.title),
      texts,
    );
  });
  return ownView(
    'Schema',
    [],
    h(
      'p.quiet',
      '* is required. Removing what a field refers to: ── is refused, ',
      h('span.error', '──'),
      ' removes this record too, ┄┄ clears the field.',
    ),
    h(
      'div.scroll',
      h(
        'svg.schema',
        {
          viewBox: `0 0 ${size} ${bottom}`,
          width: size,
          height: bottom,
          role: 'group',
          'aria-label': 'Collections',
        },
        lines,
        cards,
      ),
    ),
  );
}
