// @ts-check
/**
 * A combobox (WAI-ARIA): a text control with suggestions, taken by Enter, Tab, a click or their
 * whole text.
 */
import { bdi, draw, h, readInput } from './dom.js';

/** @import { Attributes, Description, Suggestion } from '../types.js' */

/** A combobox that has just been opened. Enter takes the suggestion `active`. */
const opened = (id = '', words = '') => ({
  id,
  words,
  active: 0,
  /** @type {readonly Suggestion[] | undefined} */ found: undefined,
  /** True if Enter was pressed before the suggestions came. */ isTaking: false,
});

let open = opened();
export const reset = () => void (open = opened());

/**
 * `find` receives the typed text; a newer search replaces it. `nothing` is the message without
 * suggestions.
 * @type {(options: { id: string, text: string, nothing: string,
 *   find: (words: string) => Promise<readonly Suggestion[]>, type: (text: string) => void,
 *   take: (suggestion: Suggestion) => unknown }, more: Attributes) => Description[]}
 */
export function combobox({ id, text, nothing, find, type, take }, more) {
  const isOpen = () => open.id === id;
  const found = isOpen() ? open.found : undefined;
  const choose = (/** @type {Suggestion | undefined} */ suggestion) => {
    reset();
    return suggestion && take(suggestion);
  };
  const suggest = async (/** @type {string} */ words) => {
    if (!isOpen() || open.words !== words) open = opened(id, words);
    const all = await find(words).catch(() => []);
    if (!isOpen() || open.words !== words) return undefined;
    open.found = all;
    draw();
    return open.isTaking && choose(all[0]);
  };
  const oninput = (/** @type {Event} */ event) => {
    type(readInput(event));
    return suggest(readInput(event).trim());
  };
  const step = (/** @type {number} */ by) => () => {
    if (!isOpen()) return void suggest('');
    const { length } = open.found ?? [];
    open.active = (open.active + by + length) % (length || 1);
    document.getElementById(`${id}-${open.active}`)?.scrollIntoView({ block: 'nearest' });
  };
  const enter = () => (open.found ? choose(open.found[open.active]) : (open.isTaking = true));
  /** @type {{ [key: string]: (() => unknown) | undefined }} */
  const actions = {
    ArrowDown: step(1),
    ArrowUp: step(-1),
    Escape: () => choose(undefined),
    Enter: enter,
  };
  // Someone who types a whole name and goes on has chosen it. An empty result stays open, or the
  // next target would move away from the pointer.
  const onblur = () =>
    isOpen() &&
    !open.isTaking &&
    found?.length !== 0 &&
    choose(found?.find((each) => each.text.toLowerCase() === open.words.toLowerCase()));
  const onkeydown = (/** @type {Event} */ event) => {
    if (!(event instanceof KeyboardEvent)) return undefined;
    const { key, ctrlKey, metaKey } = event;
    const isCommand = ctrlKey || metaKey;
    // Tab goes on, and Ctrl+Enter sends the form: with the suggestion, if anything was typed.
    if (key === 'Tab' || (isCommand && key === 'Enter'))
      return isOpen() && open.words && open.found?.length !== 0 ? enter() : onblur();
    if (isCommand) return undefined;
    const action = actions[key];
    if (!action || !(isOpen() || key.startsWith('Arrow'))) return undefined;
    event.preventDefault();
    event.stopPropagation();
    return action();
  };
  const options = (found ?? []).map((each, index) =>
    h(
      'li.row spread',
      {
        id: `${id}-${index}`,
        key: each.key,
        role: 'option',
        'aria-selected': `${index === open.active}`,
        onclick: () => choose(each),
        onmousedown: (event) => event.preventDefault(),
      },
      bdi(each.text),
      h('small', bdi(each.more)),
    ),
  );
  return [
    h('input', {
      ...more,
      id,
      value: text,
      dir: 'auto',
      autocomplete: 'off',
      role: 'combobox',
      'aria-autocomplete': 'list',
      'aria-expanded': `${options.length > 0}`,
      'aria-controls': `${id}-list`,
      'aria-activedescendant': options.length > 0 && `${id}-${open.active}`,
      onclick: () => suggest(''),
      oninput,
      onchange: (event) => readInput(event) !== text && oninput(event),
      onkeydown,
      onblur,
    }),
    h(
      'ul.choices card lift scroll',
      { id: `${id}-list`, role: 'listbox', 'aria-label': 'Suggestions' },
      options,
    ),
    h('small', { role: 'status' }, found?.length === 0 && nothing),
  ];
}
