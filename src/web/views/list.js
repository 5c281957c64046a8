// @ts-check
/**
 * Shows a collection as a table: search, filters, order, one page at a time, and selection. Its frame is in
 * index.html.
 */
import { Problem, call } from '../api/call.js';
import { bdi, button, chip, h, inputOf, onClick, part, set } from '../lib/dom.js';
import {
  digitsOf,
  inShort,
  own,
  showFigure,
  showNumber,
  targetOf,
  titleOf,
  toShow,
  wordsOf,
} from '../api/model.js';
import { called, nameOf, show } from './values.js';
import {
  address,
  allows,
  ask,
  bearer,
  changed,
  collectionOf,
  count,
  draw,
  explain,
  go,
  storage,
  newId,
  parameter,
  state,
  withQuery,
} from '../state/state.js';

/** @import { Child, Collection, Description, Field, Row } from '../types.js' */

/** The list that is shown. */
export const list = {
  /** Its address, without the open record. */ key: '',
  /** The collection of its rows. */ collection: '',
  /** @type {readonly Row[]} */ rows: [],
  /** Number of records on all pages. */ total: NaN,
  /** Parameters of the address that the rows belong to. */ query: state.route.query,
  isBusy: false,
  problem: '',
  /** Rows of other pages stay selected. @type {readonly Row[]} */ selected: [],
  /** Number of changes by others that are not shown yet. */ changes: 0,
};

/** Parameters of an address that are not filters. */
const ownParameters = ['q', 'sort', 'limit', 'offset'];
const wholeList = { limit: '', offset: '' };
const retryMs = 3000;
const typingPauseMs = 300;

let loading = new AbortController();
let retry = 0;
let pause = 0;
/** The filter form is loaded on demand. @type {typeof import('./filter.js') | undefined} */ let filter;
/** @type {typeof import('./columns.js') | undefined} */ let columns;

const box = part('search', HTMLInputElement);

export const collectionNow = () => collectionOf(state.route.view);

const pageSize = () => Number(parameter('limit')) || 50;

/** Filters of the address, without the search text. */
const filtersOf = () => [...state.route.query].filter(([name]) => !ownParameters.includes(name));

/** Returns the API's path for the list that the address names: for all of its pages, unless parameters name one. */
export const listPath = (/** @type {{ [name: string]: number | string }} */ page = wholeList) =>
  `${state.route.view}?${changed(state.route.query, page)}`;

/** Loads the list that the address names, unless it is loaded already. */
export async function loadList(again = false) {
  const { view, query } = state.route;
  const key = address(view, '', query);
  if (key === list.key && !again) return;
  if (list.collection !== view) {
    Object.assign(list, { collection: view, rows: [], total: NaN, selected: [] });
    part('filter', HTMLElement).hidePopover();
    stopTyping();
  }
  Object.assign(list, { key, isBusy: true });
  loading.abort();
  clearTimeout(retry);
  const { signal } = (loading = new AbortController());
  draw();
  try {
    const options = { signal, fields: { Prefer: 'count=exact' } };
    const path = listPath({ limit: pageSize() });
    const { data: rows, total } = await call('GET', path, options);
    // The records of this page have gone since its address was made.
    if (rows.length === 0 && total > 0 && query.has('offset')) return await go(withQuery({}), true);
    Object.assign(list, { rows, total, query, problem: '', changes: 0 });
    if (!again) part('list', HTMLElement).scrollTop = 0;
  } catch (error) {
    if (signal.aborted) return;
    list.problem = explain(error);
    // The list recovers by itself after a restart of the server.
    const { status = 400 } = error instanceof Problem ? error : {};
    if (status === 0 || status === 429 || status > 500)
      retry = window.setTimeout(() => loadList(true), retryMs);
  }
  list.isBusy = false;
  draw();
}

/** @type {(collection: string, rows: readonly Row[], isSelected: boolean) => void} */
export function select(collection, rows, isSelected) {
  if (list.collection !== collection) return;
  const others = list.selected.filter(({ id }) => !rows.some((row) => row.id === id));
  list.selected = isSelected ? [...others, ...rows] : others;
}

/**
 * Replaces the rows of changed records. Other collections have the same ids.
 * @type {(collection: string, changes: ReadonlyMap<number, { record?: Row }>) => void} by id
 */
export function showChanges(collection, changes) {
  if (list.collection === collection && list.rows.some(({ id }) => changes.get(id)?.record)) {
    list.rows = list.rows.map((row) => changes.get(row.id)?.record ?? row);
  }
}

