// @ts-check
/** Starts the page, opens the view that the address names, and draws the header and the messages around the views. */
import { call, session } from './api/call.js';
import { bdi, button, events, h, inputOf, onClick, part, set } from './lib/dom.js';
import { collectionsOf, wordsOf } from './api/model.js';
import { collectionNow, drawRecords, loadList } from './views/list.js';
import {
  address,
  channelName,
  collectionOf,
  draw,
  explain,
  go,
  isAccount,
  isGuide,
  ownViews,
  page,
  readRoute,
  rowOrTitle,
  say,
  state,
  views,
} from './state/state.js';
import { initials } from './views/values.js';

/** @typedef {{ view(): import('./types.js').Description, arrive(): unknown }} Own */

const retryMs = 3000;
const signing = () => import('./views/sign-in.js');

// Modules that the first list does not need are loaded on demand.
/** @type {typeof import('./views/record.js') | undefined} */
let record;
/** @type {typeof import('./views/palette.js') | undefined} */ let palette;
/** Views of the page's own, by their ids. @type {{ [id: string]: () => Promise<Own> }} */
const loaders = {
  '': () => import('./views/home.js'),
  api: () => import('./views/guide.js'),
  schema: () => import('./views/schema.js'),
};
/** @type {{ [id: string]: Own | undefined }} */ const own = {};
let failure = '';
/** The tab that was scrolled into view. @type {Element | null} */ let tab = null;
/** The address of the view that is shown. */ let shown = '';

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

onClick('go-to', async () => {
  part('menu', HTMLElement).hidePopover();
  palette ??= await import('./views/palette.js');
  palette.open();
});

page.paint = () => {
  const {
    me,
    route: { view, id },
    message,
    removals,
  } = state;
  const collection = collectionNow();
  const place = isAccount() ? '' : id;
  const isHome = !view && Object.hasOwn(loaders, place);
  const isSingle = !!collection?.single;
  const isForm = !!id && (!!collection || isAccount());
  const isReader = !me && isGuide() && !!state.description;
  const here = view ? address(view) : `#/${id}`;
  const places = me ? views() : [];
  set(
    'views',
    { hidden: !me },
    places.map(({ href, title }) =>
      h('a', { href, 'aria-current': href === here && 'page' }, title),
    ),
  );
  set(
    'view',
    { hidden: !me, value: here, onchange: (event) => go(inputOf(event)) },
    (me ? [...places, ...ownViews] : []).map(({ href, title }) =>
      h('option', { value: href }, title),
    ),
  );
  const current = document.querySelector('#views [aria-current]');
  if (current !== tab) current?.scrollIntoView({ block: 'nearest', inline: 'center' });
  tab = current;
  set('to-sign-in', { hidden: !isReader });
  const users = collectionOf('users');
  set('register', { hidden: !!me || !users || !wordsOf(users, 'create').includes('optional') });
  set(
    'who',
    { hidden: !me, 'aria-label': `${me?.name} ${me?.role}` },
    me && initials(me.name),
    bdi(me?.name ?? ''),
    ' ',
    h('small', me?.role),
  );
  set('failure', failure && `${failure} The page tries again by itself.`);
  set('main', { hidden: !me && !isReader });
  set('records', { hidden: !collection || isSingle });
  set('drawer', { hidden: !isForm, class: isSingle ? 'scroll alone' : 'scroll' });
  set('home', { hidden: !isHome }, isHome && own[place]?.view());
  set('nowhere', { hidden: isHome || !!collection });
  palette?.drawPalette();
  if (collection && !isSingle) drawRecords(collection);
  if (isForm) record?.drawDrawer();
  set('status', message && h('span', message));
  set(
    'removals',
    false,
    ...removals.map(({ text, until, undo }) =>
      h(
        'li.row',
        { key: until },
        h('span', text),
        h(
          'small',
          { 'aria-hidden': 'true' },
          `${Math.max(0, Math.ceil((until - performance.now()) / 1000))} s`,
        ),
        button('Undo', undo, { 'data-key': 'u', 'aria-keyshortcuts': 'u' }),
      ),
    ),
  );
  document.title = `${me ? (collection?.title ?? 'Overview') : isReader ? 'Documentation' : 'Sign in'} · Cairn`;
};

