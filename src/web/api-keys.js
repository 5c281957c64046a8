// @ts-check
/** The API keys of a user: a person makes their own, sees each once, and ends it. */
import { call } from './api.js';
import { bdi, button, h, line, section } from './dom.js';
import { copy, draw, isAccount, say, state } from './state.js';
import { age } from './values.js';

/**
 * `made`: the key that was made just now, which nobody can read again.
 * @typedef {{ id: number, name: string, readOnly: boolean, createdAt: string, lastUsedAt?: string,
 *   expiresAt?: string }} Key
 * @type {{ userId: number, keys: readonly Key[], made: string }}
 */
let known = { userId: 0, keys: [], made: '' };

/** @param {number} userId */
export async function loadKeys(userId, made = '') {
  if (!state.description?.paths['/keys']) return;
  known = { userId, keys: (await call('GET', `keys?userId=${userId}`)).data, made };
  draw();
}

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
  await loadKeys(known.userId, data.key);
}

/** @param {number} userId */
export function keysView(userId) {
  const { keys, made } = known;
  if (known.userId !== userId) return [];
  const end =
    (/** @type {Key} */ { id, name }) =>
    async () => {
      await call('DELETE', `keys/${id}`);
      say(`The key ${name} has ended.`);
      await loadKeys(userId);
    };
  const rows = keys.map((key) =>
    line(
      key.id,
      h('span', bdi(key.name), key.readOnly && h('small', ' reads only')),
      button('End', end(key), { 'aria-label': `End the key ${key.name}` }),
      h(
        'small',
        'made ',
        age(key.createdAt),
        ' · used ',
        key.lastUsedAt ? age(key.lastUsedAt) : 'never',
      ),
      key.expiresAt && h('small', 'ends ', age(key.expiresAt)),
    ),
  );
  const input = (
    /** @type {string} */ label,
    /** @type {import('./types.js').Attributes} */ look,
  ) => h('label.stack tight', label, h('input', { autocomplete: 'off', ...look }));
  const form = h(
    'form.stack',
    { onsubmit: make },
    input('Name of the new key', { name: 'name', required: true }),
    input('Ends (optional)', { name: 'expiresAt', type: 'datetime-local' }),
    input('Current password', {
      name: 'currentPassword',
      type: 'password',
      required: true,
      autocomplete: 'current-password',
    }),
    h('label', h('input', { name: 'readOnly', type: 'checkbox' }), 'Reads only'),
    h('button', 'Make a key'),
  );
  return [
    section('API keys', rows, h('span.quiet', 'None')),
    made &&
      h(
        'div.note stack tight pad',
        { role: 'status' },
        h('p', 'This key is shown once. Keep it where your script finds it.'),
        h('code', made),
        button('Copy', () => copy(made)),
      ),
    isAccount() && h('details', h('summary', 'Make a key for a script or a device'), form),
  ];
}
