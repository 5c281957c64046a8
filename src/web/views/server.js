// @ts-check
import { capitalized, showMegabytes, toShow } from '../api/model.js';
import { h } from '../lib/dom.js';
import { server } from '../state/server.js';
import { fact, ownView } from './parts.js';

export { watchServer as open, stopWatching as close } from '../state/server.js';

export const view = () =>
  ownView('Status', [], h('dl.card pad', Object.entries(server ?? {}).map(factView)));

/** @param {[name: string, value: unknown]} fact */
function factView([name, value]) {
  if (typeof value === 'object' || typeof value === 'boolean') return false;
  const label = capitalized(name.replace('Bytes', ''));
  if (name.endsWith('Bytes')) return fact(label, showMegabytes(Number(value)));
  const kind = name.endsWith('At') ? 'time' : typeof value === 'number' ? 'number' : 'text';
  return fact(label, toShow({ name, kind }, value));
}
