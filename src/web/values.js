// @ts-check
/** Shows values as what they are: a choice as a pill, a truth as a mark, an address as a link. */
import { bdi, h } from './dom.js';
import { elementOf, toShow } from './model.js';
import { nameOf } from './names.js';
import { showAge, showTime } from './numbers.js';
import { address } from './state.js';

/** @import { Child, Field } from './types.js' */

/** Shows how long ago a point in time is, and the time itself on demand. @param {string} iso */
export const age = (iso) => h('time', { datetime: iso, title: showTime(iso) }, showAge(iso));

/** Describes a value for reading. @type {(field: Field, value: unknown) => Child} */
export function show(field, value) {
  const { kind } = field;
  const text = toShow(field, value);
  if (value === undefined) return h('span.quiet', text);
  const target = field.schema['x-references'];
  if (target) {
    const href = address(target, `${value}`);
    return h('a', { href }, bdi(nameOf(target, value)));
  }
  if (Array.isArray(value)) {
    const element = elementOf(field);
    return h(
      'span.row tight',
      value.map((each) => h('span.pill', show(element, each))),
    );
  }
  if (kind === 'boolean') {
    const look = { class: value ? 'mark' : 'quiet', role: 'img', 'aria-label': text, title: text };
    return h('span', look, value ? '✓' : '✕');
  }
  if (kind === 'choice') return h('span.pill', text);
  if (kind === 'time') return age(`${value}`);
  if (kind === 'email') return h('a', { href: `mailto:${value}` }, bdi(text));
  const isAddress = kind === 'text' && /^https?:\/\/\S+$/u.test(text);
  if (isAddress) return h('a', { href: text, target: '_blank', rel: 'noopener' }, bdi(text));
  return bdi(text);
}
