// @ts-check
import { part } from './dom.js';

/**
 * Opens a dialog of index.html and resolves with the value of the pressed button; `''` after
 * Escape, or if the dialog is already open.
 */
export function ask(/** @type {string} */ id, what = '') {
  const dialog = part(id, HTMLDialogElement);
  return new Promise((/** @type {(choice: string) => void} */ resolve) => {
    if (dialog.open) return resolve('');
    for (const output of dialog.getElementsByTagName('output')) output.value = what;
    dialog.returnValue = '';
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.showModal();
  });
}
