// @ts-check
import { call, session } from './api/call.js';
import { readCollections } from './api/model.js';
import { draw, events, h, onClick, set } from './lib/dom.js';
import { countChanges, mayLeaveForm } from './state/draft.js';
import { collectionNow, loadList } from './state/list.js';
import { ownPath, state, explain, say } from './state/me.js';
import { loadTotals } from './state/places.js';
import { followChanges } from './state/changes.js';
import { resetAll } from './state/reset.js';
import { address, isGuide, readRoute, route, router, rowOrTitle } from './state/route.js';
import { drawFrame, hideMenu } from './views/frame.js';
import * as listView from './views/list.js';
import { ownView } from './views/parts.js';
import {
  acceptInvitation,
  noticeOther,
  noticeUser,
  showSignIn,
  signIn,
  signOut,
} from './views/sign-in.js';

/** @import { Child } from './types.js' */

/**
 * A part of the page. `open` loads what it shows at each of its addresses, `view` describes it, and
 * `close` forgets its input.
 * @typedef {{ open?(): unknown, view(): Child, close?(): unknown }} View
 * @typedef {() => View | Promise<View>} Load
 */

/** @type {Load} */ const list = () => listView;
const record = () => import('./views/record.js');
/** @type {Load} */ const nowhere = () => ({
  view: () =>
    ownView('There is nothing at this address', [], h('a', { href: '#/' }, 'Go to the overview')),
});

/** The page's own views by the name in their address: `#/api`. @type {{ [name: string]: Load }} */
const ownViews = {
  '': () => import('./views/home.js'),
  ...(!state.isOpen && { account: record }),
  api: () => import('./views/guide.js'),
  keys: () => import('./views/account.js'),
  schema: () => import('./views/schema.js'),
  server: () => import('./views/server.js'),
};

/**
 * Returns the views to show for the address. A record opens next to its list, unless it has its own
 * page.
 * @returns {readonly Load[]}
 */
function chooseViews() {
  const { view, id, isPage } = route;
  const collection = collectionNow();
  // `#/constructor` is not a view, although every object has one.
  if (!view) return [(Object.hasOwn(ownViews, id) && ownViews[id]) || nowhere];
  if (!collection) return [nowhere];
  if (isPage || collection.single) return [record];
  return id ? [list, record] : [list];
}

/** @type {readonly Load[]} */ let chosen = [];
/** @type {Map<Load, View>} */ const loaded = new Map();

/** @param {Load} load */
async function openView(load) {
  if (!loaded.has(load)) loaded.set(load, await load());
  draw();
  // The person may have moved on.
  if (chosen.includes(load)) await loaded.get(load)?.open?.();
}

/** @param {readonly Load[]} next */
function choose(next) {
  for (const each of chosen) if (!next.includes(each)) loaded.get(each)?.close?.();
  chosen = next;
}

const retryMs = 3000;
/** Why the page does not start. */ let failure = '';
let shown = '';

events.run = async (work) => {
  try {
    const result = work();
    draw();
    await result;
  } catch (error) {
    say(explain(error));
  }
  draw();
};

events.paint = () => {
  drawFrame(failure);
  set('main', false, ...chosen.map((each) => loaded.get(each)?.view()));
};

router.arrive = async (isSameForm) => {
  const target = location.hash;
  const isOther = target.split('?')[0] !== shown.split('?')[0];
  if (isOther && !isSameForm && countChanges()) {
    // The form stays open until the person has decided.
    history.pushState(null, '', shown);
    if (!(await mayLeaveForm())) return;
    history.pushState(null, '', target);
  }
  const former = { ...route };
  Object.assign(route, readRoute(target));
  if (!state.me) showSignIn();
  if (!state.me && !isGuide()) return;
  shown = target;
  const { view, id, isPage } = route;
  if (collectionNow()?.single && id !== 'value') {
    history.replaceState(null, '', address(view, 'value'));
    return router.arrive(true);
  }
  const isView = former.view !== view || former.isPage !== isPage || (!view && id !== former.id);
  const isClosed = !isView && former.id && !id;
  if (isView) say('');
  hideMenu();
  choose(chooseViews());
  draw(isView ? 'main h1' : isClosed ? rowOrTitle(former.id) : undefined);
  await Promise.all(chosen.map(openView));
};
window.onpopstate = () =>
  // An invitation opened in this tab: the page starts again, and removes the secret.
  location.hash.startsWith('#/invite/')
    ? location.reload()
    : events.run(() => router.arrive(false));
// A document from the browser's cache may show someone who has signed out since.
window.onpageshow = ({ persisted }) => persisted && location.reload();
window.onbeforeunload = (event) => {
  if (countChanges() || state.removals.length > 0 || state.isImporting) event.preventDefault();
};

/** Does something again and again until it succeeds. @param {() => Promise<unknown>} work */
async function keepTrying(work) {
  failure = '';
  try {
    await work();
  } catch (error) {
    failure = explain(error);
    setTimeout(keepTrying, retryMs, work);
  }
  draw();
}

async function start() {
  if (!route.view && route.id === 'invite' && route.of) {
    const token = route.of;
    // Keeps the secret out of the history.
    history.replaceState(null, '', './');
    Object.assign(route, readRoute(''));
    // It says how long a password must be.
    await describe().catch(() => {});
    return acceptInvitation(token);
  }
  return keepTrying(async () => {
    await describe();
    // Signs in first if there is no session.
    state.me = state.isOpen
      ? { id: 0, name: 'Everyone', email: '', role: 'admin' }
      : (await call('GET', 'dashboard')).data.user;
    void events.run(() => router.arrive(false));
    // The overview reads them whenever it opens.
    if (route.view || route.id) void loadTotals().catch(() => {});
    if (`/${ownPath('changes')}` in (state.description?.paths ?? {})) followChanges();
  });
}

/** Reads the server's description. Only its documentation waits for that. */
async function describe() {
  const { data: description } = await call('GET', 'openapi.json');
  Object.assign(state, { description, collections: readCollections(description) });
  // The list loads in its declared order, while the person is still unknown.
  const collection = collectionNow();
  if (collection && !collection.single && !route.isPage) void loadList();
  if (isGuide()) void events.run(() => router.arrive(false));
  draw();
}

session.user = () => state.me?.id;
session.left = async () => {
  choose([]);
  resetAll();
  shown = '';
  history.pushState(null, '', './');
  await start();
};
session.changed = noticeOther;
session.ended = signIn;
onClick('sign-out', async () => (await mayLeaveForm()) && signOut(false));

// A server on this device needs no network, whatever the browser reports.
window.ononline = window.onoffline = () => keepTrying(() => call('GET', 'livez'));

/** When the tab regains focus, checks if the session has ended or belongs to someone else. */
window.onfocus = () =>
  events.run(async () => {
    if (state.isOpen) return;
    const { data } = await call('GET', 'dashboard');
    await noticeUser(data.user.id);
  });

void start();
void import('./views/keys.js');
