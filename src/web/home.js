// @ts-check
/** The overview with the state of the server, the person's account, and the list of sessions. */
import { call } from './api.js';
import { bdi, button, fact, h } from './dom.js';
import { capitalized, isAllowed } from './model.js';
import { showNumber, showTime } from './numbers.js';
import { address, ask, draw, page, say, state } from './state.js';

/**
 * @typedef {{ id: number, kind: string, lastSeenAt: string, expiresAt: string, address: string, agent: string,
 *   current: boolean }} Session
 * @typedef {{ name: string, one: string, title: string, nameField: string, total: number,
 *   newest: readonly import('./types.js').Row[] }} Summary
 */

/** Answers of the server about its collections, about itself, and about the sessions of one user. */
const known = {
  /** @type {readonly Summary[]} */ lists: [],
  /** @type {{ [name: string]: unknown } | undefined} */ server: undefined,
  /** The user of `sessions`. */ userId: 0,
  /** @type {readonly Session[]} */ sessions: [],
};

const isAccount = () => state.route.id === 'account';

/** Loads the data of the view that the address names. @param {typeof import('./record.js') | undefined} record */
export async function loadHome(record) {
  const { route: { view, id }, me, collections } = state;
  const users = collections.find(({ name }) => name === 'users');
  if (isAccount()) record?.openDraft(users, `${me?.id}`);
  if (view || isAccount()) await loadSessions(isAccount() ? me?.id : +id);
  else await loadServer();
  draw();
}

async function loadSessions(userId = 0) {
  const sessions = userId ? (await call('GET', `sessions?userId=${userId}`)).data : [];
  Object.assign(known, { userId, sessions });
}

async function loadServer() {
  const { collections, me } = state;
  const [status, ...lists] = await Promise.all([
    me?.role === 'admin' ? call('GET', 'status') : undefined,
    ...collections.filter((each) => isAllowed(each, 'list', me?.role)).map(async ({ name, one, title, nameField }) => {
      const { total, data } = await call('GET', `${name}?limit=5&sort=-id`, { fields: { Prefer: 'count=exact' } });
      return { name, one, title, nameField, total, newest: data };
    }),
  ]);
  Object.assign(known, { lists, server: status?.data });
}

/** @param {import('./types.js').Child} form the form of the person's own record */
export function homeView(form) {
  const { lists, server } = known;
  const heading = h('h1', { id: 'title', tabindex: -1 }, isAccount() ? 'Account' : 'Overview');
  if (isAccount()) return h('div.stack', { key: 'account' }, heading, form, sessionsView());
  return h('div.stack', { key: 'overview' }, heading,
    lists.map(({ name, one, title, nameField, total, newest }) => h('section.stack', { key: name },
      h('h2', h('a', { href: address(name) }, `${title} `, h('small', showNumber(total)))),
      h('ul.rows card', newest.map((row) => h('li.row spread', { key: row.id }, h('a', { href: address(name, row.id) },
        bdi(`${row[nameField]}`)), h('span.quiet', `${one} ${row.id}`)))),
      total === 0 && h('a', { href: address(name, 'new') }, `Create the first ${one}`))),
    server && h('section.stack', h('h2', 'Server'), h('dl.stack tight', Object.entries(server).map(factView))));
}

/** Shows one entry of the server's status. @param {[name: string, value: unknown]} fact */
function factView([name, value]) {
  const [text, label, unit] = [`${value}`, name.replace('Bytes', ''), name.endsWith('Bytes')];
  const number = typeof value === 'number' && showNumber(unit ? Math.ceil(value / 1e6) : value);
  const shown = number ? `${number}${unit ? ' MB' : ''}` : name.endsWith('At') ? showTime(text) : text;
  return fact(capitalized(label), shown);
}

/** Shows the sessions of the person, or of the user in the drawer. */
export function sessionsView() {
  const { userId, sessions } = known;
  if (sessions.length === 0 || !(isAccount() || state.route.id === `${userId}`)) return undefined;
  return h('section.stack', { key: 'sessions' }, h('h2', 'Sessions'), h('ul.rows card', sessions.map((session) => {
    const { id, kind, agent, address: from, lastSeenAt, expiresAt, current } = session;
    const client = /(?:Edg|Firefox|Chrome|Safari)\/\d+/u.exec(agent)?.[0] ?? (agent || 'Unknown');
    const end = async () => {
      await call('DELETE', `sessions/${id}`);
      say('The session has ended.');
      await loadSessions(userId);
    };
    return h('li.row spread', { key: id },
      h('span', { title: agent }, kind === 'refresh' ? `${client}, by token` : client),
      current ? h('span.quiet', 'this one') : button('End', end, { 'aria-label': `End the session of ${client}` }),
      h('span.quiet', `${from} · last seen ${showTime(lastSeenAt)} · ends ${showTime(expiresAt)}`));
  })), isAccount() && button('Sign out everywhere', async () => await ask('everywhere') && page.signOut(true)));
}
