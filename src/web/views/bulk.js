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

/** @import { Collection, Row } from '../types.js' */

/** Describes the actions on the selected records. @param {Collection} collection */
export function drawSelection(collection) {
  const { name } = collection;
  const { selected, total } = list;
  const selectAll = async () => select(name, (await call('GET', listPath())).data, true);
  const save = async () => (await import('./transfer.js')).saveRecords(collection, selected);
  return h(
    'div.actions row',
    { id: 'selection', key: 'selection' },
    h('span.quiet', `${count(selected, collection)} selected`),
    selected.length < total &&
      button(`Select all ${showNumber(total)}`, selectAll, { id: 'bulk-all' }),
    allows(collection, 'change') &&
      button('Set field…', () => askField(collection, selected), { id: 'bulk-set' }),
    allows(collection, 'create') &&
      button('Duplicate', () => duplicate(collection, selected), { id: 'bulk-copy' }),
    button('Export', save, { id: 'bulk-export' }),
    button('Remove', () => removeSoon(collection, selected), { id: 'remove-selected' }),
    button('Clear', () => select(name, selected, false), { id: 'clear-selected' }),
  );
}

/**
 * @type {(of: Collection, rows: readonly Row[]) => Promise<void>}
 */
async function askField(collection, rows) {
  const fields = collection.fields.filter(({ changed, kind }) => changed && kind !== 'password');
  let [field] = fields;
  let text = '';
  const show = () => {
    if (!field) return;
    const option = ({ name = '', label = '' }) => h('option', { value: name }, label);
    const onchange = (/** @type {Event} */ event) => {
      field = fields.find(({ name }) => name === readInput(event));
      text = '';
      show();
    };
    const type = (/** @type {string} */ typed) => {
      text = typed;
      show();
    };
    set(
      'set-body',
      h('select', { 'aria-label': 'Field', value: field.name, onchange }, fields.map(option)),
      control(field, text, type, { id: 'set-value', 'aria-label': 'Value', key: field.name }),
    );
  };
  show();
  if (!(await ask('set-field', count(rows, collection))) || !field) return;
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