/** @param {Collection} collection */
export function drawRecords(collection) {
  const { name, one, title } = collection;
  const { rows, isBusy, problem, changes, selected } = list;
  // Another search is in the address, such as after a step back. Spaces that are typed stay.
  if (!pause && box.value.trim() !== parameter('q')) box.value = parameter('q');
  const mayCreate = allows(collection, 'create');
  set('records', { 'aria-busy': `${isBusy}` });
  set('title', title);
  set('search', { hidden: !collection.hasSearch });
  set('to-api', { href: address('', `api/${name}`, state.route.query) });
  set('show-changes', { hidden: changes === 0 }, `Show changes: ${changes}`);
  set('new', { hidden: !mayCreate, href: address(name, newId, state.route.query) }, `New ${one}`);
  set('import', { hidden: !mayCreate });
  set('list-problem', { hidden: !problem });
  set('list-message', problem);
  set('show-all', { href: address(name) });
  drawFilters(collection);
  set('list', rows.length > 0 || isBusy ? table(collection) : !problem && nothing(collection));
  set('selection', { hidden: selected.length === 0 });
  set('selected', `${count(selected, collection)} selected`);
  set('size', { value: `${pageSize()}` });
  drawPages();
}

/** Draws the range that is shown and the buttons for other pages. */
function drawPages() {
  const { rows, isBusy, total, query } = list;
  const size = pageSize();
  const at = Number(query.get('offset'));
  const [page, last] = [Math.floor(at / size) + 1, Math.ceil(total / size) || 1];
  const range = `${showNumber(at + 1)}–${showNumber(at + rows.length)} of ${showNumber(total)}`;
  set('range', { hidden: list.selected.length > 0 }, rows.length > 0 && total >= 0 && range);
  const place = (/** @type {number} */ to) => ({
    disabled: to < 1 || to > last,
    onclick: () => !isBusy && go(withQuery({ offset: (to - 1) * size })),
  });
  set('page-prev', place(page - 1));
  set('page-next', place(page + 1));
  const near = new Set(
    [1, page - 1, page, page + 1, last].filter((each) => each >= 1 && each <= last),
  );
  const numbers = [...near].map((each, index, all) => {
    const { onclick } = place(each);
    const isFar = each - (all[index - 1] ?? 0) > 1;
    const look = {
      key: each,
      'aria-label': `Page ${each}`,
      'aria-current': each === page && 'page',
    };
    return button(`${isFar ? '… ' : ''}${showNumber(each)}`, onclick, look);
  });
  set('page-numbers', false, ...numbers);
}

/** What was typed for one list never reaches another. */
function stopTyping() {
  clearTimeout(pause);
  pause = 0;
}

/** Searches after a pause in typing. One search, however it was typed, is one step back in the history. */
function search(pauseMs = 0) {
  clearTimeout(pause);
  pause = window.setTimeout(() => {
    pause = 0;
    const [q, former] = [box.value.trim(), parameter('q')];
    if (q !== former) void go(withQuery({ q }), !!former && !!q);
  }, pauseMs);
}

/** Draws the filters of the address as chips, and the form for another one. @param {Collection} collection */
function drawFilters(collection) {
  const filters = filtersOf().map(([name, value]) => {
    const { field, operator } = collection.filters.find((each) => each.name === name) ?? {};
    const target = field?.schema['x-references'];
    const shown = target ? nameOf(target, value) : field ? toShow(field, value) : value;
    const text = field ? `${field.label} ${operator}` : name;
    return { name, words: name === 'owner' ? 'Created by me' : `${text} ${shown}` };
  });
  const chips = filters.map(({ name, words }) =>
    chip(name, `Remove the filter: ${words}`, () => go(withQuery({ [name]: '' })), bdi(words)),
  );
  const { me, route } = state;
  const place = `views ${me?.id} ${collection.name}`;
  /** @type {readonly [words: string, query: string][]} */
  const views = JSON.parse(storage[place] ?? '[]');
  const keep = (/** @type {typeof views} */ all) => void (storage[place] = JSON.stringify(all));
  const here = `${changed(route.query, { offset: '' })}`;
  const saved = views.map(([words, query]) => {
    const href = address(collection.name, '', new URLSearchParams(query));
    const forget = () => keep(views.filter((each) => each[1] !== query));
    const link = h('a', { href, 'aria-current': query === here && 'page' }, words);
    return chip(query, `Forget the view: ${words}`, forget, link);
  });
  const words = [parameter('q'), ...filters.map(({ words }) => words)].filter(Boolean).join(', ');
  const isNew = words && !views.some(([, query]) => query === here);
  const save = button('Save this view', () => keep([...views, [words, here]]), {
    key: 'save',
    class: 'plain quiet',
  });
  set('chips', false, ...saved, ...chips, isNew && save);
  filter?.drawFilter(collection);
  columns?.drawColumns(collection);
}

