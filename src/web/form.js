// @ts-check
/** Forms made of fields, the server's complaints beside the controls they are about, and lost updates. */
import { Problem, call } from './api.js';
import { ask, button, explain, h } from './dom.js';

/**
 * `name` is the member of the body (and of the JSON Pointers to it); `options` make a choice of it; an `optional` one
 * is not sent while it is empty.
 * @typedef {{ name: string, label: string, type?: 'text' | 'email' | 'number' | 'password' | 'search',
 *   options?: readonly string[], optional?: boolean, hint?: string, autocomplete?: string }} Field
 * @typedef {{ [field: string]: string | number }} Values
 */

let controls = 0;

/** A labelled control with room for a hint and a complaint. @param {Field} field @param {string | number} [value] */
export function control(field, value = '') {
  const { name, label, type = 'text', options, optional, hint = '', autocomplete = 'off' } = field;
  const id = `control-${++controls}`;
  const attributes = { id, name, required: optional !== true, autocomplete, 'aria-describedby': `${id}-hint` };
  const input = options === undefined
    ? h('input', { ...attributes, type, value, dir: 'auto', step: 'any', min: type === 'number' && 0 })
    : h('select', attributes, ...options.map((option) =>
      h('option', { value: option, selected: option === value }, option || 'any')));
  const complaint = h('span', { class: 'error' });
  const node = h('div', { class: 'field' }, h('label', { for: id }, label), input,
    h('small', { id: `${id}-hint` }, complaint, hint));
  const reveal = button('Show', () => {
    const shown = input.getAttribute('type') === 'text';
    input.setAttribute('type', shown ? 'password' : 'text');
    reveal.ariaPressed = String(!shown);
  }, { class: 'reveal', 'aria-pressed': 'false', 'aria-label': `Show ${label.toLowerCase()}` });
  if (type === 'password') input.after(reveal);
  return { name, label, type, optional, input, complaint, node };
}

/**
 * A form that sends the values of its fields. Escape cancels. While it is sent it cannot be sent again; a refusal is
 * shown where it belongs.
 * @param {{ fields: readonly Field[], record?: Values, submit: string, send: (values: Values) => Promise<void>,
 *   cancel?: () => void, class?: string }} options
 */
export function makeForm({ fields, record = {}, submit, send, cancel, ...attributes }) {
  const parts = fields.map((field) => control(field, record[field.name]));
  const message = h('p', { class: 'error', role: 'alert' });
  const actions = h('div', { class: 'actions' }, h('button', { class: 'primary' }, submit),
    ...(cancel === undefined ? [] : [button('Cancel', cancel)]));
  const form = h('form', { ...attributes, method: 'post' }, ...parts.map(({ node }) => node), actions, message);

  /** @param {unknown} error */
  function complain(error) {
    const issues = error instanceof Problem ? error.issues : [];
    for (const { name, label, input, complaint } of parts) {
      const own = issues.filter(({ pointer }) => pointer === `/${name}`);
      input.ariaInvalid = own.length === 0 ? null : 'true';
      complaint.textContent = own.map(({ detail }) => `${label} ${detail}. `).join('');
    }
    const first = parts.find(({ input }) => input.ariaInvalid === 'true');
    first?.input.focus();
    message.textContent = first === undefined ? explain(error) : '';
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (form.ariaBusy === 'true') return;
    form.ariaBusy = 'true';
    const filled = parts.filter(({ optional, input }) => optional !== true || input.value !== '');
    const values = filled.map(({ name, type, input }) => [name, type === 'number' ? Number(input.value) : input.value]);
    await send(Object.fromEntries(values)).catch(complain);
    form.ariaBusy = 'false';
  });
  form.addEventListener('keydown', (event) => event.key === 'Escape' && cancel?.());
  return form;
}

/**
 * Writes what was changed in a record since it was read as `base`. Where someone else was faster, shows both versions
 * and asks. Gives the record as it is stored then; `undefined` where the person wants to go on editing.
 * @type {(path: string, fields: readonly Field[], mine: Values, base: { data: Values, etag: string })
 *   => Promise<Values | undefined>}
 */
export async function save(path, fields, mine, base) {
  const changes = Object.entries(mine).filter(([name, value]) => base.data[name] !== value);
  if (changes.length === 0) return base.data;
  const { status, data } = await call('PATCH', path, { body: Object.fromEntries(changes), ifMatch: base.etag });
  if (status !== 412) return data;
  const theirs = await call('GET', path);
  const choice = await chooseVersion(fields, mine, theirs.data);
  if (choice === 'theirs') return theirs.data;
  return choice === 'mine' ? save(path, fields, mine, theirs) : undefined;
}

/** @type {(fields: readonly Field[], mine: Values, theirs: Values) => Promise<string>} */
function chooseVersion(fields, mine, theirs) {
  const rows = fields.filter(({ type }) => type !== 'password').map(({ name, label }) => {
    const cells = [mine, theirs].map(({ [name]: value = '' }) =>
      h('td', { dir: 'auto' }, h(mine[name] === theirs[name] ? 'span' : 'mark', {}, String(value))));
    return h('tr', {}, h('th', { scope: 'row' }, label), ...cells);
  });
  const head = ['Field', 'Yours', 'Theirs'].map((text) => h('th', { scope: 'col' }, text));
  return ask('Someone else changed this meanwhile', [
    h('p', {}, 'It was saved by someone else after you began. Nothing is lost yet: which version is to stay?'),
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
  ], [['', 'Go on editing'], ['theirs', 'Take theirs'], ['mine', 'Keep mine', 'primary']]);
}