page.arrive = async (isSameForm = false) => {
  const target = location.hash;
  const isOther = target.split('?')[0] !== shown.split('?')[0];
  if (isOther && !isSameForm && record?.isChanged()) {
    // The form stays open until the person has decided.
    history.pushState(null, '', shown);
    if (!(await record.mayLeaveForm())) return;
    history.pushState(null, '', target);
  }
  const { view: former, id: formerId } = state.route;
  state.route = readRoute(target);
  if (!state.me) (await signing()).showSignIn();
  if (!state.me && !isGuide()) return;
  shown = target;
  const { view, id } = state.route;
  const collection = collectionNow();
  if (collection?.single && id !== 'value') return go(address(view, 'value'), true);
  const isOwn = isAccount();
  const place = isOwn ? '' : id;
  const isView = former !== view || (!view && !isOwn && id !== formerId);
  const isClosed = !isView && formerId && !id;
  if (isView) say('');
  part('menu', HTMLElement).hidePopover();
  if (collection && !collection.single) void loadList();
  draw(isView ? 'section:not([hidden]) h1' : isClosed ? rowOrTitle(formerId) : undefined);
  if (id && (collection || isOwn)) record ??= await import('./views/record.js');
  if (isOther)
    record?.openDraft(isOwn ? collectionOf('users') : collection, isOwn ? `${state.me?.id}` : id);
  // `#/constructor` is no view, though every object has one.
  const loader = !view && Object.hasOwn(loaders, place) && loaders[place];
  if (loader) await (own[place] ??= await loader()).arrive();
};
window.onpopstate = () => events.run(() => page.arrive());
// A document that the browser kept may be of a person who has signed out since.
window.onpageshow = ({ persisted }) => persisted && location.reload();
window.onbeforeunload = (event) => {
  if (record?.isChanged() || state.removals.length > 0 || state.isImporting) event.preventDefault();
};

page.start = async () => {
  failure = '';
  try {
    // The list can load while the description is still on its way.
    if (state.route.view && state.route.id !== 'value') void loadList(true);
    const [me] = await Promise.all([whoIsThere(), describe()]);
    Object.assign(state, { me });
    void events.run(() => page.arrive());
    if ('/changes' in (state.description?.paths ?? {})) (await import('./api/feed.js')).follow();
  } catch (error) {
    failure = explain(error);
    window.setTimeout(page.start, retryMs);
  }
  draw();
};

/** Returns the person, who signs in first where there is no session. */
const whoIsThere = async () =>
  state.isOpen
    ? { id: 0, name: 'Everyone', email: '', role: 'admin' }
    : (await call('GET', 'dashboard')).data.user;

/** Reads what the server is; its documentation waits for nothing else. */
async function describe() {
  const { data: description } = await call('GET', 'openapi.json');
  const collections = collectionsOf(description);
  const hasUsers = '/tokens/revoke' in description.paths;
  Object.assign(state, { description, collections, hasUsers });
  if (isGuide()) void events.run(() => page.arrive());
  draw();
}

session.user = () => state.me?.id;
session.changed = async () => (await signing()).noticeOther();
new BroadcastChannel(channelName).onmessage = ({ data: id }) =>
  events.run(async () => (await signing()).noticeUser(id));
session.ended = async () => (await signing()).signIn();
page.signOut = async (everywhere) => {
  if (!record || (await record.mayLeaveForm())) await (await signing()).signOut(everywhere);
};

/** Asks the server whether it answers: one on this device needs no network, whatever the browser says of that. */
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

/** When the tab gets the focus back, checks whether the session has ended, or belongs to someone else. */
window.onfocus = () =>
  events.run(async () => {
    if (state.isOpen) return;
    const { data } = await call('GET', 'dashboard');
    await (await signing()).noticeUser(data.user.id);
  });

onClick('sign-out', () => page.signOut(false));
onClick('skip', () => draw('#main'));
set('instance', location.host);
void page.start();
void import('./views/keys.js');
