// @ts-check
/** The sessions and API keys of a user, below their record. A person makes keys for themselves, and sees each once. */
import { call } from '../api/call.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, h } from '../lib/dom.js';
import { state } from '../state/me.js';
import { say } from '../state/news.js';
import { isAccount } from '../state/route.js';
import { credentials, loadSessions } from '../state/sessions.js';
import { copy, line, section } from './parts.js';
import { age } from './values.js';

/** @import { Child } from '../types.js' */

/**
 * Ends a session or a key, which may have ended by itself.
 * @type {(path: string, what: string) => () => Promise<void>}
 */
const end = (path, what) => async () => {
  await call('DELETE', path).catch((error) => {
    if (error.status !== 404) throw error;
  });
  say(`Revoked the ${what}.`);
  await loadSessions(credentials.userId);
};

/** Makes the address at which a user chooses a password, once. @param {string} userId */
async function invite(userId) {
  const { data } = await call('POST', `users/${userId}/invitation`);
  credentials.made = new URL(`.${data.path}`, location.href).href;
}

/** Shows a secret until the person has kept it. @type {(made: string, userId: string) => Child} */
const secretView = (made, userId) =>
  h(
    'div.note stack tight pad',
    { role: 'status' },
    h(
      'p',
      isAccount()
        ? 'This key is shown once. Keep it where your script finds it.'
        : 'Give this address to the user, who chooses a password there. It is good once, for 24 hours.',
    ),
    h('code', made),
    h(
      'div.row',
      button('Copy', () => copy(made)),
      button('Done', () => loadSessions(userId)),
    ),
  );

/** @param {Event} event */
async function make(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const { name, currentPassword, readOnly, expiresAt } = Object.fromEntries(new FormData(form));
  const body = {
    name,
    currentPassword,
    readOnly: !!readOnly,
    ...(expiresAt && { expiresAt: new Date(`${expiresAt}`).toISOString() }),
  };
  const { data } = await call('POST', 'keys', { body });
  form.reset();
  await loadSessions(credentials.userId, data.key);
}

/** @param {import('../state/sessions.js').Session} session */
function sessionView({ id, kind, agent, address, lastSeenAt, expiresAt, current }) {
  const client = /(?:Edg|Firefox|Chrome|Safari)\/\d+/u.exec(agent)?.[0] ?? (agent || 'Unknown');
  const label = { 'aria-label': `Revoke the session of ${client}` };
  return line(
    id,
    h('span', { title: agent }, kind === 'refresh' ? `${client}, by token` : client),
    current
      ? h('span.quiet', 'this one')
      : button('Revoke', end(`sessions/${id}`, 'session'), label),
    h('small', `${address} · seen `, age(lastSeenAt), ' · expires ', age(expiresAt)),
  );
}

/** @param {import('../state/sessions.js').Key} key */
function keyView({ id, name, readOnly, createdAt, lastUsedAt, expiresAt }) {
  return line(
    id,
    h('span', bdi(name), readOnly && h('small', ' read-only')),
    button('Revoke', end(`keys/${id}`, `key ${name}`), { 'aria-label': `Revoke the key ${name}` }),
    h('small', 'made ', age(createdAt), ' · used ', lastUsedAt ? age(lastUsedAt) : 'never'),
    expiresAt && h('small', 'expires ', age(expiresAt)),
  );
}

/** The form for a new key. */
function keyForm() {
  const input = (
    /** @type {string} */ label,
    /** @type {import('../types.js').Attributes} */ look,
  ) => h('label.stack tight', label, h('input', { autocomplete: 'off', ...look }));
  return h(
    'form.stack',
    { onsubmit: make },
    input('Name of the new key', { name: 'name', required: true }),
    input('Expires (optional)', { name: 'expiresAt', type: 'datetime-local' }),
    input('Current password', {
      name: 'currentPassword',
      type: 'password',
      required: true,
      autocomplete: 'current-password',
    }),
    h('label', h('input', { name: 'readOnly', type: 'checkbox' }), 'Read-only'),
    h('button', 'Make a key'),
  );
}

/** @param {string} userId */
export function sessionsView(userId) {
  const { sessions, keys, made } = credentials;
  if (credentials.userId !== userId) return undefined;
  const everywhere = async () =>
    (await ask('everywhere')) && (await import('./sign-in.js')).signOut(true);
  const none = h('span.quiet', 'None.');
  return h(
    'div.stack',
    section('Sessions', sessions.map(sessionView), none),
    isAccount() && button('Sign out everywhere', everywhere),
    keys && section('API keys', keys.map(keyView), none),
    made && secretView(made, userId),
    !isAccount() &&
      state.me?.role === 'admin' &&
      button('Invite to choose a password', () => invite(userId)),
    isAccount() &&
      keys &&
      h('details', h('summary', 'Make a key for a script or a device'), keyForm()),
  );
}
