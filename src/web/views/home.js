// @ts-check
/** The overview: the server's load, what needs attention, and recent activity. */
import { showFigure, showMegabytes, showNumber } from '../api/model.js';
import { bdi, h } from '../lib/dom.js';
import { count, findCollection, state } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { loadTotals, places } from '../state/places.js';
import { address } from '../state/route.js';
import { server, watchServer } from '../state/server.js';
import { age, line, ownView, section } from './parts.js';

/** @import { Minute, Server } from '../state/server.js' */

export const open = () => Promise.all([watchServer(), loadTotals()]);

export { stopWatching as close } from '../state/server.js';

export function view() {
  const collections = places().filter(({ total }) => total !== undefined);
  return ownView(
    'Overview',
    [],
    server && tiles(server.minutes),
    h(
      'div.lists',
      server && attention(server),
      section(
        'Collections',
        collections.map(({ href, title, total = 0 }) =>
          line(href, h('a', { href }, title), h('span.quiet', showNumber(total))),
        ),
        h('a', { href: '#/schema' }, 'Schema'),
      ),
      section(
        'Activity',
        state.activity.map(activityView),
        h('span.quiet', 'Changes appear here as they are made.'),
      ),
    ),
  );
}

/** @type {readonly [figure: 'requests' | 'p99Ms' | 'writes', label: string, digits: number][]} */
const figures = [
  ['requests', 'Requests a minute', 0],
  ['p99Ms', 'p99 latency, ms', 1],
  ['writes', 'Writes a minute', 0],
];

/** Returns the complete minutes: all but the current one. @param {readonly Minute[]} minutes */
const complete = (minutes) => (minutes.length > 1 ? minutes.slice(0, -1) : minutes);

/**
 * True if a minute has too few requests for a figure: the slowest of a few says nothing.
 * @type {(minute: Minute | undefined, figure: keyof Minute) => boolean}
 */
const isFew = (minute, figure) => figure === 'p99Ms' && (minute?.requests ?? 0) < fewRequests;

/**
 * Draws the last hour as a chart for each figure.
 * @param {readonly Minute[]} minutes
 */
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
  return h('section.tiles stack', { 'aria-label': 'The last hour' }, tile);
}

/** @param {readonly number[]} values */
function spark(values) {
  const top = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => `${index * step} ${30 - (value / top) * 27}`);
  // A line needs two points, even after one minute.
  const line = `M${points.join('L')}${values.length > 1 ? '' : 'h100'}`;
  const look = { viewBox: '0 0 100 32', preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const area = h('path', { d: `${line}V32H0`, stroke: 'none' });
  return h('svg', look, area, h('path', { d: line, fill: 'none' }));
}

const fewRequests = 100;
const [fewBytes, heapShare, manyFailures, slowMs] = [1e9, 0.8, 10, 250];

/** @param {Server} server */
function attention({ state: store, minutes, freeBytes = Infinity, heapUsedBytes, heapMaxBytes }) {
  const last = complete(minutes).at(-1);
  const p99 = (!isFew(last, 'p99Ms') && last?.p99Ms) || 0;
  const failed = minutes.reduce((sum, { failedSignIns }) => sum + failedSignIns, 0);
  const notes = [
    store !== 'writable' && `The store is ${store}: it refuses writes.`,
    freeBytes < fewBytes && `The disk has only ${showMegabytes(freeBytes)} free.`,
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
function activityView({ key, type, collection, id, record, count: length, at }) {
  const of = findCollection(collection);
  const { one = '', title = '', single = false } = of ?? {};
  const isMany = length > 1 && !single;
  const text = of && record ? toTitle(of, record) : `${id}`;
  const name = single
    ? title
    : isMany && of
      ? count({ length }, of)
      : text === `${id}`
        ? `${one} ${id}`
        : text;
  const href = address(collection, isMany || type === 'removed' ? '' : id);
  return line(
    key,
    h('span', h('a', { href }, bdi(name)), ` ${verbs[type]}`),
    h('small', age(new Date(at).toISOString())),
  );
}
