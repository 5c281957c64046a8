// @ts-check
import { call, session } from './api/call.js';
import { readCollections } from './api/model.js';
import { draw, events, onClick, set } from './lib/dom.js';
import { isChanged, mayLeaveForm, openDraft } from './state/draft.js';
import { collectionNow, loadList } from './state/list.js';
import { channelName, findCollection, ownPath, state } from './state/me.js';
import { explain, say } from './state/news.js';
import { loadTotals } from './state/places.js';
import { followChanges } from './state/changes.js';
import { resetAll } from './state/reset.js';
import {
  address,
  isAccount,
  isGuide,
  readRoute,
  route,
  router,
  rowOrTitle,
} from './state/route.js';
import { drawFrame, hideMenu } from './views/frame.js';
import { close as closeList, drawRecords } from './views/list.js';

/** @typedef {{ open(): unknown, view(): import('./types.js').Description, close?(): void }} View */

/**
 * The page's own views by the name in their address.
 * @type {{ [name: string]: () => Promise<View> }}
 */
const routes = {
  '': () => import('./views/home.js'),
  api: () => import('./views/guide.js'),
  keys: () => import('./views/account.js'),
  schema: () => import('./views/schema.js'),
  server: () => import('./views/server.js'),
};
/** @type {Map<string, View>} */ const views = new Map();
/**
 * Shows records. Loaded with the first one.
 * @type {typeof import('./views/record.js') | undefined}
 */
let record;

const retryMs = 3000;
const signing = () => import('./views/sign-in.js');
/** Why the page does not start. */ let failure = '';
/** The address of the current view. */ let shown = '';

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
  const { view, id, isPage } = route;
  const collection = collectionNow();
  const isList = !!collection && !collection.single && !isPage;
  const isAlone = isPage || !!collection?.single || isAccount();
  const isForm = !!id && (!!collection || isAccount());
  const own = view ? undefined : views.get(id);
  const isOwn = !view && Object.hasOwn(routes, id);
  drawFrame(failure, {
    records: { hidden: !isList },
    drawer: { hidden: !isForm, class: isAlone ? 'scroll alone' : 'scroll' },
    home: { hidden: !isOwn },
    nowhere: { hidden: isOwn || !!collection || isAccount() || !state.description },
  });
  if (isOwn) drawHome(own);
  if (isList) drawRecords(collection);
  if (isForm) record?.drawDrawer(isAlone);
};

/** @param {View} [own] */
const drawHome = (own) => set('home', own?.view());

router.arrive = async (isSameForm) => {
  const target = location.hash;
  const isOther = target.split('?')[0] !== shown.split('?')[0];
  if (isOther && !isSameForm && isChanged()) {
    // The form stays open until the person has decided.
    history.pushState(null, '', shown);
    if (!(await mayLeaveForm())) return;
    history.pushState(null, '', target);
  }
  const former = { ...route };
  Object.assign(route, readRoute(target));
  if (!state.me) (await signing()).showSignIn();
  if (!state.me && !isGuide()) return;
  shown = target;
  const { view, id, isPage } = route;
  const collection = collectionNow();
  if (collection?.single && id !== 'value') {
    history.replaceState(null, '', address(view, 'value'));
    return router.arrive(true);
  }
  const isOwn = isAccount();
  const isView = former.view !== view || former.isPage !== isPage || (!view && id !== former.id);
  const isClosed = !isView && former.id && !id;
  if (isView) say('');
  hideMenu();
  if (collection && !collection.single && !isPage) void loadList();
  draw(isView ? 'section:not([hidden]) h1' : isClosed ? rowOrTitle(former.id) : undefined);
  if (id && (collection || isOwn)) record ??= await import('./views/record.js');
  if (isOther)
    openDraft(isOwn ? findCollection('users') : collection, isOwn ? `${state.me?.id}` : id);
  // `#/constructor` is not a view, although every object has one.
  const load = !view && Object.hasOwn(routes, id) && routes[id];
  if (!load) return;
  const module = views.get(id) ?? (await load());
  views.set(id, module);
  await module.open();
};
window.onpopstate = () => events.run(() => router.arrive(false));
// A document from the browser's cache may show someone who has signed out since.
window.onpageshow = ({ persisted }) => persisted && location.reload();
window.onbeforeunload = (event) => {
  if (isChanged() || state.removals.length > 0 || state.isImporting) event.preventDefault();
};

async function start() {
  failure = '';
  if (!route.view && route.id === 'invite' && route.of) {
    const token = route.of;
    // Keeps the secret out of the history.
    history.replaceState(null, '', './');
    Object.assign(route, readRoute(''));
    return (await signing()).acceptInvitation(token);
  }
  try {
    // The list can load while the description is still on its way.
    if (route.view && !route.isPage && route.id !== 'value') void loadList(true);
    const [me] = await Promise.all([whoIsThere(), describe()]);
    Object.assign(state, { me });
    void events.run(() => router.arrive(false));
    void loadTotals().catch(() => {});
    if (`/${ownPath('changes')}` in (state.description?.paths ?? {})) followChanges();
  } catch (error) {
    failure = explain(error);
    window.setTimeout(start, retryMs);
  }
  draw();
}

/** Returns the person, who signs in first if there is no session. */
const whoIsThere = async () =>
  state.isOpen
    ? { id: 0, name: 'Everyone', email: '', role: 'admin' }
    : (await call('GET', 'dashboard')).data.user;

/** Reads the server's description. Only its documentation waits for that. */
async function describe() {
  const { data: description } = await call('GET', 'openapi.json');
  const collections = readCollections(description);
  const hasUsers = '/tokens/revoke' in description.paths;
  Object.assign(state, { description, collections, hasUsers });
  if (isGuide()) void events.run(() => router.arrive(false));
  draw();
}

session.user = () => state.me?.id;
session.left = async () => {
  for (const each of views.values()) each.close?.();
  closeList();
  resetAll();
  shown = '';
  history.pushState(null, '', './');
  await start();
};
session.changed = async () => (await signing()).noticeOther();
new BroadcastChannel(channelName).onmessage = ({ data: id }) =>
  events.run(async () => (await signing()).noticeUser(id));
session.ended = async () => (await signing()).signIn();
onClick('sign-out', async () => (await mayLeaveForm()) && (await signing()).signOut(false));

/**
 * Checks if the server responds. A server on this device needs no network, whatever the browser
 * reports.
 */
async function reach() {
  try {
    await call('GET', 'livez');
    failure = '';
  } catch (error) {
    failure = explain(error);
    window.setTimeout(reach, retryMs);
  }
  draw();
}
window.ononline = window.onoffline = reach;

/** When the tab regains focus, checks if the session has ended or belongs to someone else. */
window.onfocus = () =>
  events.run(async () => {
    if (state.isOpen) return;
    const { data } = await call('GET', 'dashboard');
    await (await signing()).noticeUser(data.user.id);
  });

void start();
void import('./views/keys.js');
