// @ts-check
/** Polls the server's status while it is shown. */
import { call } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { ownPath, state } from './me.js';
import { route } from './route.js';

/**
 * @typedef {{ at: string, requests: number, p99Ms: number, writes: number, failedSignIns: number,
 *   records: number }} Minute
 * @typedef {{ state: string, minutes: readonly Minute[], freeBytes?: number, heapUsedBytes: number,
 *   heapMaxBytes: number }} Server
 */

const refreshMs = 15_000;
let refresh = 0;

/** @type {Server | undefined} */
export let server;

export function reset() {
  clearTimeout(refresh);
  server = undefined;
}

/** Reads the figures while the overview or the status is visible. */
export async function watchServer() {
  clearTimeout(refresh);
  if (state.me?.role !== 'admin' || document.hidden) return;
  if (route.view || !['', 'server'].includes(route.id)) return;
  server = (await call('GET', ownPath('status'))).data;
  refresh = window.setTimeout(() => void watchServer().catch(() => {}), refreshMs);
  draw();
}

document.addEventListener('visibilitychange', () => void watchServer().catch(() => {}));
