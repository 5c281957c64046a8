// @ts-check
/**
 * The filters of a list: chips of field, operator and value that open for editing, and saved views,
 * which the browser keeps.
 */
import { findTarget, own, toShow } from '../api/model.js';
import { fromParameter, fromText, toText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, chip, draw, h, part, set } from '../lib/dom.js';
import { readFilters } from '../state/list.js';
import { state, storage, say } from '../state/me.js';
import { address, changed, go, joinValues, parameter, route, withQuery } from '../state/route.js';
import { control, readable } from './control.js';
import { show } from './parts.js';

/**
 * `names`: the parameters of a condition. Without a `filter`, the page does not know them.
 * @import { Child, Collection, Description, Field, Filter, Row } from '../types.js'
 * @typedef {{ filter?: Filter | undefined, names: readonly string[], values: readonly string[] }} Condition
 */

/**
 * The condition that is open, with the texts of its values.
 * @type {{ isValue: boolean, filter?: Filter | undefined, texts: string[],
 *   replaced: readonly string[], problem: string }}
 */
let editing = { isValue: false, texts: [], replaced: [], problem: '' };
const firstControl =
  '#filter :is(#filter-value :is(input, select, textarea, button), .menu button)';
const [popover, cellMenu] = [part('filter', HTMLElement), part('cell-menu', HTMLElement)];

/**
 * Opens a filter's operator and value, or else its field.
 * @type {(isValue?: boolean, filter?: Filter, values?: readonly string[]) => void}
 */
export function open(isValue = false, filter, values = []) {
  const texts =
    !filter || filter.value
      ? []
      : values.map((value) => toText(filter.field, fromParameter(filter.field, value)));
  editing = { isValue, filter, texts, replaced: filter?.names ?? [], problem: '' };
  draw(firstControl);
}

export function close() {
  popover.hidePopover();
  cellMenu.hidePopover();
  editing.texts = [];
}

/** @param {{ [parameter: string]: string }} parameters */
function leave(parameters) {
  close();
  return go(withQuery(parameters));
}

/** @param {unknown} value */
const toParameter = (value) => (Array.isArray(value) ? joinValues(value) : `${value}`);

/** @param {Collection} collection @returns {Condition[]} */
function readConditions({ filters }) {
  /** @type {Map<string, string>} */ const left = new Map();
  for (const [name, value] of readFilters())
    left.set(name, [left.get(name) ?? [], value].flat().join(', '));
  return [...left].flatMap(([first, only]) => {
    if (!left.has(first)) return [];
    const filter = filters.find(
      ({ names, value = only }) =>
        names.includes(first) && value === only && names.every((name) => left.has(name)),
    );
    const names = filter?.names ?? [first];
    const values = names.map((name) => left.get(name) ?? '');
    for (const name of names) left.delete(name);
    return { filter, names, values };
  });
}

/** Says the parts of a condition, with names for records. @param {Condition} condition */
function describe({ filter, names, values }) {
  if (!filter) return [names[0] === 'owner' ? 'Created by me' : `${names[0]} ${values[0]}`];
  const { field, operator, value } = filter;
  const shown = values.map((each) => {
    const read = fromParameter(field, each);
    return findTarget(field) ? readable(field, toText(field, read)) : toShow(field, read);
  });
  return [field.label, operator, value ? [] : shown.join(' and ')].flat();
}

/** @param {Collection} collection */
export function drawFilters(collection) {
  const conditions = readConditions(collection);
  const chips = conditions.map((condition, index) => {
    const { filter, names, values } = condition;
    const words = describe(condition);
    const remove = () => leave(Object.fromEntries(names.map((name) => [name, ''])));
    const content = words.map((text, at) =>
      filter
        ? button(bdi(text), () => open(at > 0, filter, values), {
            class: at === 1 ? 'plain quiet' : 'plain',
            popovertarget: 'filter',
            popovertargetaction: 'show',
          })
        : text,
    );
    return chip(`${index}`, `Remove the filter: ${words.join(' ')}`, remove, ...content);
  });
  const title = [parameter('q'), ...conditions.map((each) => describe(each).join(' '))];
  set('filter', drawEditor(collection));
  return drawViews(collection, chips, title.filter(Boolean).join(', '));
}

/** @type {(collection: Collection, chips: readonly Description[], title: string) => Child} */
function drawViews({ name }, chips, title) {
  const place = `views ${state.me?.id} ${name}`;
  /** @type {readonly [title: string, query: string][]} */
  const views = JSON.parse(storage[place] ?? '[]');
  const keep = (/** @type {typeof views} */ all) => void (storage[place] = JSON.stringify(all));
  const query = changed(route.query, { offset: '', limit: '' });
  query.sort();
  const here = `${query}`;
  const tab = (/** @type {string} */ words, /** @type {string} */ query) => {
    const href = address(name, '', new URLSearchParams(query));
    return h('a', { key: query, href, 'aria-current': query === here && 'page' }, words);
  };
  const saved = views.map(([words, query]) => {
    const forget = () => {
      keep(views.filter((each) => each[1] !== query));
      say(`Forgot the view ${words}.`, () => keep(views));
    };
    const link = tab(words, query);
    return query === here ? chip(query, `Forget the view: ${words}`, forget, link) : link;
  });
  const save = async () => {
    const input = part('view-name', HTMLInputElement);
    input.value = title;
    if (await ask('save-view')) keep([...views, [input.value, here]]);
  };
  const isNew = here && !views.some(([, query]) => query === here);
  return (
    (!!here || views.length > 0) &&
    h(
      'div.row pad',
      { key: 'filters' },
      views.length > 0 &&
        h(
          'nav.row',
          { id: 'tabs', key: 'tabs', 'aria-label': 'Saved views' },
          tab('All', ''),
          saved,
        ),
      h(
        'div.row',
        { id: 'chips', key: 'chips' },
        chips,
        isNew && button('Save this view', save, { key: 'save', class: 'plain quiet' }),
      ),
    )
  );
}

