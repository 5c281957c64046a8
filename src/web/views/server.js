// @ts-check
/** The server's status: its state and its room. */
import { showNumber } from '../api/model.js';
import { h } from '../lib/dom.js';
import { server } from '../state/server.js';
import { completeMinutes, showBytes, showMs, slowestMs, states } from './home.js';
import { age, line, ownView, section } from './parts.js';

/** @import { Child } from '../types.js' */

export { watchServer as open, stopWatching as close } from '../state/server.js';

/** @type {(label: string, value: Child, bar?: Child) => Child} */
const figure = (label, value, bar) => line(label, h('span.quiet', label), h('span', value), bar);

/**
 * Draws how much of something is used, as a bar.
 * @type {(label: string, used: number, max: number) => Child}
 */
const room = (label, used, max) =>
  figure(
    label,
    `${showBytes(used)} of ${showBytes(max)}`,
    h('meter', { 'aria-label': label, value: used / max, low: 0.8, optimum: 0 }),
  );

export function view() {
  if (!server) return ownView('Status', []);
  const { freeBytes, diskBytes = 0, refusals } = server;
  const slowest = slowestMs(completeMinutes(server).at(-1));
  const refused = Object.values(refusals).reduce((sum, each) => sum + each, 0);
  return ownView(
    'Status',
    [],
    h(
      'div.lists',
      section('Server', [
        figure('State', states[server.state]),
        figure('Started', age(server.startedAt)),
        figure('Slowest 1 % of answers', slowest ? showMs(slowest) : 'too few requests'),
        figure('Version', server.version),
      ]),
      section('Room', [
        room('Memory for records', server.memoryBytes, server.memoryMaxBytes),
        room('Memory of the program', server.heapUsedBytes, server.heapMaxBytes),
        freeBytes !== undefined &&
          room(`Disk: ${showBytes(freeBytes)} free`, diskBytes - freeBytes, diskBytes),
        figure('Requests refused for lack of room', showNumber(refused)),
      ]),
    ),
  );
}
