// @ts-check
/** Polls the server's status while it is shown. */
import { call } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { ownPath, state } from './me.js';

/**
 * @typedef {{ at: string, requests: number, p99Ms: number, writes: number, failedSignIns: number,
 *   records: number }} Minute
 * @typedef {{ version: string, startedAt: string, state: string, minutes: readonly Minute[], records: number,
 *   memoryBytes: number, memoryMaxBytes: number, refusals: { [cause: string]: number }, journalBytes: number,
 *   checkpointedAt?: string, freeBytes?: number, diskBytes?: number, heapUsedBytes: number,
 *   heapMaxBytes: number }} Server
 */

const refreshMs = 15_000;
const fewRequests = 100;
let refresh = 0;
let isWatched = false;

/** @type {Server | undefined} */
export let server;

/** Returns the complete minutes: all but the current one. @param {Server} of */
export const completeMinutes = ({ minutes }) =>
  minutes.length > 1 ? minutes.slice(0, -1) : minutes;

/**
 * Returns how long the slowest 1 % of a minute's answers took at least. The slowest of a few says
 * nothing.
 * @param {Minute} [minute]
 */
export const slowestMs = (minute) =>
  minute && minute.requests >= fewRequests ? minute.p99Ms : undefined;

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
