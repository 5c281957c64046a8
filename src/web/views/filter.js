// @ts-check
/** The form that adds a filter to a list's address. */
import { fromText, toText } from '../api/texts.js';
import { draw, h, readInput, onClick, part, set } from '../lib/dom.js';
import { go, withQuery } from '../state/route.js';
import { control } from './control.js';

/** @import { Collection } from '../types.js' */

/** The filter being entered: a parameter of the list, and the text of its value. */
const filter = { parameter: '', text: '', problem: '', replaced: '' };

/** Begins with an existing filter. @type {(of: Collection, name: string, value: string) => void} */
export function edit({ filters }, name, value) {
  const field = filters.find((each) => each.name === name)?.field;
  const text = field?.kind === 'time' ? toText(field, value) : value;
  Object.assign(filter, { parameter: name, text, problem: '', replaced: name });
  draw('#filter-value input, #filter-value select');
}

/** @param {Collection} collection */
export function drawFilter({ filters, hasOwners }) {
  const { parameter, text, problem } = filter;
  const { name = '', field } = filters.find((each) => each.name === parameter) ?? filters[0] ?? {};
  set('filter-mine', { hidden: !hasOwners });
  set('filter-problem', problem);
  const option = (/** @type {string} */ value, /** @type {string} */ text) =>
    h('option', { value }, text);
  const labels = new Set(filters.map((each) => each.field.label));
  const conditions = filters.filter((each) => each.field.label === field?.label);
  set('condition', { value: name }, ...conditions.map((each) => option(each.name, each.operator)));
  const onchange = (/** @type {Event} */ event) => {
    const first = filters.find((each) => each.field.label === readInput(event));
    Object.assign(filter, { parameter: first?.name, text: '' });
  };
  const value = field?.label ?? '';
  set('filter-field', { value, onchange }, ...[...labels].map((each) => option(each, each)));
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
      return !read.problem && add({ [filter.replaced]: '', [name]: `${read.value}` });
    },
    ontoggle: (event) =>
      event instanceof ToggleEvent &&
      event.newState === 'closed' &&
      Object.assign(filter, { text: '', problem: '', replaced: '' }),
  });
}

/** @param {{ [parameter: string]: string }} parameters */
function add(parameters) {
  part('filter', HTMLElement).hidePopover();
  return go(withQuery(parameters));
}

onClick('filter-mine', () => add({ owner: 'me' }));
set('condition', { onchange: (event) => (filter.parameter = readInput(event)) });
