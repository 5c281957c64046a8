// @ts-check
/** Draws the input or select element for a field. */
import { findTarget, toShow } from '../api/model.js';
import { combobox } from '../lib/combobox.js';
import { bdi, chip, h, readInput } from '../lib/dom.js';
import { allows, findCollection } from '../state/me.js';
import { find, findName, toTitle } from '../state/names.js';
import { address } from '../state/route.js';

/** @import { Attributes, Collection, Description, Field, Suggestion } from '../types.js' */

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
  if (kind === 'boolean' && value && !isOptional) {
    const checked = value === 'true';
    const onchange = () => onText(`${!checked}`);
    return h('input', { name, type: 'checkbox', role: 'switch', checked, onchange, ...more });
  }
  const values = isTruth ? ['true', 'false'] : declared.values;
  if (values) {
    const offered = value && !isOptional ? values : ['', ...values];
    return h(
      'select',
      common,
      offered.map((each) => h('option', { value: each }, each ? toShow(field, each) : '–')),
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
  if (!like && ['json', 'list', 'long'].includes(kind)) {
    const isCode = kind === 'json';
    const look = { dir: 'auto', rows: 3, spellcheck: `${!isCode}` };
    return h(isCode ? 'textarea.code' : 'textarea', { ...look, ...common });
  }
  const isNumber = ['number', 'integer'].includes(like ?? kind);
  return h('input', {
    type: types[kind] ?? 'text',
    dir: (kind === 'text' || !!like) && 'auto',
    inputmode: isNumber && 'decimal',
    autocomplete: completions[name] ?? 'off',
    ...common,
  });
}

const [suggestionsMax, foundMax, wordsMax] = [8, 100, 64];
/** Kinds that distinguish records with the same name. */
const secondKinds = new Set(['text', 'email', 'choice', 'number', 'integer', 'time']);

/** Returns the collection to choose from, if the person may list it. @param {Field} field */
export function findChoices(field) {
  const target = findCollection(findTarget(field) ?? '');
  return target && allows(target, 'list') ? target : undefined;
}

/**
 * The text of a control for reading, with names in place of ids.
 * @type {(field: Field, text: string) => string}
 */
export function readable(field, text) {
  const target = findTarget(field);
  if (!target || !text) return text;
  return text
    .split('\n')
    .map((line) => (line.startsWith('?') ? line.slice(1) : findName(target, line)))
    .join(', ');
}

/**
 * @type {(target: Collection, words: string, limit?: number) => Promise<Suggestion[]>}
 */
export async function suggestions(target, words, limit = suggestionsMax) {
  const { name, nameField, fields, hasSearch, one } = target;
  const second = fields.find(
    (each) =>
      each.shown && each.name !== 'id' && each.name !== nameField && secondKinds.has(each.kind),
  );
  const query = words && (hasSearch ? { q: words.slice(0, wordsMax) } : { id: words });
  const rows = await find(name, { limit: `${words ? foundMax : limit}`, ...query }, second?.name);
  const typed = words.toLowerCase();
  /** Exact matches come first, then names that begin with the text. @param {string} text */
  const rank = (text) => [text === typed, text.startsWith(typed), true].indexOf(true);
  return rows
    .map((row) => ({
      key: `${row.id}`,
      text: toTitle(target, row),
      more: second ? toShow(second, row[second.name]) : `${one} ${row.id}`,
    }))
    .sort((one, other) => rank(one.text.toLowerCase()) - rank(other.text.toLowerCase()))
    .slice(0, limit);
}

/**
 * @type {(field: Field, target: Collection, value: string, onText: (text: string) => void, more?: Attributes) =>
 *   Description}
 */
function reference({ name, kind }, target, value, onText, more = {}) {
  const isList = kind === 'list';
  const lines = value.split('\n').filter(Boolean);
  const typed = lines.find((line) => line.startsWith('?'))?.slice(1);
  const chosen = lines.filter((line) => !line.startsWith('?'));
  const write = (/** @type {string[]} */ ids, rest = '') =>
    onText([...ids, rest && `?${rest}`].filter(Boolean).join('\n'));
  const chips = chosen.map((each) => {
    const text = findName(target.name, each);
    const link = h(
      'a',
      { href: address(target.name, each) },
      isList ? bdi(text) : `Open this ${target.one}`,
    );
    const others = chosen.filter((other) => other !== each);
    return isList
      ? chip(each, `Remove ${text}`, () => write(others, typed), link)
      : h('small', { key: each }, link);
  });
  const options = {
    id: `${more['id'] ?? `filter-${name}`}`,
    text: typed ?? (isList ? '' : chosen.map((each) => findName(target.name, each)).join('')),
    nothing: `No ${target.one} matches`,
    find: async (/** @type {string} */ words) => {
      const all = await suggestions(target, words);
      return isList ? all.filter(({ key }) => !chosen.includes(key)) : all;
    },
    type: (/** @type {string} */ text) => write(isList ? chosen : [], text),
    take: (/** @type {{ key: string }} */ { key }) => write(isList ? [...chosen, key] : [key]),
  };
  return h(
    'div.combo stack tight',
    { key: more['key'] },
    isList && h('div.row tight', chips),
    combobox(options, { name, placeholder: `Search ${target.title.toLowerCase()}`, ...more }),
    !isList && !!more['id'] && chips,
  );
}
