// @ts-check
/**
 * The filters of a list: chips of field, operator and value, each of which opens, and saved views,
 * which this browser keeps under a name.
 */
import { findTarget, own, toShow } from '../api/model.js';
import { fromParameter, fromText, toText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, chip, draw, h, readInput, part, set } from '../lib/dom.js';
import { readFilters } from '../state/list.js';
import { state, storage } from '../state/me.js';
import { address, changed, go, joinValues, parameter, route, withQuery } from '../state/route.js';
import { control } from './control.js';
import { readable } from './reference.js';

/**
 * `names`: the parameters of a condition. Without a `filter`, the page does not know them.
 * @import { Child, Collection, Description, Field, Filter, Row } from '../types.js'
 * @typedef {{ filter?: Filter | undefined, names: readonly string[], values: readonly string[] }} Condition
 */

/** The condition being edited, or a new one, with its open part and the texts of its values. */
const editing = {
  part: 'field',
  /** @type {Filter | undefined} */ filter: undefined,
  /** @type {string[]} */ texts: [],
  /** @type {readonly string[]} */ replaced: [],
  problem: '',
};
const parts = ['field', 'operator', 'value'];
const valueControls = '#filter-value :is(input, select, textarea), #filter .primary';
const [popover, cellMenu] = [part('filter', HTMLElement), part('cell-menu', HTMLElement)];

/** @type {(part: string, filter?: Filter, values?: readonly string[]) => void} */
export function open(part, filter, values = []) {
  const texts = values.map(
    (value) => filter && toText(filter.field, fromParameter(filter.field, value)),
  );
  Object.assign(editing, { part, filter, texts, replaced: filter?.names ?? [], problem: '' });
  draw(part === 'value' ? valueControls : '#filter button');
}
export function close() {
  popover.hidePopover();
  cellMenu.hidePopover();
  editing.texts = [];
}

/** @param {unknown} value */
const toParameter = (value) => (Array.isArray(value) ? joinValues(value) : `${value}`);

/** @param {Collection} collection @returns {Condition[]} */
function readConditions({ filters }) {
  /** @type {Map<string, string>} */ const left = new Map();
  for (const [name, value] of readFilters())
    left.set(name, [left.get(name) ?? [], value].flat().join(', '));
  return [...left.keys()].flatMap((name) => {
    if (!left.has(name)) return [];
    const filter = filters.find(
      (each) =>
        each.names.includes(name) &&
        each.names.every((other) => left.has(other)) &&
        (each.value ?? left.get(name)) === left.get(name),
    );
    const names = filter?.names ?? [name];
    const values = names.map((each) => left.get(each) ?? '');
    for (const each of names) left.delete(each);
    return { filter, names, values };
  });
}

/**
 * Shows the operand of a filter, with names for records.
 * @type {(field: Field, value: string) => string}
 */
function showOperand(field, value) {
  const read = fromParameter(field, value);
  return findTarget(field) ? readable(field, toText(field, read)) : toShow(field, read);
}

/** @param {Condition} condition */
function describe({ filter, names, values }) {
  if (!filter) return [names[0] === 'owner' ? 'Created by me' : `${names[0]} ${values[0]}`];
  const { field, operator, value } = filter;
  const shown = values.map((each) => showOperand(field, each)).join(' and ');
  return [field.label, operator, ...(value ? [] : [shown])];
}

