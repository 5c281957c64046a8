// @ts-check
/** A collection as a table: sorted, filtered, a page at a time, with its records made, edited and removed in place. */
import { call } from './api.js';
import { ask, attempt, button, decimalsOf, fill, focus, go, h, number, say } from './dom.js';
import { control, makeForm, save } from './form.js';

/**
 * A collection: `fields` are its columns, and what is edited; `secrets` are written but never read; `filters` are named
 * as the API's parameters are.
 * @typedef {import('./api.js').Row} Row
 * @typedef {import('./form.js').Field[]} Fields
 * @typedef {{ name: string, one: string, title: string, fields: Fields, secrets: Fields, filters: Fields }} Kind
 */

const pageSize = 25;
const typingPauseMs = 300;
const roles = ['member', 'admin'];

/** @type {Kind} */
export const items = {
  name: 'items', one: 'item', title: 'Items',
  fields: [{ name: 'name', label: 'Name' }, { name: 'price', label: 'Price', type: 'number' }],
  secrets: [],
  filters: [
    { name: 'name:contains', label: 'Name contains', type: 'search' },
    { name: 'price:gte', label: 'Price from', type: 'number' },
    { name: 'price:lte', label: 'Price to', type: 'number' },
  ],
};

/** @type {Kind} */
export const users = {
  name: 'users', one: 'user', title: 'Users',
  fields: [
    { name: 'name', label: 'Name' },
    { name: 'email', label: 'Email', type: 'email' },
    { name: 'role', label: 'Role', options: roles },
  ],
  secrets: [{ name: 'password', label: 'Password', type: 'password', optional: true, autocomplete: 'new-password',
    hint: 'Left empty, it stays as it is; a new user without one cannot sign in.' }],
  filters: [
    { name: 'name:contains', label: 'Name contains', type: 'search' },
    { name: 'email:contains', label: 'Email contains', type: 'search' },
    { name: 'role:eq', label: 'Role', options: ['', ...roles] },
  ],
};

