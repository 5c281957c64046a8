// @ts-check
/** Asks the person by the dialogs of index.html. */
import { part } from './dom.js';

/**
 * Opens a dialog of index.html and resolves with the value of the button pressed; `''` after Escape, or if the dialog
 * is open already.
 */
export function ask(/** @type {string} */ id, what = '') {
  const dialog = part(id, HTMLDialogElement);
  return new Promise((/** @type {(choice: string) => void} */ resolve) => {
    if (dialog.open) return resolve('');
    for (const output of dialog.getElementsByTagName('output')) output.textContent = what;
    dialog.returnValue = '';
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.showModal();
  });
}
