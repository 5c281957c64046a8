// @ts-check
/** The overview: the server's load, what needs attention, and recent activity. */
import { locale, showNumber } from '../api/model.js';
import { bdi, h } from '../lib/dom.js';
import { count, findCollection, state } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { loadTotals, places } from '../state/places.js';
import { address } from '../state/route.js';
import { server, watchServer } from '../state/server.js';
import { age, line, ownView, section } from './parts.js';

/** @import { Minute, Server } from '../types.js' */

export const open = () => Promise.all([watchServer(), loadTotals()]);

export { stopWatching as close } from '../state/server.js';

export function view() {
  const collections = places().filter(({ total }) => total !== undefined);
  return ownView(
    'Overview',
    [],
    server && tiles(server),
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

/** @type {{ [state in Server['state']]: string }} */
export const states = {
  writable: 'Working',
  full: 'Full: accepts only removals',
  unavailable: 'Accepts no changes: the log does not respond',
  failed: 'Accepts no changes: writing failed',
};

/** @type {(value: number, unit: string) => string} */
const showUnit = (value, unit) =>
  new Intl.NumberFormat(locale, { style: 'unit', unit, maximumSignificantDigits: 3 }).format(value);

/** @param {number} bytes */
export function showBytes(bytes) {
  if (bytes < 1e6) return showUnit(bytes / 1e3, 'kilobyte');
  return bytes < 1e9 ? showUnit(bytes / 1e6, 'megabyte') : showUnit(bytes / 1e9, 'gigabyte');
}

/** @param {number} ms */
export const showMs = (ms) => showUnit(ms, 'millisecond');

const fewRequests = 100;

/** Returns the complete minutes: all but the current one. @param {Server} of */
export const completeMinutes = ({ minutes }) =>
  minutes.length > 1 ? minutes.slice(0, -1) : minutes;

/**
 * Returns how long the slowest 1 % of a minute's answers took at least. The slowest of a few says
 * nothing.
 * @param {Minute} [minute]
 */
export const slowestMs = (minute) =>
  minute && minute.requests >= fewRequests ? minute.p99Ms : undefined;

/**
 * @type {readonly [label: string, read: (minute?: Minute) => number | undefined,
 *   show: (value: number) => string][]}
 */
const figures = [
  ['Requests a minute', (minute) => minute?.requests, showNumber],
  ['Slowest 1 % of answers', slowestMs, showMs],
  ['Changes a minute', (minute) => minute?.writes, showNumber],
];

/** Draws the last hour as a chart for each figure. @param {Server} of */
function tiles(of) {
  const minutes = completeMinutes(of);
  const tile = figures.map(([label, read, show]) => {
    const last = read(minutes.at(-1));
    return h(
      'div.card',
      h('p.quiet', label),
      h('p', last === undefined ? h('small', 'too few requests') : h('strong', show(last))),
      spark(minutes.map((minute) => read(minute) ?? 0)),
    );
  });
  return h('section.tiles stack', { 'aria-label': 'The last hour' }, tile);
}

/** @param {readonly number[]} values */
function spark(values) {
  const top = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => `${index * step} ${30 - (value / top) * 27}`);
  // A line needs two points, even after one minute.
  const line = `M${points.join('L')}${values.length > 1 ? '' : 'h100'}`;
  return h(
    'svg',
    { viewBox: '0 0 100 32', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    h('path', { d: `${line}V32H0`, stroke: 'none' }),
    h('path', { d: line, fill: 'none' }),
  );
}

const [fewBytes, heapShare, manyFailures, slowMs, slowMinutes] = [1e9, 0.8, 10, 250, 3];

/** @param {Server} of */
function attention(of) {
  const { state: store, minutes, freeBytes = Infinity, heapUsedBytes, heapMaxBytes } = of;
  // One slow minute, such as after the start, has passed when it is read.
  const slowest = completeMinutes(of)
    .slice(-slowMinutes)
    .map((minute) => slowestMs(minute) ?? 0);
  const slow = slowest.length < slowMinutes ? 0 : Math.min(...slowest);
  const failed = minutes.reduce((sum, { failedSignIns }) => sum + failedSignIns, 0);
  const notes = [
    store !== 'writable' && states[store],
    freeBytes < fewBytes && `The disk has only ${showBytes(freeBytes)} free.`,
    heapUsedBytes > heapMaxBytes * heapShare && `The memory is ${heapShare * 100} % full.`,
    slow > slowMs && `One answer in a hundred takes ${showMs(slow)} or longer.`,
    failed >= manyFailures && `${failed} sign-ins were refused in the last hour.`,
  ].filter((note) => note !== false);
  return section(
    'Needs attention',
    notes.map((note) => line(note, h('span.error', note))),
    h('span', '✓ Nothing. All is well.'),
  );
}

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
  return line(
    key,
    h(
      'span',
      h('a', { href: address(collection, isMany || type === 'removed' ? '' : id) }, bdi(name)),
      ` ${type === 'replaced' ? 'changed' : type}`,
    ),
    h('small', age(new Date(at).toISOString())),
  );
}
