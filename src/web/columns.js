// @ts-check
/** The form that chooses and orders the columns of a list. This browser keeps them. */
import { button, h, set } from './dom.js';
import { columnsOf } from './records.js';

/** @param {import('./types.js').Collection} collection */
export function drawColumns(collection) {
  const { name, nameField, fields } = collection;
  const chosen = columnsOf(collection);
  const keep = (/** @type {typeof chosen} */ columns) =>
    void (localStorage[`columns ${name}`] = columns.map((each) => each.name).join());
  const others = fields.filter((each) => each.shown && !chosen.includes(each));
  const rows = [...chosen, ...others].map((field, index) => {
    const checked = chosen.includes(field);
    const rest = chosen.filter((each) => each !== field);
    return h(
      'li.row spread one-line',
      { key: field.name },
      h(
        'label',
        h('input', {
          type: 'checkbox',
          checked,
          disabled: field.name === nameField,
          onchange: () => keep(checked ? rest : [...chosen, field]),
        }),
        field.label,
      ),
      checked &&
        index > 0 &&
        button(
          '↑',
          () => keep(chosen.with(index, chosen[index - 1] ?? field).with(index - 1, field)),
          { 'aria-label': `Move ${field.label} to the left` },
        ),
    );
  });
  set(
    'columns',
    h('ul.stack tight', rows),
    button('As at first', () => delete localStorage[`columns ${name}`]),
  );
}
