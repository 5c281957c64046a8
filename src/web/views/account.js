// @ts-check
/** The sessions and API keys of a user. People create their own keys here, and see each once. */
import { call } from '../api/call.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, h } from '../lib/dom.js';
import { state, say } from '../state/me.js';
import { isAccount } from '../state/route.js';
import { credentials, loadSessions } from '../state/sessions.js';
import { age, copy, line, ownView, section } from './parts.js';
import { askForm, signOut } from './sign-in.js';

/**
 * @type {(path: string, what: string) => () => Promise<void>}
 */
const end = (path, what) => async () => {
  await call('DELETE', path).catch((error) => {
    if (error.status !== 404) throw error;
  });
  say(`Revoked the ${what}.`);
  await loadSessions(credentials.userId, credentials.made);
};

/** Creates the one-time address at which a user chooses a password. @param {string} userId */
export async function invite(userId) {
  const { data } = await call('POST', `users/${userId}/invitation`);
  // This page's address has the base path already, as has the invitation's.
  const made = new URL(data.path.replace(/^.*(?=#)/u, './'), location.href).href;
  await loadSessions(userId, made);
}

/** Shows a secret until the person has stored it. @param {string} advice */
function secretView(advice) {
  const { made, userId } = credentials;
  return (
    made &&
    h(
      'div.note stack tight pad',
      { role: 'status' },
      h('p', advice),
      h('code', made),
      h(
        'div.row',
        button('Copy', () => copy(made)),
        button('Done', () => loadSessions(userId)),
      ),
    )
  );
}

/** The form is done once the server has made the key, or it would be sent again. */
const makeKey = () =>
  askForm('new-key', async ({ expiresAt, readOnly, ...values }) => {
    const expires = !!expiresAt && { expiresAt: new Date(`${expiresAt}`).toISOString() };
    const body = { ...values, readOnly: !!readOnly, ...expires };
    const { data } = await call('POST', 'keys', { body });
    void loadSessions(`${state.me?.id}`, data.key).catch(() => {});
  });

const changePassword = () =>
  askForm('new-password', async ({ keepKeys, ...values }) => {
    const { userId } = credentials;
    const body = { ...values, keepKeys: !!keepKeys };
    await call('PATCH', `users/${userId}`, { body, fields: { 'If-Match': '*' } });
    say('Changed your password.');
    void loadSessions(userId).catch(() => {});
  });

/** @param {import('../state/sessions.js').Session} session */
function sessionView({ id, kind, agent, address, lastSeenAt, expiresAt, current }) {
  const client = /(?:Edg|Firefox|Chrome|Safari)\/\d+/u.exec(agent)?.[0] ?? (agent || 'Unknown');
  return line(
    id,
    h(
      'div.grow',
      h('span', { title: agent }, kind === 'refresh' ? `${client}, by token` : client),
      ' ',
      h('small', `${address} · seen `, age(lastSeenAt), ' · expires ', age(expiresAt)),
    ),
    current
      ? h('span.quiet', 'this one')
      : button('Revoke', end(`sessions/${id}`, 'session'), {
          'aria-label': `Revoke the session of ${client}`,
        }),
  );
}

/** @param {import('../state/sessions.js').Key} key */
function keyView({ id, name, readOnly, createdAt, lastUsedAt, expiresAt }) {
  return line(
    id,
    h(
      'div.grow',
      bdi(name),
      ' ',
      h(
        'small',
        readOnly && 'read-only · ',
        'made ',
        age(createdAt),
        ' · used ',
        lastUsedAt ? age(lastUsedAt) : 'never',
        expiresAt && ' · expires ',
        expiresAt && age(expiresAt),
      ),
    ),
    button('Revoke', end(`keys/${id}`, `key ${name}`), { 'aria-label': `Revoke the key ${name}` }),
  );
}

const none = h('span.quiet', 'None.');

/** @param {string} userId */
export function sessionsView(userId) {
  const { sessions, keys } = credentials;
  if (credentials.userId !== userId) return undefined;
  const everywhere = async () => (await ask('everywhere')) && signOut(true);
  const all = sessions && section('Sessions', sessions.map(sessionView), none);
  if (isAccount())
    return h(
      'div.stack',
      button('Change password…', changePassword, { id: 'change-password' }),
      all,
      button('Sign out everywhere', everywhere),
    );
  return h(
    'div.stack',
    secretView(
      'Give this address to the user, who chooses a password there. It is good once, for 24 hours.',
    ),
    all,
    keys && section('API keys', keys.map(keyView), none),
  );
}

export const open = () => loadSessions(`${state.me?.id}`);

export { reset as close } from '../state/sessions.js';

export const view = () =>
  ownView(
    'API keys',
    [button('New key…', makeKey, { id: 'make-key', class: 'primary' })],
    h('p.quiet', 'A script or a device signs in with a key of its own, as you.'),
    secretView('This key is shown once. Keep it where your script finds it.'),
    section('Your keys', (credentials.keys ?? []).map(keyView), none),
  );