/** @param {Kind} kind @param {import('./api.js').User} me */
export function recordsView({ name: view, one, title, fields, secrets, filters }, me) {
  let parameters = new URLSearchParams();
  let decimals = 0;
  const columns = [{ name: 'id', label: 'Id', type: 'number' }, ...fields];
  const region = h('section', { class: 'stack', tabindex: '-1', 'aria-label': title });
  const making = h('div');
  const boxes = filters.map((field) => control({ ...field, optional: true }));
  const clear = button('Clear the filter', () => filterBy({}), { class: 'quiet' });
  const filterForm = h('form', {
    class: 'filters', role: 'search', 'aria-label': `Filter ${view}`, oninput: () => filterSoon(typingPauseMs),
    onsubmit: (event) => {
      event.preventDefault();
      filterSoon(0);
    },
  }, ...boxes.map(({ node }) => node), clear);

  const load = () => fill(region, async (signal) => {
    const query = new URLSearchParams([...parameters, ['limit', String(pageSize)]]);
    /** @type {{ data: readonly Row[], next: string, total: number }} */
    const { data, next, total } = await call('GET', `/${view}?${query}`, { signal });
    if (data.length === 0) return [nothing()];
    decimals = decimalsOf(data.map(({ price = '' }) => price));
    // As cards on a narrow page these are no table to some screen readers any more, unless they are told.
    const last = h('th', { role: 'columnheader' }, h('span', { class: 'unseen' }, 'Actions'));
    const head = h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...columns.map(header), last));
    const body = h('tbody', { role: 'rowgroup' }, ...data.map(row));
    return [h('table', { class: 'list', role: 'table' }, head, body), pager(data.length, next, total)];
  });

  function nothing() {
    const filtered = filters.some(({ name }) => parameters.has(name));
    const [text, label, act] = parameters.has('cursor')
      ? ['Nothing is left on this page.', 'Go to the first page', () => go(view, without('cursor'))]
      : filtered ? [`No ${view} match this filter.`, 'Clear the filter', () => filterBy({})]
        : [`There are no ${view} yet.`, `Make the first ${one}`, create];
    return h('div', { class: 'notice' }, h('p', {}, text), button(label, act));
  }

  /** @param {{ name: string, label: string, type?: string }} column */
  function header({ name, label, type = 'text' }) {
    const sort = parameters.get('sort')?.split(',')[0] ?? 'id';
    const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;
    const sorted = without('cursor', 'sort');
    sorted.set('sort', order === 'ascending' ? `-${name}` : name);
    return h('th', { scope: 'col', role: 'columnheader', class: type, 'aria-sort': order },
      button(label, () => go(view, sorted), { id: `sort-${name}` }));
  }

  /** @param {Row} record */
  function row(record) {
    const cells = columns.map(({ name, type = 'text' }) => {
      const value = record[name] ?? '';
      const text = typeof value === 'number' && name !== 'id' ? number(value, decimals) : String(value);
      return name === 'name' ? h('th', { scope: 'row', role: 'rowheader', dir: 'auto' }, text)
        : h('td', { role: 'cell', class: type }, text);
    });
    /** @type {(text: string, act: (id: number) => Promise<void>) => HTMLElement} */
    const action = (text, act) => button(text, () => attempt(() => act(record.id)),
      { id: `${text}-${record.id}`, class: 'quiet', 'aria-label': `${text} ${record['name']}` });
    const actions = h('td', { role: 'cell', class: 'actions' }, action('Edit', edit), action('Remove', remove));
    return h('tr', { id: `row-${record.id}`, role: 'row' }, ...cells, actions);
  }

  /** @param {number} count @param {string} next @param {number} total */
  function pager(count, next, total) {
    // Which page this is, only the history knows: a cursor that came in an address may stand anywhere.
    const page = parameters.has('cursor') ? Number(history.state?.page ?? NaN) : 0;
    const start = page * pageSize;
    const range = page >= 0 ? `${number(start + 1)}–${number(start + count)}` : number(count);
    const text = `${range} of ${number(total)}`;
    say(`${title}: ${text}`, true);
    const following = new URLSearchParams([...without('cursor'), ['cursor', next]]);
    return h('nav', { class: 'pager', 'aria-label': 'Pages' }, h('p', {}, text),
      button('First', () => go(view, without('cursor')), { id: 'page-first', disabled: !parameters.has('cursor') }),
      button('Previous', () => history.back(), { id: 'page-previous', disabled: !(page > 0) }),
      button('Next', () => go(view, following, { page: page + 1 }), { id: 'page-next', disabled: next === '' }));
  }

  /** @param {readonly string[]} names */
  const without = (...names) => new URLSearchParams([...parameters].filter(([name]) => !names.includes(name)));

  /** @param {{ [name: string]: string }} values */
  function filterBy(values) {
    const kept = without('cursor', ...filters.map(({ name }) => name));
    const filtered = new URLSearchParams([...kept, ...Object.entries(values).filter(([, value]) => value !== '')]);
    // What is typed in one go is one step back.
    const typing = filterForm.contains(document.activeElement) && document.activeElement !== clear;
    const same = String(filtered) === String(parameters) || !filterForm.isConnected;
    if (!same) go(view, filtered, { typing }, typing && history.state?.typing === true);
  }

  let pause = 0;
  /** @param {number} delayMs */
  function filterSoon(delayMs) {
    clearTimeout(pause);
    const read = () => Object.fromEntries(boxes.map(({ name, input }) => [name, input.value]));
    pause = window.setTimeout(() => filterBy(read()), delayMs);
  }

  function create() {
    const cancel = () => {
      making.replaceChildren();
      focus(region, 'new');
    };
    making.replaceChildren(makeForm({
      fields: [...fields, ...secrets], class: 'inline', submit: `Create ${one}`, cancel,
      send: async (body) => {
        const { data } = await call('POST', `/${view}`, { body });
        cancel();
        await load();
        say(`Created ${one} ${data.id}, “${data.name}”.`);
      },
    }));
    making.querySelector('input')?.focus();
  }

  /** @param {number} id */
  async function edit(id) {
    // The list has no entity tags; and what is edited is to be what is stored now.
    const base = await call('GET', `/${view}/${id}`);
    const own = view === 'users' && id === me.id;
    const close = (/** @type {Row} */ record) => {
      editing.replaceWith(row(record));
      focus(region, `Edit-${id}`);
    };
    const form = makeForm({
      fields: own ? fields : [...fields, ...secrets], record: base.data,
      class: 'inline', submit: 'Save', cancel: () => close(base.data),
      send: async (values) => {
        const saved = await save(`/${view}/${id}`, fields, values, base);
        if (saved === undefined) return;
        if (own && saved['role'] !== me.role) location.reload();
        close({ ...saved, id });
        say(`Saved ${one} ${id}.`);
      },
    });
    const editing = h('tr', { class: 'editing', role: 'row' }, h('td', { colspan: columns.length + 1 }, form));
    document.getElementById(`row-${id}`)?.replaceWith(editing);
    form.querySelector('input')?.select();
  }

  /** @param {number} id @param {string} [news] */
  async function remove(id, news = '') {
    const { data, etag } = await call('GET', `/${view}/${id}`);
    const facts = fields.map(({ name, label }) => h('div', {}, h('dt', {}, label), h('dd', {}, String(data[name]))));
    const answer = await ask(`Remove ${one} ${id}?`,
      [h('dl', {}, ...facts), h('p', {}, `${news}This cannot be undone.`)],
      [['', 'Keep it'], ['remove', 'Remove', 'danger']]);
    if (answer !== 'remove') return;
    const { status } = await call('DELETE', `/${view}/${id}`, { ifMatch: etag });
    if (status === 412) return remove(id, 'It was changed a moment ago: look again. ');
    await load();
    say(`Removed ${one} ${id}, “${data.name}”.`);
  }

  return {
    title,
    nodes: [
      h('div', { class: 'title' }, h('h1', { tabindex: '-1' }, title),
        button(`New ${one}`, create, { id: 'new', class: 'primary' })),
      making, filterForm, region,
    ],
    /** @param {URLSearchParams} given */
    update(given) {
      parameters = given;
      for (const { name, input } of boxes) {
        if (input !== document.activeElement) input.value = parameters.get(name) ?? '';
      }
      clear.hidden = !filters.some(({ name }) => parameters.has(name));
      load();
    },
  };
}
