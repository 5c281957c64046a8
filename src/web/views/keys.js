// @ts-check
/** Keyboard shortcuts: `data-key` is the key of a control. A dialog of index.html explains them. */
import { ask } from '../lib/dialog.js';
import { events, onClick, set } from '../lib/dom.js';
import { storage } from '../state/me.js';

/** Single-character shortcuts can be switched off (WCAG 2.2 §2.1.4). */
const isOn = () => storage['keys'] !== 'off';

/**
 * Returns the element that a key acts on: another row, a row's checkbox, or a control.
 * @param {string} key
 */
function findTarget(key) {
  const beside = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const row = document.activeElement?.closest('tbody tr');
  if (beside && row) {
    const stops = [...row.querySelectorAll('th a, td[tabindex], td button, td input, td a')];
    return stops[stops.indexOf(document.activeElement ?? row) + beside];
  }
  const rows = [...document.querySelectorAll('#list tbody tr')];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const below = { j: 1, k: -1 }[key];
  if (below && !document.querySelector('#peek-next')?.checkVisibility())
    return rows[at + below]?.querySelector('th a');
  return document.querySelector(
    key === 'x' ? 'tr:focus-within :first-child > input' : `[data-key='${CSS.escape(key)}']`,
  );
}

document.onkeydown = (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (!(target instanceof Element) || document.querySelector('dialog[open], :popover-open')) return;
  const isCommand = ctrlKey || metaKey || altKey;
  const form = target.closest('form') ?? document.querySelector('form.record');
  if (isCommand && key === 'Enter' && form instanceof HTMLFormElement) return form.requestSubmit();
  // Keys in a form are typing, even after a click on its button.
  const isTyping = target.matches('form *, input:not([type=checkbox]), select, textarea');
  if (!isCommand && key !== 'Escape' && (isTyping || (key.length === 1 && !isOn()))) return;
  const found = findTarget(isCommand ? `Ctrl ${key}` : key);
  if (!(found instanceof HTMLElement) || found.closest('[hidden]')) return;
  event.preventDefault();
  const isPressed = key === 'x' || found.matches('[data-key]:not(#search)');
  void events.run(() => (isPressed ? found.click() : found.focus()));
};

onClick('open-keys', () => {
  const onchange = () => (storage['keys'] = isOn() ? 'off' : 'on');
  set('use-keys', { checked: isOn(), onchange });
  return ask('keys');
});
