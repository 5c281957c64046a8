// @ts-check
import { call } from '../api/call.js';
import { draw } from '../lib/dom.js';
import { hasKeys } from './me.js';

/**
 * @typedef {{ id: number, kind: string, lastSeenAt: string, expiresAt: string, address: string, agent: string,
 *   current: boolean }} Session
 * @typedef {{ id: number, name: string, readOnly: boolean, createdAt: string, lastUsedAt?: string,
 *   expiresAt?: string }} Key
 */

/**
 * The credentials of one user. `made`: a new key, which can never be read again.
 * @type {() => { userId: string, sessions: readonly Session[], keys?: readonly Key[], made: string }}
 */
const unread = () => ({ userId: '', sessions: [], made: '' });
export let credentials = unread();
export const reset = () => void (credentials = unread());

/** @type {(userId: string, made?: string) => Promise<void>} */
export async function loadSessions(userId, made = '') {
  credentials.made = '';
  const read = async (/** @type {string} */ what) =>
    (await call('GET', `${what}?userId=${userId}`)).data;
  const [sessions, keys] = await Promise.all([read('sessions'), hasKeys() && read('keys')]);
  credentials = { userId, sessions, keys, made };
  draw();
}
