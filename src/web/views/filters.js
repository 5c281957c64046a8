// @ts-check
/**
 * The filters of a list: chips of field, operator and value that open for editing, and saved views,
 * which the browser keeps.
 */
import { findTarget, own, toShow } from '../api/model.js';
import { fromParameter, fromText, toText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, chip, draw, h, readInput, part, set } from '../lib/dom.js';
import { readFilters } from '../state/list.js';
import { state, storage } from '../state/me.js';
import { address, changed, go, joinValues, parameter, route, withQuery } from '../state/route.js';
import { control, readable } from './control.js';

/**
 * `names`: the parameters of a condition. Without a `filter`, the page does not know them.
 * @import { Child, Collection, Description, Field, Filter, Row } from '../types.js'
 * @typedef {{ filter?: Filter | undefined, names: readonly string[], values: readonly string[] }} Condition
 */

/**
 * The part of a condition that is open, with the texts of its values.
 * @type {{ part: string, filter?: Filter | undefined, texts: string[], replaced: readonly string[], problem: string }}
 */
let editing = { part: 'field', texts: [], replaced: [], problem: '' };
const parts = ['field', 'operator', 'value'];
const firstControl = '#filter :is(#filter-value :is(input, select, textarea), .primary, .menu *)';
const [popover, cellMenu] = [part('filter', HTMLElement), part('cell-menu', HTMLElement)];

/** @type {(part?: string, filter?: Filter, values?: readonly string[]) => void} */
export function open(part = 'field', filter, values = []) {
  const texts = values.map((value) =>
    filter ? toText(filter.field, fromParameter(filter.field, value)) : value,
  );
  editing = { part, filter, texts, replaced: filter?.names ?? [], problem: '' };
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
    const content = words.map((text, at) => {
      const look = { class: at === 1 ? 'plain quiet' : 'plain', popovertarget: 'filter' };
      return filter ? button(bdi(text), () => open(parts[at], filter, values), look) : text;
    });
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
  const here = `${changed(route.query, { offset: '' })}`;
  const tab = (/** @type {string} */ words, /** @type {string} */ query) => {
    const href = address(name, '', new URLSearchParams(query));
    return h('a', { key: query, href, 'aria-current': query === here && 'page' }, words);
  };
  const saved = views.map(([words, query]) => {
    const forget = () => keep(views.filter((each) => each[1] !== query));
    const link = tab(words, query);
    return query === here ? chip(query, `Forget the view: ${words}`, forget, link) : link;
  });
  const save = async () => {
    const input = part('view-name', HTMLInputElement);
    input.value = title;
    if (await ask('save-view')) keep([...views, [input.value, here]]);
  };
  const isNew = here && !views.some(([, query]) => query === here);
  const saving = isNew && button('Save this view', save, { key: 'save', class: 'plain quiet' });
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
      h('div.row', { id: 'chips', key: 'chips' }, chips, saving),
    )
  );
}

/** A menu of fields or of operators, or the form of a value. @param {Collection} collection */
function drawEditor({ filters, hasOwners }) {
  const { part, filter, texts, problem } = editing;
  const groups = Map.groupBy(filters, ({ field }) => field.name);
  const alike = (filter && groups.get(filter.field.name)) ?? [];
  const pick = (/** @type {string} */ words, /** @type {Filter} */ each) =>
    button(words, () => choose(each, true), { key: words });
  if (!filter || part === 'field')
    return h(
      'div.menu scroll',
      [...groups.values()].map(([each]) => each && pick(each.field.label, each)),
      hasOwners && button('Created by me', () => leave({ owner: 'me' }), { id: 'filter-mine' }),
    );
  if (part === 'operator')
    return h(
      'div.menu',
      { key: part },
      alike.map((each) => pick(each.operator, each)),
    );
  const { field, names, operator } = filter;
  const onchange = (/** @type {Event} */ event) => {
    const next = alike.find((each) => each.operator === readInput(event));
    return next && choose(next, false);
  };
  const look = { id: 'condition', value: operator, onchange };
  return h(
    'div.stack pad',
    { key: part },
    h(
      'label.row one-line',
      field.label,
      h(
        'select.grow',
        look,
        alike.map((each) => h('option', each.operator)),
      ),
    ),
    h(
      'div.stack',
      { id: 'filter-value' },
      names.map((name, at) =>
        control(field, texts[at] ?? '', (text) => (texts[at] = text), {
          'aria-label': names.length > 1 ? ['From', 'To'][at] : 'Value',
          key: `${name} ${field.kind}`,
        }),
      ),
    ),
    h('p.error', { role: 'alert' }, problem),
    h('button.primary', 'Apply'),
  );
}

/**
 * Takes a filter, with the values of the one that is edited if they are alike.
 * @type {(filter: Filter, isDone: boolean) => unknown} `isDone`: it applies once it has all values
 */
function choose(filter, isDone) {
  const { field, names, value } = filter;
  const former = editing.filter?.field;
  const isAlike = former?.name === field.name && former.kind === field.kind;
  const first = names[0]?.endsWith(':last') ? '7' : '';
  const texts = names.map((_, at) => (isAlike && editing.texts[at]) || first);
  editing = { ...editing, part: 'value', filter, texts, problem: '' };
  if (value || (isDone && texts.every(Boolean) && isAlike)) return apply();
  return draw(isDone ? firstControl : undefined);
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
