// @ts-check
/** A table cell, which shows a value and edits it in place. */
import { own, findTarget, toShow } from '../api/model.js';
import { fromText, toText } from '../api/texts.js';
import { button, draw, h, inNextFrame } from '../lib/dom.js';
import { setField } from '../state/change.js';
import { toTitle } from '../state/names.js';
import { say } from '../state/me.js';
import { control } from './control.js';
import { showAligned } from './parts.js';

/**
 * @import { Collection, Description, Field, Row } from '../types.js'
 * @typedef {{ collection: Collection, row: Row, field: Field, text: string }} Editing
 */

/** @type {Editing | undefined} */ let editing;

export const close = () => void (editing = undefined);

/** @param {Row} row */
export const isEdited = (row) => editing?.row === row;

/** Kinds that are edited in the form. */
const elsewhere = new Set(['json', 'long', 'list', 'password']);

/** @type {(collection: Collection, row: Row, field: Field) => void} */
function begin(collection, row, field) {
  editing = { collection, row, field, text: toText(field, own(row, field.name)) };
  draw('#editor');
  inNextFrame(() => inNextFrame(openChoices));
}

/** Opens the choices at once, if the browser allows it. */
function openChoices() {
  const at = document.getElementById('editor');
  try {
    if (at instanceof HTMLSelectElement) at.showPicker();
    else if (at instanceof HTMLInputElement) at.select();
  } catch {}
}

async function commit() {
  if (!editing) return;
  const { collection, row, field, text } = editing;
  if (text === toText(field, own(row, field.name))) return end();
  const { value, problem } = fromText(field, text);
  if (problem) return say(`${field.label} ${problem}.`);
  end();
  await change(collection, row, field, value);
}

/** @type {(collection: Collection, row: Row, field: Field, value: unknown) => Promise<void>} */
const change = (collection, row, { name }, value) =>
  setField(
    collection,
    [row],
    name,
    () => value,
    ([refusal]) => refusal && say(refusal.why),
  );

function end() {
  const id = editing?.row.id;
  editing = undefined;
  // Someone who has gone on to another control stays there.
  draw(document.activeElement?.id === 'editor' ? `#${CSS.escape(`open-${id}`)}` : undefined);
}

/** @param {Editing} of */
function editor(of) {
  const { field } = of;
  const isChosen = field.kind === 'choice' || field.kind === 'boolean';
  const isReference = !!findTarget(field);
  const type = (/** @type {string} */ text) => {
    of.text = text;
    return (isChosen || (isReference && !text.startsWith('?'))) && commit();
  };
  return control(field, of.text, type, {
    id: 'editor',
    'aria-label': field.label,
    // The browser's own list of choices leaves the focus in place.
    onblur: (event) =>
      isChosen
        ? event instanceof FocusEvent && event.relatedTarget && end()
        : !isReference && commit(),
    onkeydown(event) {
      if (!(event instanceof KeyboardEvent) || !['Enter', 'Escape'].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      return event.key === 'Enter' ? commit() : end();
    },
  });
}

/**
 * Describes a cell. If `isDirect`, a click edits it; otherwise a double click or Enter.
 * @type {(of: Collection, field: Field, row: Row, mayChange: boolean, digits: Map<string, number>,
 *   isDirect?: boolean) => Description}
 */
export function cell(collection, field, row, mayChange, digits, isDirect = false) {
  const { kind, name, label } = field;
  const value = own(row, name);
  if (editing?.row === row && editing.field.name === name)
    return h('td.editing', { key: name }, editor(editing));
  const isOpen = mayChange && field.changed && !elsewhere.has(kind) && !field.schema.properties;
  if (isOpen && kind === 'boolean') {
    return h(
      'td',
      { key: name },
      h('input', {
        type: 'checkbox',
        role: 'switch',
        checked: value === true,
        'aria-label': `${label}: ${toTitle(collection, row)}`,
        // Changes once the server has stored it.
        onclick(/** @type {Event} */ event) {
          event.preventDefault();
          return change(collection, row, field, value !== true);
        },
      }),
    );
  }
  const shown = showAligned(field, value, digits);
  const edit = () => begin(collection, row, field);
  const text = findTarget(field) ? '' : toShow(field, value);
  const look = { key: name, class: kind, title: text || false };
  if (isOpen && kind === 'choice')
    return h(
      'td',
      look,
      button(shown, edit, { class: 'plain', 'aria-label': `${label}: ${text}. Change it` }),
    );
  if (!isOpen) return h('td', look, shown);
  const onkeydown = (/** @type {Event} */ event) => {
    const isEnter = event instanceof KeyboardEvent && event.key === 'Enter';
    if (!isEnter || event.target !== event.currentTarget) return;
    event.preventDefault();
    edit();
  };
  const onclick = (/** @type {Event} */ event) => {
    if (event.target instanceof Element && !event.target.closest('a')) edit();
  };
  return h(
    'td',
    { ...look, tabindex: -1, onkeydown, [isDirect ? 'onclick' : 'ondblclick']: onclick },
    shown,
  );
}
