// @ts-check
/** The overview with the state of the server, the person's account, and the list of sessions. */
import { call } from './api.js';
import { bdi, button, fact, h } from './dom.js';
import { capitalized, isAllowed } from './model.js';
import { showAge, showNumber, showTime } from './numbers.js';
import { address, ask, draw, page, say, state } from './state.js';

/**
 * @typedef {{ id: number, kind: string, lastSeenAt: string, expiresAt: string, address: string, agent: string,
 *   current: boolean }} Session
 * @typedef {{ at: string, requests: number, p99Ms: number, writes: number, failedSignIns: number,
 *   records: number }} Minute
 * @typedef {{ state: string, minutes: readonly Minute[], freeBytes?: number, heapUsedBytes: number,
 *   heapMaxBytes: number }} Server
 * @typedef {{ name: string, one: string, title: string, nameField: string, total: number,
 *   newest: readonly import('./types.js').Row[] }} Summary
 */

/** Answers of the server about its collections, about itself, and about the sessions of one user. */
const known = {
  /** @type {readonly Summary[]} */ lists: [],
  /** @type {Server | undefined} */ server: undefined,
  /** The user of `sessions`. */ userId: 0,
  /** @type {readonly Session[]} */ sessions: [],
};

const refreshMs = 15_000;
let refresh = 0;

const isAccount = () => state.route.id === 'account';

/** Loads the data of the view that the address names. @param {typeof import('./record.js') | undefined} record */
export async function loadHome(record) {
  const {
    route: { view, id },
    me,
    collections,
  } = state;
  const users = collections.find(({ name }) => name === 'users');
  if (isAccount()) record?.openDraft(users, `${me?.id}`);
  if (view || isAccount()) await loadSessions(isAccount() ? me?.id : +id);
  else await loadServer();
  clearTimeout(refresh);
  const isOverview = !view && !isAccount();
  if (isOverview)
    refresh = window.setTimeout(() => void loadHome(record).catch(() => {}), refreshMs);
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
    ...collections
      .filter((each) => isAllowed(each, 'list', me?.role))
      .map(async ({ name, one, title, nameField }) => {
        const { total, data } = await call('GET', `${name}?limit=5&sort=-id`, {
          fields: { Prefer: 'count=exact' },
        });
        return { name, one, title, nameField, total, newest: data };
      }),
  ]);
  Object.assign(known, { lists, server: status?.data });
}

/** @param {import('./types.js').Child} form the form of the person's own record */
export function homeView(form) {
  const { lists, server } = known;
  const heading = h('h1', { tabindex: -1 }, isAccount() ? 'Account' : 'Overview');
  if (isAccount()) return h('div.stack', { key: 'account' }, heading, form, sessionsView());
  return h(
    'div.stack',
    { key: 'overview' },
    heading,
    server && tiles(server.minutes),
    server && attention(server),
    h(
      'section.stack tight',
      { key: 'activity' },
      h('h2', 'Activity'),
      h('ul.rows card', state.activity.map(activityView)),
      state.activity.length === 0 && h('p.quiet', 'Changes appear here as they are made.'),
    ),
    server &&
      h(
        'section.stack tight',
        { key: 'server' },
        h('h2', 'Server'),
        h('dl.stack tight card pad', Object.entries(server).map(factView)),
      ),
    lists.map(({ name, one, title, nameField, total, newest }) =>
      h(
        'section.stack tight',
        { key: name },
        h('h2', h('a', { href: address(name) }, `${title} `, h('small', showNumber(total)))),
        h(
          'ul.rows card',
          newest.map((row) =>
            h(
              'li.row spread',
              { key: row.id },
              h('a', { href: address(name, row.id) }, bdi(`${row[nameField]}`)),
              h('span.quiet', `${one} ${row.id}`),
            ),
          ),
        ),
        total === 0 && h('p', h('a', { href: address(name, 'new') }, `Create the first ${one}`)),
      ),
    ),
  );
}

/** @type {readonly [figure: keyof Minute & ('requests' | 'p99Ms' | 'writes' | 'records'), label: string][]} */
const figures = [
  ['requests', 'Requests a minute'],
  ['p99Ms', 'Slowest 1 % (p99), ms'],
  ['writes', 'Writes a minute'],
  ['records', 'Records'],
];

/** Draws the last hour as a picture for each figure, and as a table. @param {readonly Minute[]} minutes */
function tiles(minutes) {
  // The current minute is not complete yet.
  const last = minutes.at(-2) ?? minutes.at(-1);
  const tile = figures.map(([figure, label]) =>
    h(
      'div.card',
      { key: figure },
      h('p.quiet', label),
      h('p', h('strong', showNumber(last?.[figure] ?? 0))),
      spark(minutes.map((minute) => minute[figure])),
    ),
  );
  const rows = minutes.toReversed().map((minute) =>
    h(
      'tr',
      { key: minute.at },
      h('th', { scope: 'row' }, showTime(minute.at)),
      figures.map(([figure]) => h('td.number', showNumber(minute[figure]))),
    ),
  );
  const heads = figures.map(([, label]) => h('th.number', { scope: 'col' }, label));
  const table = h('table', h('tr', h('th', { scope: 'col' }, 'Minute'), heads), rows);
  const details = h('details', h('summary.quiet', 'The last hour as a table'), table);
  return h('section.tiles', { key: 'tiles', 'aria-label': 'The last hour' }, tile, details);
}

