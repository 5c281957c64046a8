// @ts-check
/** Draws the input or select element for a field. */
import { h, readInput } from '../lib/dom.js';
import { findChoices, reference } from './reference.js';

/** @import { Attributes, Description, Field } from '../types.js' */

/** Labels of choices that differ from their value. @type {{ [value: string]: string }} */
const words = { '': '–', true: 'Yes', false: 'No' };
/**
 * Values of `autocomplete`, for fields that the browser may fill in.
 * @type {{ [field: string]: string }}
 */
const completions = { currentPassword: 'current-password', password: 'new-password' };
/** @type {{ [kind: string]: string }} */
const types = { time: 'datetime-local', email: 'email', password: 'password', url: 'url' };

/**
 * @type {(field: Field, value: string, onText: (text: string) => void, more?: Attributes) => Description}
 */
export function control(field, value, onText, more) {
  const target = findChoices(field);
  if (target) return reference(field, target, value, onText, more);
  const { name, label, kind, declared, isOptional } = field;
  const take = (/** @type {Event} */ event) => onText(readInput(event));
  const common = { name, value, oninput: take, onchange: take, ...more };
  // A value without a declared kind gets the control of its likely kind if it is short.
  const like = kind === 'json' && !/[\n{[]/u.test(value) ? declared.like : undefined;
  const isTruth = kind === 'boolean' || (like === 'boolean' && /^(?:true|false|)$/u.test(value));
  const values = isTruth ? ['true', 'false'] : declared.values;
  if (values) {
    const offered = value && !isOptional ? values : ['', ...values];
    return h(
      'select',
      common,
      offered.map((each) => h('option', { value: each }, words[each] ?? each)),
    );
  }
  if (kind === 'list' && declared.of?.values) {
    const chosen = new Set(value.split('\n').filter(Boolean));
    const box = (/** @type {string} */ each) => {
      const checked = chosen.has(each);
      const onchange = () => {
        chosen[checked ? 'delete' : 'add'](each);
        return onText([...chosen].join('\n'));
      };
      return h('label', h('input', { type: 'checkbox', checked, onchange }), each);
    };
    return h('fieldset.row', { 'aria-label': label, ...more }, declared.of.values.map(box));
  }
  if (kind === 'json' && !declared.like)
    return h('textarea.code', { spellcheck: 'false', rows: 3, ...common, autocomplete: 'off' });
  if (!like && ['json', 'list', 'long'].includes(kind))
    return h('textarea', { dir: 'auto', rows: 3, ...common });
  const isNumber = [kind, like].some((each) => each === 'number' || each === 'integer');
  return h('input', {
    type: types[kind] ?? 'text',
    dir: (kind === 'text' || !!like) && 'auto',
    inputmode: isNumber && 'decimal',
    autocomplete: completions[name] ?? 'off',
    ...common,
  });
}
