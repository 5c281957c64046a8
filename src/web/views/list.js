// @ts-check
/**
 * Shows a collection as a table, with search, filters, order, pages and selection. Its frame is in
 * index.html.
 */
import { capitalized, showNumber, listWords } from '../api/model.js';
import { button, h, readInput, onClick, part, set } from '../lib/dom.js';
import {
  collectionNow,
  listColumns,
  readFilters,
  readRows,
  keptColumns,
  list,
  loadList,
  chooseOrder,
  pageSize,
  select,
} from '../state/list.js';
import { allows, state } from '../state/me.js';
import { findName, toTitle } from '../state/names.js';
import { address, go, newId, parameter, route, withQuery } from '../state/route.js';
import { cell, close as closeCell, isEdited } from './cell.js';
import { close as closeFilters, drawFilters, open as openFilter, openCellMenu } from './filters.js';
import { alignColumns, called } from './parts.js';

/** @import { Attributes, Child, Collection, Description, Field, Row } from '../types.js' */

/** @type {typeof import('./columns.js') | undefined} */ let columns;
/** @type {typeof import('./bulk.js') | undefined} */ let bulk;

const typingPauseMs = 300;
let pause = 0;
/** The search text, which may still be changing. */ let words = '';

export function open() {
  if (list.collection !== route.view) close();
  void loadList();
}

export function close() {
  closeFilters();
  stopTyping();
  closeCell();
  highlight([]);
  [words, lastId] = ['', NaN];
}

export function view() {
  const collection = collectionNow();
  if (!collection) return undefined;
  const { name, one, title, hasSearch } = collection;
  const { rows, isBusy, problem, changes, selected } = list;
  // The address has another search, for example after going back. Typed spaces stay.
  if (!pause && words.trim() !== parameter('q')) words = parameter('q');
  const mayCreate = allows(collection, 'create');
  set('import', { hidden: !mayCreate });
  columns?.drawColumns(collection);
  queueMicrotask(() => highlight(fold(parameter('q')).split(/\s+/u).filter(Boolean)));
  return h(
    'section.grow',
    { id: 'records', key: 'records', 'aria-labelledby': 'title', 'aria-busy': `${isBusy}` },
    h(
      'div.toolbar row pad',
      h('h1', { id: 'title', tabindex: -1 }, title),
      h('a.quiet', { id: 'to-api', href: address('', `api/${name}`, route.query) }, 'API'),
      hasSearch &&
        h('input', {
          id: 'search',
          type: 'search',
          value: words,
          'data-key': '/',
          placeholder: `Search ${title.toLowerCase()}`,
          'aria-label': 'Search',
          autocomplete: 'off',
          onchange: search(0),
          oninput: search(typingPauseMs),
        }),
      changes > 0 &&
        button(`Show changes: ${changes}`, () => loadList(true), { id: 'show-changes' }),
      button('Filter', () => openFilter(), { id: 'add-filter', popovertarget: 'filter' }),
      button('Columns', loadColumns, { id: 'choose-columns', popovertarget: 'columns' }),
      h('button', { type: 'button', popovertarget: 'more' }, 'More'),
      mayCreate &&
        h(
          'a.button primary',
          { id: 'new', 'data-key': 'n', href: address(name, newId, route.query) },
          `New ${one}`,
        ),
    ),
    drawFilters(collection),
    drawRecord(collection, parameter('q')),
    !!problem &&
      h(
        'div.note stack pad',
        { id: 'list-problem', key: 'problem', role: 'alert' },
        h('p', problem),
        button('Try again', () => loadList(true), { id: 'retry' }),
        h('a', { href: address(name) }, 'Show everything'),
      ),
    h(
      'div.grow scroll line',
      { id: 'list', key: 'list' },
      rows.length > 0 || isBusy ? table(collection) : !problem && nothing(collection),
    ),
    h(
      'div.footer row spread pad line',
      { key: 'footer' },
      selected.length > 0 ? bulk?.drawSelection(collection) : drawRange(),
      drawPages(),
    ),
  );
}

/** Offers the record whose id is searched for. @type {(of: Collection, id: string) => Child} */
function drawRecord({ name }, id) {
  const title = /^\d{1,15}$/u.test(id) ? findName(name, id) : id;
  return title !== id && h('p.pad', h('a', { href: address(name, id, route.query) }, title));
}

/** Removes case and accents like the server's search, keeping positions. @param {string} text */
const fold = (text) =>
  text
    .split('')
    .map((sign) => sign.toLowerCase().normalize('NFD').charAt(0))
    .join('');

