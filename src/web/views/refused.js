// @ts-check
/** Reports what was refused of a bulk action. */
import { showNumber } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { button, h, set } from '../lib/dom.js';

/**
 * @import { Child, Description } from '../types.js'
 * @import { Refusal } from '../state/change.js'
 */

/** The number of causes shown, and of things named for each. */
const [causesMax, namedMax] = [20, 5];

/**
 * Groups refusals by cause, the most frequent first: `Line 3, line 5 and 40 more: Price must be …`.
 * @type {(refusals: readonly Refusal[]) => Description[]}
 */
export function groupCauses(refusals) {
  const causes = [...Map.groupBy(refusals, ({ why }) => why)];
  causes.sort(([, one], [, other]) => other.length - one.length);
  return causes.slice(0, causesMax).map(([why, all]) => {
    const rest = all.length - namedMax;
    const named = all
      .slice(0, namedMax)
      .map(({ what }) => what)
      .join(', ');
    const more = rest > 0 ? ` and ${showNumber(rest)} more` : '';
    return h('li', `${named.charAt(0).toUpperCase()}${named.slice(1)}${more}: ${why}`);
  });
}

/**
 * Shows lines below a title until the person closes it, and saves what was refused on demand.
 * @type {(title: string, lines: readonly Child[], save?: () => void) => Promise<string>}
 */
export function tell(title, lines, save) {
  const list = h('ul.error stack tight scroll', { id: 'refused-list' }, lines);
  set('refused-body', list, save && button('Download the refused lines', save));
  return ask('refused', title);
}

/**
 * Says what was refused, if anything was.
 * @type {(title: string, refusals: readonly Refusal[], save?: () => void) => Promise<unknown>}
 */
export const report = async (title, refusals, save) =>
  refusals.length > 0 && tell(title, groupCauses(refusals), save);
