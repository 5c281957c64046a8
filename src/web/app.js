// @ts-check
/** Starts the page, opens the view that the address names, and draws the header and the messages around the views. */
import { call, session } from './api.js';
import { bdi, button, events, h, onClick, part, set } from './dom.js';
import { collectionsOf, isAllowed } from './model.js';
import { collectionNow, drawRecords, list, loadList } from './records.js';
import { address, draw, explain, page, readRoute, say, state } from './state.js';

const retryMs = 3000;

/** Modules that the first list does not need are loaded on demand. @type {typeof import('./record.js') | undefined} */
let record;
/** @type {typeof import('./home.js') | undefined} */ let home;
let failure = '';
/** The address of the view that is shown. */ let shown = '';
const nowhere = h('div.stack',
  h('h1', 'There is nothing at this address'), h('p', h('a', { href: '#/' }, 'Go to the overview')));

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

page.paint = () => {
  const { me, route: { view, id }, toast, collections } = state;
  const collection = collectionNow();
  const views = collections.filter((each) => isAllowed(each, 'list', me?.role)).map(({ title, name }) => [title, name]);
  set('bar', { hidden: !me });
  set('views', ...[['Overview', ''], ...views].map(([title, name]) =>
    h('a', { key: name, href: address(name), 'aria-current': name === view && 'page' }, title)));
  set('who', bdi(me?.name ?? ''), h('small', me?.role));
  set('failure', { hidden: !failure }, `${failure} The page tries again by itself.`);
  set('records', { hidden: !me || !collection });
  set('drawer', { hidden: !me || !collection || !id });
  const form = record?.draft && record.recordForm(record.draft);
  set('home', { hidden: !me || !!collection }, view ? nowhere : home?.homeView(form));
  if (collection) drawRecords(collection);
  if (collection) record?.drawDrawer(form, view === 'users' && home?.sessionsView());
  set('status', toast.text && h('span', toast.text), toast.undo && button('Undo', toast.undo));
  document.title = `${me ? collection?.title ?? 'Overview' : 'Sign in'} · Cairn`;
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
  const former = state.route.view;
  state.route = readRoute(target);
  shown = target;
  if (!state.me) return;
  const { view, id } = state.route;
  const collection = collectionNow();
  const isView = former !== view || !view;
  if (isView) say('');
  part('menu', HTMLElement).hidePopover();
  if (collection) void loadList();
  draw(isView ? 'section:not([hidden]) h1' : undefined);
  if (collection ? id : id === 'account') record ??= await import('./record.js');
  if (isOther) record?.openDraft(collection, id);
  if (view && view !== 'users') return;
  home ??= await import('./home.js');
  await home.loadHome(record);
};
window.onpopstate = () => events.run(() => page.arrive());
window.onbeforeunload = (event) => {
  if (record?.isChanged() || list.leaving.length > 0) event.preventDefault();
};

page.start = async () => {
  failure = '';
  try {
    // The list can load while the description is still on its way.
    if (state.route.view) void loadList(true);
    const everyone = { data: { user: { id: 0, name: 'Everyone', email: '', role: 'admin' } } };
    const [{ data: description }, { data: { user } }] =
      await Promise.all([call('GET', 'openapi.json'), state.isOpen ? everyone : call('GET', 'dashboard')]);
    Object.assign(state, { collections: collectionsOf(description), me: user });
    void events.run(() => page.arrive());
    if ('/changes' in description.paths) (await import('./live.js')).follow(() => record);
  } catch (error) {
    failure = explain(error);
    window.setTimeout(page.start, retryMs);
  }
  draw();
};

session.ended = async () => (await import('./session.js')).signIn();
page.signOut = async (everywhere) => {
  if (!record || await record.mayLeaveForm()) await (await import('./session.js')).signOut(everywhere);
};

/** When the tab gets the focus back, checks whether another tab has signed in as someone else. */
window.onfocus = () => events.run(async () => {
  if (!state.isOpen) await (await import('./session.js')).noticeUser((await call('GET', 'dashboard')).data.user.id);
});

onClick('sign-out', () => page.signOut(false));
onClick('skip', () => draw('#main'));
set('instance', location.host);
void page.start();
void import('./keys.js');
