// @ts-check
/**
 * The control for a reference: a combobox (WAI-ARIA) that finds records by their texts, with chips where several can be
 * chosen. Its text has an id a line; `?lamp` is a line that is typed, but not chosen yet.
 */
import { bdi, button, h, inputOf } from './dom.js';
import { isAllowed, targetOf, toShow } from './model.js';
import { address, collectionOf, draw, state } from './state.js';
import { find, nameOf } from './values.js';

/** @import { Attributes, Collection, Description, Field, Row } from './types.js' */

const suggestionsMax = 8;

/** The combobox with suggestions; one at a time. `active`: the one that Enter takes. */
const open = {
  id: '',
  text: '',
  active: 0,
  /** @type {readonly Row[] | undefined} */ found: undefined,
  /** Whether Enter was pressed before the suggestions came. */ isTaking: false,
};
const close = () => (open.id = '');

/** Returns the collection that a person chooses from, if they may list it. @param {Field} field */
export function choicesOf(field) {
  const target = collectionOf(targetOf(field) ?? '');
  return target && isAllowed(target, 'list', state.me?.role) ? target : undefined;
}

/** The text of a control for reading: names in place of ids. @type {(field: Field, text: string) => string} */
export function readable(field, text) {
  const target = targetOf(field);
  const name = (/** @type {string} */ line) =>
    line.startsWith('?') ? line.slice(1) : nameOf(`${target}`, line);
  return target && text ? text.split('\n').map(name).join(', ') : text;
}

/**
 * @type {(field: Field, target: Collection, value: string, onText: (text: string) => void, more?: Attributes) =>
 *   Description}
 */
export function combobox(field, target, value, onText, more = {}) {
  const { name, kind } = field;
  const { nameField, fields, one } = target;
  const isList = kind === 'list';
  const id = `${more['id'] ?? `filter-${name}`}`;
  const lines = value.split('\n').filter(Boolean);
  const typed = lines.find((line) => line.startsWith('?'))?.slice(1);
  const chosen = lines.filter((line) => !line.startsWith('?'));
  const text = typed ?? (isList ? '' : chosen.map((each) => nameOf(target.name, each)).join(''));
  const isOpen = open.id === id;
  const found = isOpen
    ? open.found?.filter((row) => !chosen.includes(`${row.id}`) || !isList)
    : undefined;
  const write = (/** @type {string[]} */ ids, rest = '') =>
    onText([...ids, rest && `?${rest}`].filter(Boolean).join('\n'));
  const take = (/** @type {Row | undefined} */ row) => {
    if (!row) return;
    write(isList ? [...chosen, `${row.id}`] : [`${row.id}`]);
    close();
  };
  const second = fields.find(
    (each) => each.shown && !['id', nameField].includes(each.name) && secondKinds.has(each.kind),
  );
  const suggest = async (/** @type {string} */ words) => {
    if (open.id !== id || open.text !== words)
      Object.assign(open, { id, text: words, active: 0, found: undefined, isTaking: false });
    const query = !words ? {} : target.hasSearch ? { q: words.slice(0, wordsMax) } : { id: words };
    const rows = await find(
      target.name,
      { limit: `${suggestionsMax}`, ...query },
      second?.name,
    ).catch(() => []);
    if (open.id !== id || open.text !== words) return;
    open.found = rows;
    if (open.isTaking) take(rows[0]);
    draw();
  };
  const move = (/** @type {number} */ step) => {
    if (!isOpen) return suggest(typed ?? '');
    const { length } = found ?? [];
    open.active = (open.active + step + length) % (length || 1);
    return undefined;
  };
  /** @type {{ [key: string]: (() => unknown) | undefined }} */
  const actions = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Escape: close,
    Enter: () => (found ? take(found[open.active]) : (open.isTaking = true)),
  };
  const onkeydown = (/** @type {Event} */ event) => {
    if (!(event instanceof KeyboardEvent) || event.ctrlKey || event.metaKey) return;
    const action = open.id === id || event.key.startsWith('Arrow') ? actions[event.key] : undefined;
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    return action();
  };
  const oninput = (/** @type {Event} */ event) => {
    const words = inputOf(event);
    write(isList ? chosen : [], words);
    return suggest(words.trim());
  };
  // Who types a whole name and goes on has chosen it.
  const onblur = () => {
    if (!isOpen) return;
    take(found?.find((row) => `${row[nameField]}`.toLowerCase() === typed?.trim().toLowerCase()));
    close();
  };
  const option = (/** @type {Row} */ row, /** @type {number} */ index) =>
    h(
      'li',
      {
        id: `${id}-${index}`,
        key: row.id,
        role: 'option',
        'aria-selected': `${index === open.active}`,
        onclick: () => take(row),
        onmousedown: (event) => event.preventDefault(),
      },
      bdi(`${row[nameField]}`),
      h('small', second ? bdi(toShow(second, row[second.name])) : `${one} ${row.id}`),
    );
  return h(
    'div.combo stack tight',
    { key: more['key'] },
    isList &&
      chosen.length > 0 &&
      h(
        'div.row tight',
        chosen.map((each) =>
          h(
            'span.chip row',
            { key: each },
            h('a', { href: address(target.name, each) }, bdi(nameOf(target.name, each))),
            button(
              '×',
              () =>
                write(
                  chosen.filter((other) => other !== each),
                  typed,
                ),
              {
                'aria-label': `Remove ${nameOf(target.name, each)}`,
              },
            ),
          ),
        ),
      ),
    h('input', {
      name,
      placeholder: `Search ${target.title.toLowerCase()}`,
      ...more,
      id,
      value: text,
      dir: 'auto',
      autocomplete: 'off',
      role: 'combobox',
      'aria-autocomplete': 'list',
      'aria-expanded': `${!!found?.length}`,
      'aria-controls': `${id}-choices`,
      'aria-activedescendant': !!found?.length && `${id}-${open.active}`,
      onclick: () => suggest(typed ?? ''),
      oninput,
      onchange: (event) => inputOf(event) !== text && oninput(event),
      onkeydown,
      onblur,
    }),
    h(
      'ul.choices card lift',
      { id: `${id}-choices`, role: 'listbox', 'aria-label': target.title },
      (found ?? []).map(option),
    ),
    found?.length === 0 &&
      h('small', { role: 'status' }, open.text ? `No ${one} matches` : `There is no other ${one}`),
    !isList &&
      typed === undefined &&
      !!more['id'] &&
      chosen.map((each) =>
        h('small', h('a', { href: address(target.name, each) }, `Open this ${one}`)),
      ),
  );
}

/** Kinds of fields that tell records of one name apart. */
const secondKinds = new Set(['text', 'email', 'choice', 'number', 'integer', 'time']);
/** The longest search text. */
const wordsMax = 64;