/** @param {readonly string[]} words */
function highlight(words) {
  if (!('highlights' in CSS)) return;
  const matches = new Highlight();
  const body = words.length > 0 && document.querySelector('#list tbody');
  const texts = body && document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  while (texts && texts.nextNode()) {
    const { currentNode: node } = texts;
    const text = fold(node.textContent ?? '');
    for (const word of words)
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length))
        matches.add(
          new StaticRange({
            startContainer: node,
            startOffset: at,
            endContainer: node,
            endOffset: at + word.length,
          }),
        );
  }
  CSS.highlights.set('match', matches);
}

const readOffset = () => Number(list.query.get('offset'));

function drawRange() {
  const { rows, total } = list;
  const at = readOffset();
  return h(
    'p.quiet',
    { id: 'range', key: 'range' },
    rows.length > 0 &&
      total >= 0 &&
      `${showNumber(at + 1)}–${showNumber(at + rows.length)} of ${showNumber(total)}`,
  );
}

function drawPages() {
  const { isBusy, total } = list;
  const size = pageSize();
  const [page, last] = [Math.floor(readOffset() / size) + 1, Math.ceil(total / size) || 1];
  /** @type {(at: number, label: string, look: Attributes) => Description} */
  const to = (at, label, look) =>
    button(label, () => !isBusy && go(withQuery({ offset: (at - 1) * size })), {
      disabled: at < 1 || at > last,
      ...look,
    });
  const near = new Set(
    [1, page - 1, page, page + 1, last].filter((each) => each >= 1 && each <= last),
  );
  const numbers = [...near].map((each, index, all) => {
    const isFar = each - (all[index - 1] ?? 0) > 1;
    return to(each, `${isFar ? '… ' : ''}${showNumber(each)}`, {
      key: each,
      'aria-label': `Page ${each}`,
      'aria-current': each === page && 'page',
    });
  });
  return h(
    'nav.row',
    { 'aria-label': 'Pages' },
    to(page - 1, 'Previous', { id: 'page-prev', 'data-key': '[' }),
    h('span.row tight', { id: 'page-numbers' }, numbers),
    to(page + 1, 'Next', { id: 'page-next', 'data-key': ']' }),
  );
}

function stopTyping() {
  clearTimeout(pause);
  pause = 0;
}

/**
 * Searches after a pause in typing. However it was typed, a search is one step in the history.
 * @param {number} pauseMs
 */
const search = (pauseMs) => (/** @type {Event} */ event) => {
  words = readInput(event);
  clearTimeout(pause);
  pause = window.setTimeout(() => {
    pause = 0;
    const [q, former] = [words.trim(), parameter('q')];
    if (q !== former) void go(withQuery({ q }), !!former && !!q);
  }, pauseMs);
};

/** @param {Collection} collection */
function nothing(collection) {
  const { name, one, title } = collection;
  const titles = title.toLowerCase();
  const isPart = readFilters().length > 0 || !!parameter('q');
  return h(
    'div.empty stack',
    h('h2', isPart ? `No ${titles} match` : `There are no ${titles} yet`),
    isPart
      ? h('p', h('a', { href: address(name), onclick: stopTyping }, 'Clear search and filters'))
      : allows(collection, 'create') &&
          h(
            'div.row',
            h('a.button primary', { href: address(name, newId) }, `Create the first ${one}`),
            button('Import a file', () => part('import', HTMLElement).click()),
          ),
  );
}

async function loadColumns() {
  columns ??= await import('./columns.js');
}

/** The widths of the checkbox column, and of a column added to others with widths. */
const [boxWidth, newWidth] = [44, 160];

/** Drawn rows. A row that is the same and looks the same is not described again. */
const drawn = new WeakMap(/** @type {[Row, { look: string, view: Description }][]} */ ([]));

/** @type {(collection: Collection, row: Row, href: string) => Description} */
function drawName(collection, row, href) {
  const title = toTitle(collection, row);
  const link = h('a', { id: `open-${row.id}`, href }, called(collection, title));
  return h('th', { scope: 'row', title }, link);
}

/** What a click in a row is for instead of opening its record. */
const controls = 'a, input, button, select, textarea';

/** What a narrow page shows of a row, the best last. */
const placedKinds = ['integer', 'number', 'time', 'money', 'choice'];

/**
 * Chooses what a narrow page shows below and beside a title that does not say it already.
 * @type {(collection: Collection, shown: readonly Field[]) => Field[]}
 */
