// @ts-check
/** Draws the input or select element for a field. */
import { h, inputOf } from './dom.js';
import { find, nameOf } from './values.js';
import { address, draw } from './state.js';

/** @import { Attributes, Description, Field } from './types.js' */

/** Labels of choices that are not shown by their value. @type {{ [value: string]: string }} */
const words = { '': '–', true: 'Yes', false: 'No' };
/** Values of `autocomplete` by field, for what the browser may fill in. @type {{ [field: string]: string }} */
const completions = { currentPassword: 'current-password', password: 'new-password' };
/** @type {{ [kind: string]: string }} */
const types = { time: 'datetime-local', email: 'email', password: 'password' };

/**
 * @type {(field: Field, value: string, onText: (text: string) => void, more?: Attributes) => Description}
 */
export function control({ name, kind, schema, isOptional }, value, onText, more) {
  const take = (/** @type {Event} */ event) => onText(inputOf(event));
  const common = { name, value, oninput: take, onchange: take, ...more };
  const values = kind === 'boolean' ? ['true', 'false'] : schema.enum?.map(String);
  if (values) {
    const offered = value && !isOptional ? values : ['', ...values];
    return h(
      'select',
      common,
      offered.map((each) => h('option', { key: each, value: each }, words[each] ?? each)),
    );
  }
  if (kind === 'json')
    return h('textarea.code', { spellcheck: 'false', rows: 3, ...common, autocomplete: 'off' });
  if (kind === 'list' || kind === 'long') return h('textarea', { dir: 'auto', rows: 3, ...common });
  const target = schema['x-references'];
  if (target) {
    const list = `choices-${name}`;
    const search = (/** @type {Event} */ event) => {
      take(event);
      void suggest(target, inputOf(event));
    };
    return h(
      'div.stack tight',
      h('input', {
        placeholder: 'Search',
        ...common,
        list,
        oninput: search,
        onfocus: search,
        autocomplete: 'off',
      }),
      h(
        'datalist',
        { id: list },
        found.map(({ id }) => h('option', { key: id, value: id }, nameOf(target, id))),
      ),
      /^\d+$/u.test(value) &&
        h('small', h('a', { href: address(target, value) }, nameOf(target, value))),
    );
  }
  const isNumber = kind === 'number' || kind === 'integer';
  return h('input', {
    type: types[kind] ?? 'text',
    dir: kind === 'text' && 'auto',
    inputmode: isNumber && 'decimal',
    autocomplete: completions[name] ?? 'off',
    ...common,
  });
}

/** Records that a reference may be to. @type {readonly import('./types.js').Row[]} */ let found =
  [];
let searched = '';

/** Finds records by a part of their texts. @type {(target: string, text: string) => Promise<void>} */
async function suggest(target, text) {
  searched = `${target} ${text}`;
  const isId = /^\d*$/u.test(text);
  const rows = await find(target, { limit: '8', ...(!isId && { q: text }) }).catch(() => []);
  if (searched !== `${target} ${text}`) return;
  found = rows;
  draw();
}