/** @param {Collection} collection */
function nothing(collection) {
  const { name, one, title, fields } = collection;
  const titles = title.toLowerCase();
  const empty = (/** @type {string} */ text, /** @type {Child[]} */ ...more) =>
    h('div.empty stack', h('h2', text), ...more);
  if (filtersOf().length > 0 || parameter('q'))
    return empty(
      `No ${titles} match`,
      h('p', h('a', { href: address(name), onclick: stopTyping }, 'Clear search and filters')),
    );
  if (!allows(collection, 'create')) return empty(`There are no ${titles} yet`);
  const body = fields.filter(({ isRequired }) => isRequired).map((field) => `"${field.name}": …`);
  return empty(
    `There are no ${titles} yet`,
    h(
      'div.row',
      h('a.primary', { href: address(name, newId) }, `Create the first ${one}`),
      button('Import a file', () => part('import', HTMLElement).click()),
    ),
    h('code', `curl ${new URL(name, location.href)}${bearer} --json '{${body.join(', ')}}'`),
  );
}

async function loadColumns() {
  columns ??= await import('./columns.js');
}

/**
 * The columns of a list, as this browser has them; at first without long texts and times that the server notes.
 * @type {(of: Collection) => readonly Field[]}
 */
export function columnsOf({ name, fields }) {
  const all = fields.filter(({ shown }) => shown);
  const names = [...keptColumns(name).keys()];
  return names.length > 0
    ? names.flatMap((each) => all.find((field) => field.name === each) ?? [])
    : all.filter(({ kind, created }) => kind !== 'long' && (kind !== 'time' || created));
}

/**
 * What this browser keeps of a list's columns: each with its width, or 0.
 * @type {(name: string) => Map<string, number>}
 */
export const keptColumns = (name) => new Map(JSON.parse(storage[`columns of ${name}`] ?? '[]'));

/** Widths of the column of checkboxes, and of one that is added to columns with widths. */
const [boxWidth, newWidth] = [44, 160];

/** Rows that are drawn: one that is the same, and looks the same, is not described again. */
const drawn = new WeakMap(/** @type {[Row, { look: string, view: Description }][]} */ ([]));

/** How many decimals each column of numbers has. @type {Map<string, number>} */
let digits = new Map();

/** @type {(collection: Collection, field: Field, row: Row, mayChange: boolean) => Description} */
function cell(collection, field, row, mayChange) {
  const { name, nameField } = collection;
  const value = own(row, field.name);
  const title = targetOf(field) ? '' : toShow(field, value);
  const figure = field.kind === 'number' && typeof value === 'number';
  const short = field.kind === 'json' && inShort(value);
  const shown = figure
    ? showFigure(value, digits.get(field.name) ?? 0)
    : short
      ? bdi(short)
      : show(field, value);
  if (mayChange && field.changed && field.kind === 'boolean') {
    const look = {
      type: 'checkbox',
      role: 'switch',
      checked: value === true,
      'aria-label': `${field.label}: ${titleOf(collection, row)}`,
    };
    // It turns once the server has stored it.
    const onclick = async (/** @type {Event} */ event) => {
      event.preventDefault();
      await (await import('./removal.js')).flip(collection, row, field.name);
    };
    return h('td', h('input', { ...look, onclick }));
  }
  if (field.name !== nameField) {
    const isFilter =
      (field.kind === 'choice' || field.kind === 'boolean') &&
      value !== undefined &&
      value !== null;
    const only = () => go(withQuery({ [field.name]: `${value}` }));
    const look = {
      class: 'plain',
      tabindex: -1,
      title: `Only ${field.label.toLowerCase()} ${title}`,
    };
    return h(
      'td',
      { class: field.kind, title: title || false },
      isFilter ? button(shown, only, look) : shown,
    );
  }
  const link = { id: `open-${row.id}`, href: address(name, row.id, state.route.query) };
  return h(
    'th',
    { scope: 'row', title },
    h('a', link, called(collection, titleOf(collection, row))),
  );
}

/**
 * Opens the record of a row that is clicked beside its links and controls, unless text of it is selected.
 * @param {Event} event
 */
function openRow({ target, currentTarget }) {
  if (!(target instanceof Element) || !(currentTarget instanceof Element)) return;
  const link = currentTarget.querySelector('th a');
  if (target.closest('a, input, button') || getSelection()?.isCollapsed === false) return;
  if (link instanceof HTMLElement) link.click();
}

