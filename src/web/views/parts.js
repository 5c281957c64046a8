// @ts-check
/** Parts shared by views: cards of lines, tables of texts, names with values. */
import { h } from '../lib/dom.js';
import { say } from '../state/news.js';
import { route } from '../state/route.js';

/** @import { Child, Description } from '../types.js' */

/**
 * Describes one of the page's own views, with `more` next to its title.
 * @type {(title: string, more: readonly Child[], ...children: (Child | readonly Child[])[]) => Description}
 */
export const ownView = (title, more, ...children) =>
  h(
    'section.grow scroll',
    { id: 'home', key: `/${route.id}` },
    h('div.stack', h('div.row spread', h('h1', { tabindex: -1 }, title), more), ...children),
  );

/** @type {(name: string, value: Child) => Description} */
export const fact = (name, value) => h('div', { key: name }, h('dt', name), h('dd', value || '–'));

/** @type {(key: string | number, ...children: Child[]) => Description} */
export const line = (key, ...children) => h('li.row spread', { key }, children);

/**
 * Describes a card of lines with a heading. Without lines, the card says so.
 * @type {(heading: Child | readonly Child[], lines: readonly Child[], none?: Child) => Description}
 */
export const section = (heading, lines, none) =>
  h(
    'section.stack tight',
    h('h2.row spread', heading),
    h('ul.rows card', lines.length > 0 ? lines : line('', none)),
  );

/**
 * Describes a table of texts, whose rows begin with their head.
 * @type {(heads: readonly string[], rows: readonly (readonly Child[])[]) => Description}
 */
export const table = (heads, rows) =>
  h(
    'table',
    h(
      'thead',
      h(
        'tr',
        heads.map((head) => h('th', { scope: 'col' }, head)),
      ),
    ),
    h(
      'tbody',
      rows.map(([head, ...cells]) =>
        h(
          'tr',
          h('th', { scope: 'row' }, head),
          cells.map((each) => h('td', each)),
        ),
      ),
    ),
  );

/** @param {string} text */
export async function copy(text) {
  await navigator.clipboard.writeText(text);
  say('Copied.');
}
