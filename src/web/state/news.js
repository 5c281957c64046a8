// @ts-check
import { Problem } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { state } from './me.js';

let fading = 0;
export const reset = () => clearTimeout(fading);

const [seconds, undoSeconds] = [8, 10];

/**
 * Shows a message in the status line, with `undo` if it can be undone.
 * @type {(text: string, undo?: () => unknown) => void}
 */
export function say(text, undo) {
  clearTimeout(fading);
  state.message = text;
  state.undo = undo && (() => (say(''), undo()));
  fading = window.setTimeout(() => say(''), (undo ? undoSeconds : seconds) * 1000);
  draw();
}

/**
 * Describes a failure for a person. An error other than `Problem` is a bug in this page.
 * @param {unknown} error
 */
export function explain(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return 'Something went wrong in this page. Reload it.';
}
