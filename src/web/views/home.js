// @ts-check
/** The overview with the state of the server. */
import { call } from '../api/call.js';
import { bdi, h } from '../lib/dom.js';
import { capitalized, showFigure, showNumber, showTime, titleOf, toShow } from '../api/model.js';
import { fact, line, readNewest, section, table } from './parts.js';
import { address, allowed, collectionOf, draw, newId, state, storage } from '../state/state.js';
import { age } from './values.js';

/** @import { Collection, Row } from '../types.js' */

/**
 * @typedef {{ at: string, requests: number, p99Ms: number, writes: number, failedSignIns: number,
 *   records: number }} Minute
 * @typedef {{ state: string, minutes: readonly Minute[], freeBytes?: number, heapUsedBytes: number,
 *   heapMaxBytes: number }} Server
 * @typedef {Collection & { total: number, newest: readonly Row[] }} Summary
 */

/** Answers of the server about its collections and about itself. */
const known = {
  /** @type {readonly Summary[]} */ lists: [],
  /** @type {Server | undefined} */ server: undefined,
};

const refreshMs = 15_000;
let refresh = 0;

/** Loads what is shown, again and again while it is. */
export async function arrive() {
  clearTimeout(refresh);
  if (state.route.view || state.route.id || document.hidden) return;
  await loadServer();
  refresh = window.setTimeout(() => void arrive().catch(() => {}), refreshMs);
  draw();
}

document.addEventListener('visibilitychange', () => void arrive().catch(() => {}));

async function loadServer() {
  const { me } = state;
  const [status, ...lists] = await Promise.all([
    me?.role === 'admin' ? call('GET', 'status') : undefined,
    ...allowed('list')
      .filter((each) => !each.single)
      .map(async (collection) => {
        const { total, data: newest } = await readNewest(collection, 5);
        return { ...collection, total, newest };
      }),
  ]);
  Object.assign(known, { lists, server: status?.data });
}

export function view() {
  const { lists, server } = known;
  return h(
    'div.stack',
    h('h1', { tabindex: -1 }, 'Overview'),
    server && tiles(server.minutes),
    server && firstRun(lists),
    h(
      'div.lists',
      server && attention(server),
      section(
        'Activity',
        state.activity.map(activityView),
        h('span.quiet', 'Changes appear here as they are made.'),
      ),
      lists.map(({ name, one, title, nameField, total, newest }) =>
        section(
          h('a', { href: address(name) }, `${title} `, h('small', showNumber(total))),
          newest.map((row) =>
            line(
              row.id,
              h('a', { href: address(name, row.id) }, bdi(titleOf({ nameField }, row))),
              h('small', row['createdAt'] ? age(`${row['createdAt']}`) : `${one} ${row.id}`),
            ),
          ),
          h('a', { href: address(name, newId) }, `Create the first ${one}`),
        ),
      ),
      server &&
        h(
          'section.stack tight',
          h('h2', 'Server'),
          h('dl.card pad', Object.entries(server).map(factView)),
        ),
    ),
  );
}

/** Leads through the first steps until each is done. @param {readonly Summary[]} lists */
function firstRun(lists) {
  const declared = state.description?.['x-collections'].filter(({ builtIn }) => !builtIn) ?? [];
  const first = declared[0]?.name ?? 'items';
  /** @type {readonly [title: string, isDone: boolean, href: string, text: string][]} */
  const steps = [
    [
      'Declare',
      declared.length > 0,
      '#/schema',
      'Describe your data in a file, and start the server with --collections FILE.',
    ],
    [
      'Create',
      lists.some(({ name, total }) => name !== 'users' && total > 0),
      address(first, newId),
      'Fill in a first record, or import a file.',
    ],
    [
      'Call',
      !!storage['called'],
      `#/api/${first}`,
      'Send a request from the API tab, or copy a sample of it.',
    ],
  ];
  return (
    steps.some(([, isDone]) => !isDone) &&
    h(
      'ol.steps',
      { 'aria-label': 'First steps' },
      steps.map(([title, isDone, href, text], index) =>
        h(
          'li.card pad',
          h('a', { href }, h('strong', `${isDone ? '✓' : index + 1} ${title}`)),
          !isDone && h('p.quiet', text),
        ),
      ),
    )
  );
}

/** @type {readonly [figure: 'requests' | 'p99Ms' | 'writes' | 'records', label: string, digits: number][]} */
const figures = [
  ['requests', 'Requests a minute', 0],
  ['p99Ms', 'p99 latency, ms', 1],
  ['writes', 'Writes a minute', 0],
  ['records', 'Records', 0],
];