/**
 * A menu of fields; or the form of a value, with the other operators. A choice applies at once.
 * @param {Collection} collection
 */
function drawEditor({ filters, hasOwners }) {
  const { isValue, filter, texts, problem } = editing;
  const groups = Map.groupBy(filters, ({ field }) => field.name);
  const pick = (/** @type {string} */ words, /** @type {Filter} */ each) =>
    button(words, () => choose(each), { key: words, class: isValue && 'pill quiet' });
  if (!filter || !isValue)
    return h(
      'div.menu scroll',
      [...groups.values()].map(([each]) => each && pick(each.field.label, each)),
      hasOwners && button('Created by me', () => leave({ owner: 'me' }), { id: 'filter-mine' }),
    );
  const { field, names, operator, value } = filter;
  const choices = value ? [] : field.kind === 'boolean' ? ['true', 'false'] : field.declared.values;
  const row = (/** @type {string} */ each) => {
    const isChosen = each === texts[0];
    const take = () => ((texts[0] = each), apply());
    const look = { key: each, 'aria-pressed': `${isChosen}` };
    return button(h('span', show(field, each), isChosen && ' ✓'), take, look);
  };
  const others = (groups.get(field.name) ?? []).filter((each) => each !== filter);
  return h(
    'div.menu',
    { key: operator },
    h('p.quiet', { id: 'condition' }, `${field.label} ${operator}`),
    choices?.map(row) ??
      h(
        'div.stack',
        h(
          'div.stack tight',
          { id: 'filter-value' },
          names.map((name, at) =>
            control(field, texts[at] ?? '', (text) => (texts[at] = text), {
              'aria-label': names.length > 1 ? ['From', 'To'][at] : 'Value',
              key: name,
            }),
          ),
        ),
        h('p.error', { role: 'alert' }, problem),
        h('button.primary', 'Apply'),
      ),
    h(
      'div.row tight',
      others.map((each) => pick(each.operator, each)),
    ),
  );
}

/**
 * Takes a filter, with the values of the one that is edited if they are alike, and applies it once
 * it has all values.
 * @param {Filter} filter
 */
function choose(filter) {
  const { field, names, value } = filter;
  const former = editing.filter?.field;
  const isAlike = former?.name === field.name && former.kind === field.kind;
  const texts = names.map((_, at) => (isAlike && editing.texts[at]) || '');
  editing = { ...editing, isValue: true, filter, texts, problem: '' };
  return value || texts.every(Boolean) ? apply() : draw(firstControl);
}

function apply() {
  const { filter, texts, replaced } = editing;
  if (!filter) return undefined;
  const { field, names, value } = filter;
  const read = names.map((_, at) => (value ? { value } : fromText(field, texts[at] ?? '', true)));
  const problem = read.find((each) => each.problem)?.problem;
  if (problem) return (editing.problem = `The value ${problem}.`);
  const gone = replaced.map((name) => [name, '']);
  const taken = names.map((name, at) => [name, toParameter(read[at]?.value)]);
  return leave(Object.fromEntries([...gone, ...taken]));
}
set('filter', { onsubmit: apply });

/** The parameters that a cell can filter by. */
const byCell = /^(?:[^:]+|.*:(?:ne|has|gte|lte))$/u;

/**
 * Opens a menu that filters by the value of a cell.
 * @type {(event: Event, collection: Collection, columns: readonly Field[], rows: readonly Row[]) => void}
 */
export function openCellMenu(event, { filters }, columns, rows) {
  const at = event.target instanceof Element && event.target.closest('td, th:not(:has(a:hover))');
  if (!(at instanceof HTMLTableCellElement)) return;
  const field = columns[at.cellIndex - 1];
  const row = rows[at.closest('tr')?.sectionRowIndex ?? NaN];
  if (!field || !row) return;
  event.preventDefault();
  const value = own(row, field.name) ?? undefined;
  const items = filters.flatMap((filter) => {
    const { names, value: only } = filter;
    const [name = ''] = names;
    const isMeant = value === undefined ? only === 'false' : !only && byCell.test(name);
    if (filter.field.name !== field.name || !isMeant) return [];
    return [only ?? value].flat().map((each) => {
      const text = toParameter(each);
      const words = describe({ filter, names: [name], values: [text] }).join(' ');
      return button(bdi(words), () => leave({ [name]: text }));
    });
  });
  set('cell-menu', false, ...items);
  cellMenu.showPopover({ source: at });
}
