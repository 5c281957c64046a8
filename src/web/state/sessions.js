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
 * The credentials of one user, once they are read. `made`: a new key, which can never be read again.
 * @type {() => { userId: string, sessions?: readonly Session[] | undefined,
 *   keys?: readonly Key[] | undefined, made: string }}
 */
const unread = () => ({ userId: '', sessions: undefined, keys: undefined, made: '' });
export const credentials = unread();
export const reset = () => void Object.assign(credentials, unread());

/**
 * Reads the credentials of a user, and shows a new key before that, since it may fail.
 * @type {(userId: string, made?: string) => Promise<void>}
 */
export async function loadSessions(userId, made = '') {
  Object.assign(credentials, credentials.userId !== userId && unread(), { userId, made });
  const read = async (/** @type {string} */ what) =>
    (await call('GET', `${what}?userId=${userId}`)).data;
  const [sessions, keys] = await Promise.all([read('sessions'), hasKeys() && read('keys')]);
  if (credentials.userId === userId) Object.assign(credentials, { sessions, keys });
  draw();
}