/** @param {Collection} collection */
function table(collection) {
  const { rows, selected } = list;
  const shown = columnsOf(collection);
  // Owners may select and change where all that is listed is their own.
  const isMine = parameter('owner') !== '' || wordsOf(collection, 'list').join() === 'owner';
  const may = (/** @type {string} */ operation, /** @type {Row} */ row) =>
    allows(collection, operation, (word) =>
      word === 'owner' ? isMine : [row[word] ?? []].flat().some((id) => id === state.me?.id),
    );
  const chosen = new Set(selected.map(({ id }) => id));
  const box = (/** @type {string} */ label, /** @type {readonly Row[]} */ all) => {
    const of = all.filter((row) => may('remove', row));
    const checked = of.every(({ id }) => chosen.has(id));
    const onchange = () => select(collection.name, of, !checked);
    return (
      of.length > 0 && h('input', { type: 'checkbox', 'aria-label': label, checked, onchange })
    );
  };
  const leaving = new Set(
    state.removals
      .flatMap((each) => (each.collection === collection ? each.rows : []))
      .map(({ id }) => id),
  );
  const here = address(collection.name, '', state.route.query);
  const figures = shown.filter(({ kind }) => kind === 'number');
  digits = new Map(figures.map(({ name }) => [name, digitsOf(rows.map((row) => row[name]))]));
  const decimals = [...digits.values()].join();
  const names = shown.map(({ name }) => name).join();
  const body = rows
    .filter(({ id }) => !leaving.has(id))
    .map((row) => {
      const isCurrent = state.route.id === `${row.id}`;
      const isChosen = chosen.has(row.id);
      const mayChange = may('change', row);
      const rights = [mayChange, may('remove', row)];
      const look = [here, state.namesRead, rights, isChosen, isCurrent, decimals, names].join(' ');
      const former = drawn.get(row);
      if (former?.look === look) return former.view;
      const view = h(
        'tr',
        { key: row.id, class: isCurrent && 'current', onclick: openRow },
        h('td', box(`Select ${titleOf(collection, row)}`, [row])),
        shown.map((field) => cell(collection, field, row, mayChange)),
      );
      drawn.set(row, { look, view });
      return view;
    });
  const widths = keptColumns(collection.name);
  const isSized = [...widths.values()].some(Boolean);
  return h(
    isSized ? 'table.sized' : 'table',
    { 'aria-labelledby': 'title' },
    isSized &&
      h(
        'colgroup',
        h('col', { width: boxWidth }),
        shown.map(({ name }) => h('col', { width: widths.get(name) || newWidth })),
      ),
    h(
      'thead',
      h(
        'tr',
        h('td', box('Select all on this page', rows)),
        shown.map((field) => heading(collection, field)),
      ),
    ),
    h('tbody', body),
  );
}

/**
 * Draws the head of a column. A click sorts by this column first and keeps the former order behind it.
 * @type {(collection: Collection, field: Field) => Description}
 */
function heading(collection, { name, label, kind, isSortable }) {
  const { sortMax, nameField } = collection;
  const terms = (parameter('sort') || 'id').split(',');
  const term = terms.find((each) => each.replace('-', '') === name);
  const others = terms.filter((each) => each !== term && each !== 'id');
  const sort = [terms[0] === name ? `-${name}` : name, ...others].slice(0, sortMax).join();
  const direction = term && (term === name ? 'ascending' : 'descending');
  return h(
    'th',
    { scope: 'col', class: name === nameField ? 'name' : kind, 'aria-sort': direction },
    isSortable ? button(label, () => go(withQuery({ sort })), { id: `sort-${name}` }) : label,
    h('span.handle', {
      'aria-hidden': 'true',
      onpointerenter: loadColumns,
      onpointerdown: (event) => columns?.drag(event, collection, name),
    }),
  );
}

set('search', { onchange: () => search(), oninput: () => search(typingPauseMs) });
onClick('add-filter', async () => (filter ??= await import('./filter.js')));
onClick('choose-columns', loadColumns);
set('size', { onchange: (event) => go(withQuery({ limit: inputOf(event) })) });
for (const id of ['show-changes', 'refresh', 'retry']) onClick(id, () => loadList(true));
for (const id of ['csv', 'json', 'import'])
  onClick(id, async () => (await import('./transfer.js')).transfer(id));
onClick('clear-selected', () => select(list.collection, list.selected, false));
onClick('remove-selected', async () => {
  const collection = collectionNow();
  if (!collection || !(await ask('remove', count(list.selected, collection)))) return;
  const { removeSoon } = await import('./removal.js');
  void removeSoon(collection, list.selected);
});