/** @param {readonly number[]} values */
function spark(values) {
  const top = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => `${index * step} ${31 - (value / top) * 28}`);
  const line = `M${points.join('L')}`;
  const look = { viewBox: '0 0 100 32', preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const area = h('path', { d: `${line}V32H0`, stroke: 'none' });
  return h('svg', look, area, h('path', { d: line, fill: 'none' }));
}

const [fewBytes, heapShare, manyFailures] = [1e9, 0.8, 10];

/** Says what an operator should look at. @param {Server} server */
function attention({
  state: store,
  minutes,
  freeBytes = Infinity,
  heapUsedBytes,
  heapMaxBytes,
}) {
  const failed = minutes.reduce((sum, { failedSignIns }) => sum + failedSignIns, 0);
  const notes = [
    store !== 'writable' && `The store is ${store}: it refuses writes.`,
    freeBytes < fewBytes && `The disk has only ${megabytes(freeBytes)} free.`,
    heapUsedBytes > heapMaxBytes * heapShare && `The memory is ${heapShare * 100} % full.`,
    failed >= manyFailures && `${failed} sign-ins were refused in the last hour.`,
  ].filter((note) => note !== false);
  return h(
    'section.stack tight',
    { key: 'attention' },
    h('h2', 'Needs attention'),
    h(
      'ul.rows card error',
      notes.map((note) => h('li', { key: note }, note)),
    ),
    notes.length === 0 && h('p', h('span.mark', '✓ '), 'Nothing. All is well.'),
  );
}

const verbs = { created: 'created', replaced: 'changed', removed: 'removed' };

/** @param {import('./types.js').Activity} activity */
function activityView({ type, collection, id, record, count, at }) {
  const {
    one = '',
    title = '',
    nameField = 'id',
  } = state.collections.find(({ name }) => name === collection) ?? {};
  const name =
    count > 1
      ? `${showNumber(count)} ${title.toLowerCase()}`
      : `${record?.[nameField] ?? `${one} ${id}`}`;
  const target = address(collection, count > 1 || type === 'removed' ? '' : id);
  return h(
    'li.row spread',
    { key: `${at} ${collection} ${type}` },
    h('span', h('a', { href: target }, bdi(name)), ` ${verbs[type]}`),
    h('time.quiet', { datetime: new Date(at).toISOString() }, showAge(new Date(at).toISOString())),
  );
}

/** @param {number} bytes */
const megabytes = (bytes) => `${showNumber(Math.ceil(bytes / 1e6))} MB`;

/** Shows one entry of the server's status. @param {[name: string, value: unknown]} fact */
function factView([name, value]) {
  if (typeof value === 'object' || typeof value === 'boolean') return false;
  const label = capitalized(name.replace('Bytes', ''));
  if (name.endsWith('Bytes')) return fact(label, megabytes(Number(value)));
  if (name.endsWith('At')) return fact(label, showTime(`${value}`));
  return fact(label, typeof value === 'number' ? showNumber(value) : `${value}`);
}

/** Shows the sessions of the person, or of the user in the drawer. */
export function sessionsView() {
  const { userId, sessions } = known;
  if (sessions.length === 0 || !(isAccount() || state.route.id === `${userId}`)) return undefined;
  return h(
    'section.stack',
    { key: 'sessions' },
    h('h2', 'Sessions'),
    h(
      'ul.rows card',
      sessions.map((session) => {
        const { id, kind, agent, address: from, lastSeenAt, expiresAt, current } = session;
        const client =
          /(?:Edg|Firefox|Chrome|Safari)\/\d+/u.exec(agent)?.[0] ?? (agent || 'Unknown');
        const end = async () => {
          // It may have ended by itself.
          await call('DELETE', `sessions/${id}`).catch((error) => {
            if (error.status !== 404) throw error;
          });
          say('The session has ended.');
          await loadSessions(userId);
        };
        return h(
          'li.row spread',
          { key: id },
          h('span', { title: agent }, kind === 'refresh' ? `${client}, by token` : client),
          current
            ? h('span.quiet', 'this one')
            : button('End', end, { 'aria-label': `End the session of ${client}` }),
          h(
            'span.quiet',
            `${from} · last seen ${showTime(lastSeenAt)} · ends ${showTime(expiresAt)}`,
          ),
        );
      }),
    ),
    isAccount() &&
      button('Sign out everywhere', async () => (await ask('everywhere')) && page.signOut(true)),
  );
}