/** Returns the minutes that are complete: all but the current one. @param {readonly Minute[]} minutes */
const complete = (minutes) => (minutes.length > 1 ? minutes.slice(0, -1) : minutes);

/**
 * Whether a minute has too few requests for a figure: of a few, the slowest says nothing.
 * @type {(minute: Minute | undefined, figure: keyof Minute) => boolean}
 */
const isFew = (minute, figure) => figure === 'p99Ms' && (minute?.requests ?? 0) < fewRequests;

/** Draws the last hour as a picture for each figure, and as a table. @param {readonly Minute[]} minutes */
function tiles(minutes) {
  const whole = complete(minutes);
  const last = whole.at(-1);
  const tile = figures.map(([figure, label, digits]) =>
    h(
      'div.card',
      h('p.quiet', label),
      h(
        'p',
        isFew(last, figure)
          ? h('small', 'too few requests')
          : h('strong', showFigure(last?.[figure] ?? 0, digits)),
      ),
      spark(whole.map((minute) => (isFew(minute, figure) ? 0 : minute[figure]))),
    ),
  );
  const rows = minutes
    .toReversed()
    .map((minute) => [
      showTime(minute.at),
      ...figures.map(([figure, , digits]) => showFigure(minute[figure], digits)),
    ]);
  const hour = table(['Minute', ...figures.map(([, label]) => label)], rows);
  const details = h('details', h('summary.quiet', 'The last hour as a table'), hour);
  return h('section.tiles', { 'aria-label': 'The last hour' }, tile, details);
}

/** @param {readonly number[]} values */
function spark(values) {
  const top = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => `${index * step} ${30 - (value / top) * 27}`);
  // A line has two points, also after one minute.
  const line = `M${points.join('L')}${values.length > 1 ? '' : 'h100'}`;
  const look = { viewBox: '0 0 100 32', preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const area = h('path', { d: `${line}V32H0`, stroke: 'none' });
  return h('svg', look, area, h('path', { d: line, fill: 'none' }));
}

const fewRequests = 100;
const [fewBytes, heapShare, manyFailures, slowMs] = [1e9, 0.8, 10, 250];

/** Says what an operator should look at. @param {Server} server */
function attention({ state: store, minutes, freeBytes = Infinity, heapUsedBytes, heapMaxBytes }) {
  const last = complete(minutes).at(-1);
  const p99 = (!isFew(last, 'p99Ms') && last?.p99Ms) || 0;
  const failed = minutes.reduce((sum, { failedSignIns }) => sum + failedSignIns, 0);
  const notes = [
    store !== 'writable' && `The store is ${store}: it refuses writes.`,
    freeBytes < fewBytes && `The disk has only ${megabytes(freeBytes)} free.`,
    heapUsedBytes > heapMaxBytes * heapShare && `The memory is ${heapShare * 100} % full.`,
    p99 > slowMs && `One request in a hundred took ${showFigure(p99, 0)} ms or more.`,
    failed >= manyFailures && `${failed} sign-ins were refused in the last hour.`,
  ].filter((note) => note !== false);
  return section(
    'Needs attention',
    notes.map((note) => line(note, h('span.error', note))),
    h('span', h('span.mark', '✓ '), 'Nothing. All is well.'),
  );
}

const verbs = { created: 'created', replaced: 'changed', removed: 'removed' };

/** @param {import('../types.js').Activity} activity */
function activityView({ key, type, collection, id, record, count, at }) {
  const { one = '', title = '', nameField = 'id', single } = collectionOf(collection) ?? {};
  const isMany = count > 1 && !single;
  const name = single
    ? title
    : isMany
      ? `${showNumber(count)} ${title.toLowerCase()}`
      : record && nameField !== 'id'
        ? titleOf({ nameField }, record)
        : `${one} ${id}`;
  const href = address(collection, isMany || type === 'removed' ? '' : id);
  return line(
    key,
    h('span', h('a', { href }, bdi(name)), ` ${verbs[type]}`),
    h('small', age(new Date(at).toISOString())),
  );
}

/** @param {number} bytes */
const megabytes = (bytes) => `${showNumber(Math.ceil(bytes / 1e6))} MB`;

/** Shows one entry of the server's status. @param {[name: string, value: unknown]} fact */
function factView([name, value]) {
  if (typeof value === 'object' || typeof value === 'boolean') return false;
  const label = capitalized(name.replace('Bytes', ''));
  if (name.endsWith('Bytes')) return fact(label, megabytes(Number(value)));
  const kind = name.endsWith('At') ? 'time' : typeof value === 'number' ? 'number' : 'text';
  return fact(label, toShow({ name, kind }, value));
}
