// @ts-check
/** The views of the person who is signed in: the overview with their sessions, and their own record and password. */
import { call } from './api.js';
import { attempt, button, decimalsOf, fill, h, number, say, when } from './dom.js';
import { makeForm, save } from './form.js';

/** @typedef {{ id: number, kind: 'cookie' | 'refresh', lastSeenAt: string, expiresAt: string,
 *   address: string, agent: string, current: boolean }} Session */

/** @param {import('./api.js').User} me @param {(everywhere: boolean) => void} signOut */
export function overviewView(me, signOut) {
  const region = h('div', { class: 'stack', tabindex: '-1' });
  const load = () => fill(region, async (signal) => {
    const calls = ['/dashboard', `/sessions?userId=${me.id}`].map((path) => call('GET', path, { signal }));
    const [{ user, counts, recentItems }, sessions] = (await Promise.all(calls)).map(({ data }) => data);
    /** @type {Session[]} */ const own = sessions;
    own.sort((a, b) => Number(b.current) - Number(a.current) || b.lastSeenAt.localeCompare(a.lastSeenAt));
    const users = counts.users === undefined ? [] : [tally(counts.users, 'user', '#users')];
    return [
      h('p', { class: 'who' }, 'You are ', h('strong', { dir: 'auto' }, user.name), ` (${user.email}), ${user.role}.`),
      h('ul', { class: 'counts' }, tally(counts.items, 'item', '#items'), ...users, tally(counts.sessions, 'session')),
      h('div', { class: 'halves' }, newest(recentItems), h('section', {}, h('h2', {}, 'Your sessions'),
        h('ul', { class: 'rows' }, ...own.map(sessionRow)), button('Sign out everywhere', () => signOut(true)))),
    ];
  });

  /** @param {Session} session */
  function sessionRow({ id, kind, agent, address, lastSeenAt, expiresAt, current }) {
    const name = kind === 'refresh' ? `${client(agent)}, by token` : client(agent);
    const end = () => attempt(async () => {
      await call('DELETE', `/sessions/${id}`);
      await load();
      say('The session has ended.');
    });
    return h('li', {}, h('span', { title: agent }, name),
      current ? h('span', { class: 'hint' }, 'this one')
        : button('End', end, { class: 'quiet', 'aria-label': `End the session of ${name}` }),
      h('span', { class: 'hint' }, `${address} · seen `, when(lastSeenAt), ' · ends ', when(expiresAt)));
  }

  return { title: 'Overview', nodes: [h('h1', { tabindex: '-1' }, 'Overview'), region], update: load };
}

/** @type {(count: number, of: string, href?: string) => HTMLElement} */
function tally(count, of, href) {
  const content = [h('strong', {}, number(count)), count === 1 ? of : `${of}s`];
  return h('li', {}, href === undefined ? h('span', {}, ...content) : h('a', { href }, ...content));
}

/** @param {readonly { id: number, name: string, price: number }[]} items */
function newest(items) {
  const decimals = decimalsOf(items.map(({ price }) => price));
  const rows = items.map(({ id, name, price }) => h('li', {}, h('span', { dir: 'auto' }, name),
    h('span', {}, number(price, decimals)), h('span', { class: 'hint' }, `Item ${id}`)));
  return h('section', {}, h('h2', {}, 'Newest items'), rows.length > 0 ? h('ul', { class: 'rows' }, ...rows)
    : h('p', { class: 'notice' }, 'There are none yet. ', h('a', { href: '#items' }, 'Make the first one')));
}

/** A user agent in a few words. @param {string} agent */
function client(agent) {
  const program = /(Edg|OPR|Firefox|Chrome|Safari)\//u.exec(agent)?.[1] ?? (agent.slice(0, 40) || 'Unknown');
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/u.exec(agent)?.[0];
  return system === undefined ? program : `${program} on ${system}`;
}

/** @type {readonly import('./form.js').Field[]} */ const profile = [
  { name: 'name', label: 'Name', autocomplete: 'name' },
  { name: 'email', label: 'Email', type: 'email', autocomplete: 'email' },
];

/** @type {readonly import('./form.js').Field[]} */ const passwords = [
  { name: 'currentPassword', label: 'Current password', type: 'password', autocomplete: 'current-password' },
  { name: 'password', label: 'New password', type: 'password', autocomplete: 'new-password',
    hint: 'A few random words make a good one: length counts, odd characters do not.' },
];

/** @param {import('./api.js').User} me */
export function accountView(me) {
  const path = `/users/${me.id}`;
  const region = h('div', { tabindex: '-1' });
  const load = () => fill(region, async (signal) => {
    const base = await call('GET', path, { signal });
    /** @type {(fields: typeof profile, submit: string, news: string) => HTMLElement} */
    const form = (fields, submit, news) => makeForm({
      fields, record: base.data, submit,
      send: async (values) => {
        // A password is changed whatever else has been changed meanwhile.
        const read = fields === passwords ? await call('GET', path) : base;
        if ((await save(path, fields, values, read)) === undefined) return;
        await load();
        say(news);
      },
    });
    const passwordForm = form(passwords, 'Change password', 'The password is changed. Other sessions have ended.');
    // Tells a password manager whose password this is.
    passwordForm.prepend(h('input', { type: 'email', autocomplete: 'username', value: base.data.email, hidden: true }));
    return [h('div', { class: 'halves' },
      h('section', {}, h('h2', {}, 'Profile'), h('p', { class: 'hint' }, `User ${me.id}, ${base.data.role}`),
        form(profile, 'Save profile', 'Your profile is saved.')),
      h('section', {}, h('h2', {}, 'Password'), h('p', { class: 'hint' }, 'A change ends your other sessions.'),
        passwordForm))];
  });
  return { title: 'Account', nodes: [h('h1', { tabindex: '-1' }, 'Account'), region], update: load };
}
