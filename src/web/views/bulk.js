// @ts-check
import { call } from '../api/call.js';
import { showNumber } from '../api/model.js';
import { fromText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { button, h, readInput, set } from '../lib/dom.js';
import { createEach, rowNamer, setField } from '../state/change.js';
import { list, listPath, loadList, select } from '../state/list.js';
import { allows, count, say } from '../state/me.js';
import { control } from './control.js';
import { report } from './refused.js';
import { removeSoon } from './removal.js';

/** @import { Collection, Field, Row } from '../types.js' */

/** The field that the dialog sets, and its text. @type {{ field: Field | undefined, text: string }} */
const setting = { field: undefined, text: '' };

/** Describes the actions on the selected records. @param {Collection} collection */
export function drawSelection(collection) {
  drawField(collection);
  const { name } = collection;
  const { selected, total } = list;
  return h(
    'div.actions row',
    { id: 'selection', key: 'selection' },
    h('span.quiet', `${count(selected, collection)} selected`),
    selected.length < total &&
      button(
        `Select all ${showNumber(total)}`,
        async () => select(name, (await call('GET', listPath())).data, true),
        { id: 'bulk-all' },
      ),
    allows(collection, 'change') &&
      button('Set field…', () => askField(collection, selected), { id: 'bulk-set' }),
    allows(collection, 'create') &&
      button('Duplicate', () => duplicate(collection, selected), { id: 'bulk-copy' }),
    button(
      'Export',
      async () => (await import('./transfer.js')).saveRecords(collection, selected),
      { id: 'bulk-export' },
    ),
    button('Remove', () => removeSoon(collection, selected), { id: 'remove-selected' }),
    button('Clear', () => select(name, selected, false), { id: 'clear-selected' }),
  );
}

/** @param {Collection} collection */
const listSettable = ({ fields }) =>
  fields.filter(({ changed, kind }) => changed && kind !== 'password');

/** Draws what the dialog asks for. @param {Collection} collection */
function drawField(collection) {
  const { field, text } = setting;
  if (!field) return;
  const all = listSettable(collection);
  const onchange = (/** @type {Event} */ event) => {
    setting.field = all.find(({ name }) => name === readInput(event));
    setting.text = '';
  };
  set(
    'set-body',
    h(
      'select',
      { 'aria-label': 'Field', value: field.name, onchange },
      all.map(({ name, label }) => h('option', { value: name }, label)),
    ),
    control(field, text, (typed) => (setting.text = typed), {
      id: 'set-value',
      'aria-label': 'Value',
      key: field.name,
    }),
  );
}

/**
 * @type {(of: Collection, rows: readonly Row[]) => Promise<void>}
 */
async function askField(collection, rows) {
  Object.assign(setting, { field: listSettable(collection)[0], text: '' });
  const isConfirmed = await ask('set-field', count(rows, collection));
  const { field, text } = setting;
  setting.field = undefined;
  if (!isConfirmed || !field) return;
  const { name, label } = field;
  const { value, problem } = fromText(field, text);
  if (problem) return say(`${label} ${problem}.`);
  await setField(
    collection,
    rows,
    name,
    () => value,
    (refusals) => report(`Not all of ${count(rows, collection)} changed`, refusals),
  );
}

/**
 * @type {(of: Collection, rows: readonly Row[]) => Promise<void>}
 */
async function duplicate(collection, rows) {
  const names = collection.fields.flatMap(({ name, created }) =>
    created && name !== 'id' ? name : [],
  );
  const copies = rows.map((row) => ({
    row,
    record: Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name))),
  }));
  const refusals = await createEach(collection, copies, ({ row }) => rowNamer(collection)(row));
  say(`Duplicated ${count({ length: rows.length - refusals.length }, collection)}.`);
  select(collection.name, rows, false);
  await loadList(true);
  await report(`Not all of ${count(rows, collection)} copied`, refusals);
}
