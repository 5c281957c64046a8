// @ts-check
/** The form that adds a filter to the address of a list. */
import { control } from './control.js';
import { h, inputOf, onClick, set } from './dom.js';
import { draw, go, withQuery } from './state.js';
import { fromText } from './texts.js';

/** The filter being entered: a parameter of the list, and the text of its value. */
const filter = { isOpen: false, parameter: '', text: '', problem: '' };

/** Opens or closes the form. */
export function openFilter(isOpen = !filter.isOpen) {
  Object.assign(filter, { isOpen, text: '', problem: '' });
  draw(isOpen ? '#condition' : undefined);
}

/** Draws the form and returns whether it is open. @param {import('./types.js').Collection} collection */
export function drawFilter({ filters, hasOwners }) {
  const { isOpen, parameter, text, problem } = filter;
  const { name = '', field } = filters.find((each) => each.name === parameter) ?? filters[0] ?? {};
  set('filter', { hidden: !isOpen });
  set('filter-mine', { hidden: !hasOwners });
  set('filter-problem', problem);
  const options = filters.map((each) =>
    h('option', { value: each.name, key: each.name }, each.text),
  );
  set('condition', { value: name }, ...options);
  if (!field) return isOpen;
  const label = { 'aria-label': 'Value', key: field.name };
  set(
    'filter-value',
    control(field, text, (typed) => (filter.text = typed), label),
  );
  set('filters', {
    onsubmit(event) {
      event.preventDefault();
      const read = fromText(field, filter.text, true);
      filter.problem = read.problem ? `The value ${read.problem}.` : '';
      if (read.problem) return undefined;
      openFilter(false);
      return go(withQuery({ [name]: `${read.value}` }));
    },
  });
  return isOpen;
}

onClick('filter-mine', () => go(withQuery({ owner: 'me' })));
set('condition', { onchange: (event) => (filter.parameter = inputOf(event)) });
