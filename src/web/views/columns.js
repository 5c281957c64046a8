// @ts-check
/** Chooses, orders and sizes the columns of a list, and keeps them in this browser. */
import { button, draw, h, part, set } from '../lib/dom.js';
import { listColumns, keptColumns } from '../state/list.js';
import { storage } from '../state/me.js';

/** @import { Collection, Field } from '../types.js' */

const [widthMin, widthMax] = [48, 640];

/** @type {(collection: Collection, columns: readonly Field[], widths?: Map<string, number>) => void} */
function keep({ name }, columns, widths = keptColumns(name)) {
  const all = columns.map((each) => [each.name, widths.get(each.name) ?? 0]);
  storage[`columns of ${name}`] = JSON.stringify(all);
}

/**
 * @type {(event: Event, collection: Collection, name: string) => void}
 */
export function drag(event, collection, name) {
  const handle = event.target;
  if (!(event instanceof PointerEvent) || !(handle instanceof HTMLElement)) return;
  const columns = listColumns(collection);
  const kept = keptColumns(collection.name);
  const heads = document.querySelectorAll('#list thead th');
  const widths = new Map(
    columns.map((each, index) => [
      each.name,
      kept.get(each.name) || (heads[index]?.clientWidth ?? widthMin),
    ]),
  );
  const start = (widths.get(name) ?? 0) - event.clientX;
  handle.setPointerCapture(event.pointerId);
  handle.onpointermove = ({ clientX }) => {
    widths.set(name, Math.round(Math.min(Math.max(start + clientX, widthMin), widthMax)));
    keep(collection, columns, widths);
    draw();
  };
  handle.onlostpointercapture = () => (handle.onpointermove = null);
}

/** @param {Collection} collection */
export function drawColumns(collection) {
  if (!part('columns', HTMLElement).matches(':popover-open')) return;
  const { name, nameField, fields } = collection;
  const chosen = listColumns(collection);
  const others = fields.filter((each) => each.shown && !chosen.includes(each));
  const rows = [...chosen, ...others].map((field, index) => {
    const { label } = field;
    const checked = chosen.includes(field);
    const rest = chosen.filter((each) => each !== field);
    const swapped = () => chosen.with(index, chosen[index - 1] ?? field).with(index - 1, field);
    return h(
      'li.row one-line',
      { key: field.name },
      h(
        'label.grow',
        h('input', {
          type: 'checkbox',
          checked,
          disabled: field.name === nameField,
          onchange: () => keep(collection, checked ? rest : [...chosen, field]),
        }),
        label,
      ),
      checked &&
        index > 0 &&
        button('↑', () => keep(collection, swapped()), {
          'aria-label': `Move ${label} to the left`,
        }),
    );
  });
  set(
    'columns',
    h('ul.stack tight', rows),
    button('Reset columns', () => delete storage[`columns of ${name}`]),
  );
}
