// @ts-check
/** The form that adds a filter to the address of a list. */
import { control } from './control.js';
import { h, inputOf, onClick, part, set } from './dom.js';
import { go, withQuery } from './state.js';
import { fromText } from './texts.js';

/** The filter being entered: a parameter of the list, and the text of its value. */
const filter = { parameter: '', text: '', problem: '' };

/** Draws the form. @param {import('./types.js').Collection} collection */
export function drawFilter({ filters, hasOwners }) {
  const { parameter, text, problem } = filter;
  const { name = '', field } = filters.find((each) => each.name === parameter) ?? filters[0] ?? {};
  set('filter-mine', { hidden: !hasOwners });
  set('filter-problem', problem);
  const options = filters.map((each) =>
    h('option', { value: each.name, key: each.name }, each.text),
  );
  set('condition', { value: name }, ...options);
  if (!field) return;
  const label = { 'aria-label': 'Value', key: field.name };
  set(
    'filter-value',
    control(field, text, (typed) => (filter.text = typed), label),
  );
  set('filter', {
    onsubmit(event) {
      event.preventDefault();
      const read = fromText(field, filter.text, true);
      filter.problem = read.problem ? `The value ${read.problem}.` : '';
      return !read.problem && add({ [name]: `${read.value}` });
    },
    ontoggle: () => Object.assign(filter, { text: '', problem: '' }),
  });
}

/** @param {{ [parameter: string]: string }} parameters */
function add(parameters) {
  part('filter', HTMLElement).hidePopover();
  return go(withQuery(parameters));
}

onClick('filter-mine', () => add({ owner: 'me' }));
set('condition', { onchange: (event) => (filter.parameter = inputOf(event)) });
