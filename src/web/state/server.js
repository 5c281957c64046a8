// @ts-check
/** Polls the server's status while it is shown. */
import { call } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { ownPath, state } from './me.js';

/** @import { Server } from '../types.js' */

const refreshMs = 15_000;
let refresh = 0;
let isWatched = false;

/** @type {Server | undefined} */
export let server;

export function stopWatching() {
  isWatched = false;
  clearTimeout(refresh);
}

export function reset() {
  stopWatching();
  server = undefined;
}

export function watchServer() {
  isWatched = true;
  return read();
}

async function read() {
  clearTimeout(refresh);
  if (!isWatched || state.me?.role !== 'admin' || document.hidden) return;
  server = (await call('GET', ownPath('status'))).data;
  refresh = window.setTimeout(readQuietly, refreshMs);
  draw();
}

const readQuietly = () => void read().catch(() => {});
document.addEventListener('visibilitychange', readQuietly);
