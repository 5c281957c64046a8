// @ts-check
import { call } from '../api/call.js';
import { fromText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { h, readInput, set } from '../lib/dom.js';
import { createEach, rowNamer, setField } from '../state/change.js';
import { collectionNow, list, listPath, loadList, select } from '../state/list.js';
import { count } from '../state/me.js';
import { say } from '../state/news.js';
import { control } from './control.js';
import { report } from './refused.js';

/** @import { Collection, Row } from '../types.js' */

/** Applies `set`, `copy`, `export` or `all` to the selected records. @param {string} what */
export async function withSelected(what) {
  const collection = collectionNow();
  const { selected } = list;
  if (!collection) return;
  if (what === 'set') await askField(collection, selected);
  else if (what === 'copy') await duplicate(collection, selected);
  else if (what === 'export') (await import('./transfer.js')).saveRecords(collection, selected);
  else select(collection.name, (await call('GET', listPath())).data, true);
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
  const refusals = await setField(collection, rows, name, () => value);
  await report(`Not all of ${count(rows, collection)} changed`, refusals);
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