/** @param {Collection} collection */
export function drawFilters(collection) {
  const conditions = readConditions(collection);
  const chips = conditions.map((condition, index) => {
    const { filter, names, values } = condition;
    const words = describe(condition);
    const remove = () => go(withQuery(Object.fromEntries(names.map((name) => [name, '']))));
    const content = words.map((text, at) => {
      const look = { class: at === 1 ? 'plain quiet' : 'plain', popovertarget: 'filter' };
      return filter ? button(bdi(text), () => open(parts[at] ?? '', filter, values), look) : text;
    });
    return chip(`${index}`, `Remove the filter: ${words.join(' ')}`, remove, ...content);
  });
  const title = [parameter('q'), ...conditions.map((each) => describe(each).join(' '))];
  const { filter } = editing;
  set(
    'filter',
    filter && editing.part === 'value' ? valueForm(filter, collection) : menu(collection),
  );
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

/** @param {Collection} collection */
function menu({ filters, hasOwners }) {
  const { part, filter } = editing;
  const isField = part === 'field' || !filter;
  const names = filters.map(({ field }) => field.name);
  const all = isField
    ? filters.filter(({ field }, index) => names.indexOf(field.name) === index)
    : filters.filter(({ field }) => field.name === filter.field.name);
  return h(
    'div.menu scroll',
    { key: part },
    all.map((each) =>
      button(isField ? each.field.label : each.operator, () => choose(each, true), {
        key: `${each.names} ${each.value}`,
      }),
    ),
    isField &&
      hasOwners &&
      button('Created by me', () => leave({ owner: 'me' }), { id: 'filter-mine', key: 'mine' }),
  );
}

/**
 * Replaces the filter being edited, keeping its values if the kinds are alike.
 * @type {(next: Filter, isDone: boolean) => unknown} `isDone`: it applies once it has all values
 */
function choose(next, isDone) {
  const { filter, texts } = editing;
  const isAlike = filter?.field.name === next.field.name && filter.field.kind === next.field.kind;
  const isDays = next.names[0]?.endsWith(':last');
  editing.texts = next.names.map((_, at) => (isAlike ? texts[at] : isDays && '7') || '');
  Object.assign(editing, { part: 'value', filter: next, problem: '' });
  if (next.value || (isDone && isAlike && editing.texts.every(Boolean))) return apply();
  return draw(isDone ? valueControls : undefined);
}

/** @type {(filter: Filter, collection: Collection) => Description} */
function valueForm({ field, names, operator }, { filters }) {
  const { texts, problem } = editing;
  const all = filters.filter((each) => each.field.name === field.name);
  const onchange = (/** @type {Event} */ event) => {
    const next = all.find((each) => each.operator === readInput(event));
    return next && choose(next, false);
  };
  const option = (/** @type {Filter} */ each) => h('option', each.operator);
  return h(
    'div.stack pad',
    { key: 'value' },
    h(
      'label.row one-line',
      field.label,
      h('select.grow', { id: 'condition', value: operator, onchange }, all.map(option)),
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

function apply() {
  const { filter, texts, replaced } = editing;
  if (!filter) return undefined;
  const { field, names, value } = filter;
  const read = names.map((_, at) => (value ? { value } : fromText(field, texts[at] ?? '', true)));
  const problem = read.find((each) => each.problem)?.problem;
  editing.problem = problem ? `The value ${problem}.` : '';
  if (problem) return undefined;
  const gone = replaced.map((name) => [name, '']);
  const set = names.map((name, at) => [name, toParameter(read[at]?.value)]);
  return leave(Object.fromEntries([...gone, ...set]));
}
set('filter', { onsubmit: apply });

/** @param {{ [parameter: string]: string }} parameters */
function leave(parameters) {
  popover.hidePopover();
  return go(withQuery(parameters));
}

/** The parameters that a cell can filter by. */
const byCell = /^(?:[^:]+|.*:(?:ne|has|gte|lte))$/u;

/**
 * Opens a menu that filters by the value of a cell.
 * @type {(event: Event, collection: Collection, columns: readonly Field[], rows: readonly Row[]) => void}
 */
export function openCellMenu(event, { filters }, columns, rows) {
  const { target } = event;
  const at =
    target instanceof Element && !target.closest('th a, input') && target.closest('td, th');
  const line = at && at.closest('tr');
  if (!line || !(at instanceof HTMLTableCellElement)) return;
  const [field, row] = [columns[at.cellIndex - 1], rows[line.sectionRowIndex]];
  if (!field || !row) return;
  event.preventDefault();
  const value = own(row, field.name) ?? undefined;
  const items = filters.flatMap(
    ({ field: operand, names: [name = ''], operator, value: fixed }) => {
      const isMeant = value === undefined ? fixed === 'false' : !fixed && byCell.test(name);
      if (operand.name !== field.name || !isMeant) return [];
      return [fixed ?? value].flat().map((each) => {
        const text = toParameter(each);
        const shown = fixed ? '' : showOperand(operand, text);
        const filter = () => (cellMenu.hidePopover(), go(withQuery({ [name]: text })));
        return button(bdi(`${field.label} ${operator} ${shown}`), filter);
      });
    },
  );
  set('cell-menu', false, ...items);
  cellMenu.showPopover({ source: at });
}
