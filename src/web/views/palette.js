// @ts-check
/** Goes to a collection, an action or a record by a part of its name. */
import { combobox } from '../lib/combobox.js';
import { part, set } from '../lib/dom.js';
import { allowed } from '../state/me.js';
import { places } from '../state/places.js';
import { address, go, newId } from '../state/route.js';
import { suggestions } from './control.js';

/** @import { Suggestion } from '../types.js' */

const [placesMax, recordsMax] = [8, 3];
const dialog = part('palette', HTMLDialogElement);
let text = '';

/** @param {string} words @returns {Promise<readonly Suggestion[]>} */
async function find(words) {
  const all = [
    ...places(),
    ...allowed('create').map(({ one, name }) => ({
      href: address(name, newId),
      title: `New ${one}`,
    })),
  ].map(({ href, title }) => ({ key: href, text: title, more: '' }));
  if (!words) return all;
  const records = await Promise.all(
    allowed('list').map(async (of) => {
      const all = of.hasSearch ? await suggestions(of, words, recordsMax).catch(() => []) : [];
      return all.map(({ key, text }) => ({ key: address(of.name, key), text, more: of.one }));
    }),
  );
  const isFound = (/** @type {Suggestion} */ each) =>
    each.text.toLowerCase().includes(words.toLowerCase());
  return [...all.filter(isFound).slice(0, placesMax), ...records.flat()];
}

export function drawPalette() {
  const options = {
    id: 'place',
    text,
    nothing: 'Nothing matches',
    find,
    type: (/** @type {string} */ typed) => (text = typed),
    take(/** @type {Suggestion} */ { key }) {
      dialog.close();
      return go(key);
    },
  };
  set(
    'palette',
    ...combobox(options, {
      placeholder: 'A collection, an action or a record',
      'aria-label': 'Go to',
    }),
  );
}

dialog.onclose = () => (text = '');

export function open() {
  drawPalette();
  dialog.showModal();
  part('place', HTMLInputElement).click();
}
