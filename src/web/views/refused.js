// @ts-check
/** Reports what was refused of a bulk action. */
import { showNumber } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { h, set } from '../lib/dom.js';

/**
 * @import { Description } from '../types.js'
 * @import { Refusal } from '../state/change.js'
 */

/** How many causes are shown, and how many things are named for each. */
const [causesMax, namedMax] = [20, 5];

/**
 * Groups refusals by cause, the most frequent first: `Line 3, line 5 and 40 more: Price must be …`.
 * @type {(refusals: readonly Refusal[]) => Description[]}
 */
export function groupCauses(refusals) {
  /** @type {Map<string, string[]>} */ const causes = new Map();
  for (const { what, why } of refusals) {
    const all = causes.get(why);
    if (all) all.push(what);
    else causes.set(why, [what]);
  }
  const sorted = [...causes].sort(([, one], [, other]) => other.length - one.length);
  return sorted.slice(0, causesMax).map(([why, all]) => {
    const rest = all.length - namedMax;
    const named = all.slice(0, namedMax).join(', ');
    const more = rest > 0 ? ` and ${showNumber(rest)} more` : '';
    return h('li', `${named.charAt(0).toUpperCase()}${named.slice(1)}${more}: ${why}`);
  });
}

/**
 * Shows what was refused, if anything was, until the person closes it.
 * @type {(title: string, refusals: readonly Refusal[], save?: () => void) => Promise<string>}
 */
export async function report(title, refusals, save) {
  if (refusals.length === 0) return '';
  set('refused-save', { hidden: !save, onclick: save });
  set('refused-list', false, ...groupCauses(refusals));
  return ask('refused', title);
}