function choosePlaced({ nameField, display }, shown) {
  const rank = (/** @type {Field} */ { kind, declared: { format } }) =>
    placedKinds.indexOf(typeof format === 'object' ? 'money' : kind);
  const best = shown
    .filter(({ name }) => name !== nameField && !display.includes(`{${name}}`))
    .sort((one, other) => rank(other) - rank(one))
    .slice(0, 3);
  // Below the title is the most room, so a text is first.
  return best.sort((one, other) => rank(one) - rank(other));
}

/** @type {(view: Description, field: Field, placed: readonly Field[]) => Description} */
function drawPlaced(view, field, placed) {
  const place = placed.indexOf(field);
  const isBare = /^(?:number|integer)$/u.test(field.kind) && !field.declared.format;
  const look = { 'data-place': place, 'data-label': isBare && field.label };
  if (place >= 0) Object.assign(view.attributes, look);
  return view;
}

/** The row selected last, where a range begins. */ let lastId = NaN;

/** @param {Collection} collection */
function table(collection) {
  const { rows, selected } = list;
  const shown = listColumns(collection);
  // Owners may select and change records in lists of only their own.
  const isMine = parameter('owner') !== '' || listWords(collection, 'list').join() === 'owner';
  const may = (/** @type {string} */ operation, /** @type {Row} */ row) =>
    allows(collection, operation, (word) =>
      word === 'owner' ? isMine : [row[word] ?? []].flat().some((id) => id === state.me?.id),
    );
  const chosen = new Set(selected.map(({ id }) => id));
  const box = (/** @type {string} */ label, /** @type {readonly Row[]} */ all) => {
    const of = all.filter((row) => may('remove', row) || may('change', row));
    const checked = of.every(({ id }) => chosen.has(id));
    const onclick = async (/** @type {Event} */ event) => {
      const [one, other] = all;
      const ends = [lastId, one?.id].map((id) => rows.findIndex((row) => row.id === id));
      const isRange = event instanceof MouseEvent && event.shiftKey && !other && !ends.includes(-1);
      const range = isRange ? rows.slice(Math.min(...ends), Math.max(...ends) + 1) : of;
      if (one && !other) lastId = one.id;
      select(collection.name, range, !checked);
      bulk ??= await import('./bulk.js');
    };
    return of.length > 0 && h('input', { type: 'checkbox', 'aria-label': label, checked, onclick });
  };
  const digits = alignColumns(shown, rows);
  const placed = choosePlaced(collection, shown);
  const here = address(collection.name, '', route.query);
  const common = `${here} ${state.namesRead} ${state.me?.role} ${[...digits]}`;
  const present = readRows(collection);
  const body = present.map((row) => {
    const isCurrent = route.id === `${row.id}`;
    const isChosen = chosen.has(row.id);
    const mayChange = may('change', row);
    const look = `${common} ${isChosen} ${isCurrent} ${isEdited(row)}`;
    const former = drawn.get(row);
    // Suggestions arrive while a cell is edited.
    if (former?.look === look && !isEdited(row)) return former.view;
    const href = address(collection.name, row.id, route.query);
    // Text can be selected without opening the record.
    const onclick = (/** @type {Event} */ { target }) =>
      target instanceof Element &&
      !target.closest(controls) &&
      getSelection()?.isCollapsed !== false &&
      go(href);
    const view = h(
      'tr',
      { key: row.id, class: isCurrent && 'current', onclick },
      h('td', box(`Select ${toTitle(collection, row)}`, [row])),
      shown.map((field) =>
        field.name === collection.nameField
          ? drawName(collection, row, href)
          : drawPlaced(cell(collection, field, row, mayChange, digits), field, placed),
      ),
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
    h('tbody', { oncontextmenu: (event) => openCellMenu(event, collection, shown, present) }, body),
  );
}

/**
 * Draws the head of a column. A click sorts by it first, then by the previous order.
 * @type {(collection: Collection, field: Field) => Description}
 */
function heading(collection, { name, label: given, kind, isSortable }) {
  const { sortMax, nameField } = collection;
  const terms = (chooseOrder(collection) || 'id').split(',');
  const label = name === 'id' && nameField === 'id' ? capitalized(collection.one) : given;
  const first = terms.find((each) => each.replace('-', '') === name);
  // Ids only tell records of one batch apart.
  const term = name === 'id' && first !== terms[0] ? undefined : first;
  const others = terms.filter((each) => each !== term && !/^-?id$/u.test(each));
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

onClick('refresh', () => loadList(true));
for (const id of ['csv', 'json', 'import'])
  onClick(id, async () => (await import('./transfer.js')).transfer(id));
