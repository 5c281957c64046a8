// @ts-check
/** Forgets everything that was read, drawn and typed for a person. */
import * as call from '../api/call.js';
import * as feed from '../api/feed.js';
import * as combobox from '../lib/combobox.js';
import * as dom from '../lib/dom.js';
import * as draft from './draft.js';
import * as list from './list.js';
import * as me from './me.js';
import * as names from './names.js';
import * as places from './places.js';
import * as related from './related.js';
import * as route from './route.js';
import * as server from './server.js';
import * as sessions from './sessions.js';

/** Requests end first, so that no response arrives later. The drawing goes last. */
// prettier-ignore
const all = [
  call, feed, list, draft, related, names, places, server, sessions, me, route, combobox, dom,
];

export function resetAll() {
  for (const each of all) each.reset();
}
