// @ts-check
/**
 * Parts that the views share. A value is shown by its kind: a choice as a pill, an address as a
 * link, and a reference by its record's name, which is read once it is shown. The rest are cards of
 * lines and tables.
 */
import {
  countDigits,
  inShort,
  showAge,
  showFigure,
  showTime,
  toElement,
  toShow,
} from '../api/model.js';
import { bdi, h } from '../lib/dom.js';
import { findCollection, say } from '../state/me.js';
import { findName } from '../state/names.js';
import { pageAddress, route } from '../state/route.js';

/** @import { Child, Collection, Description, Field, Row } from '../types.js' */

/** Shows how long ago a time is, with the time itself on hover. @param {string} iso */
export const age = (iso) => h('time', { datetime: iso, title: showTime(iso) }, showAge(iso));

/** The colors of page.css in order, by their names in declarations. */
const colors = ['teal', 'blue', 'orange', 'pink', 'purple', 'green', 'red', 'yellow'];
const hues = colors.length;

/** @type {readonly (readonly [word: RegExp, color: string])[]} */
const meanings = [
  [/^(?:cancel|fail|reject|refus|block|error|overdue|lost|spam|critical|urgent|expired)/iu, 'red'],
  [/^(?:paid|done|complet|deliver|active|approv|success|accept|publish|resolved|open)/iu, 'green'],
  [/^(?:pending|wait|hold|draft|review|partial|warn|medium|unpaid)/iu, 'yellow'],
  [/^(?:new|progress|running|processing|in[ _-])/iu, 'blue'],
  [/^(?:sent|ship)/iu, 'teal'],
  [/^(?:return|refund|high)/iu, 'orange'],
  [/^(?:archiv|closed|inactive|none|low|off)/iu, ''],
];

/**
 * The class that colors a choice: as declared, else by its meaning, else by its position.
 * @type {(field: Field, text: string) => string}
 */
function chooseHue({ declared }, text) {
  const meant = meanings.find(([word]) => word.test(text))?.[1];
  const color = declared.colors?.[text] ?? meant;
  const place =
    color === undefined ? (declared.values?.indexOf(text) ?? 0) % hues : colors.indexOf(color);
  return place < 0 ? '' : ` hue hue${place}`;
}

/** Draws a person's initials, which are not read aloud. @param {string} name */
export function initials(name) {
  const [first, ...others] = name.match(/(?<!\S)\S/gu) ?? [];
  const signs = [first, others.at(-1)].join('').toUpperCase();
  const hue = [...name].reduce((sum, sign) => sum + (sign.codePointAt(0) ?? 0), 0) % hues;
  return h(`span.initials hue hue${hue}`, { 'data-initials': signs });
}

/**
 * Renders the name of a record, with initials if its collection has a field for e-mail.
 * @type {(collection: Collection | undefined, name: string) => Child[]}
 */
export const called = (collection, name) => [
  !!collection?.fields.some(({ kind, shown }) => shown && kind === 'email') && initials(name),
  bdi(name),
];

/** @param {Event} event */
const replaceBroken = ({ target }) => target instanceof Element && target.replaceWith('–');

/** @type {(field: Field, value: unknown) => Child} */
export function show(field, value) {
  const { kind } = field;
  const text = toShow(field, value);
  if (value === undefined || value === null) return h('span.quiet', text);
  if (kind === 'json' && typeof value === 'object') return h('code', text);
  const target = field.declared.to;
  if (target) {
    const href = pageAddress(target, value);
    return h('a', { href }, called(findCollection(target), findName(target, value)));
  }
  if (Array.isArray(value)) {
    const element = toElement(field);
    return h(
      'span.row tight',
      value.map((each) => h('span.pill', show(element, each))),
    );
  }
  if (kind === 'choice') return h(`span.pill${chooseHue(field, text)}`, text);
  if (kind === 'time') return h('time', { datetime: `${value}`, title: `${value}` }, text);
  if (kind === 'email') {
    // An address must not add recipients or a text (RFC 6068 §2).
    const href = `mailto:${text.replaceAll(/[%?&#]/gu, encodeURIComponent)}`;
    return h('a', { href }, bdi(text));
  }
  const isAddress = (kind === 'text' || kind === 'url') && /^https?:\/\/\S+$/u.test(text);
  if (isAddress && field.declared.format === 'image')
    return h('img', { src: text, alt: field.label, loading: 'lazy', onerror: replaceBroken });
  if (isAddress) return h('a', { href: text, target: '_blank', rel: 'noopener' }, bdi(text));
  return bdi(text);
}

/**
 * @type {(fields: readonly Field[], rows: readonly Row[]) => Map<string, number>} each column,
 *   with its decimals if it has numbers
 */
export const alignColumns = (fields, rows) =>
  new Map(
    fields.map(({ name, kind }) => [
      name,
      kind === 'number' ? countDigits(rows.map((row) => row[name])) : 0,
    ]),
  );

/**
 * Renders a value in a column: numbers with equally many decimals, objects in short.
 * @type {(field: Field, value: unknown, digits: Map<string, number>) => Child}
 */
export function showAligned(field, value, digits) {
  const { kind, name, declared } = field;
  if (kind === 'number' && typeof value === 'number' && !declared.format)
    return showFigure(value, digits.get(name) ?? 0);
  const short = kind === 'json' && inShort(value);
  return short ? bdi(short) : show(field, value);
}

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
  // Over plain HTTP, browsers have no clipboard.
  if (!window.isSecureContext) return say('Copying needs HTTPS. Select the text and copy it.');
  await navigator.clipboard.writeText(text);
  return say('Copied.');
}
