// @ts-check
/** The page: signs a person in, and shows the view that the address names. */
import { call } from './api.js';
import { attempt, fill, h, part } from './dom.js';
import { makeForm } from './form.js';
import { accountView, overviewView } from './person.js';
import { items, recordsView, users } from './records.js';

/**
 * @typedef {import('./api.js').User} User
 * @typedef {{ title: string, nodes: readonly Node[], update: (parameters: URLSearchParams) => void }} View
 */

/** Under --auth none everybody is an administrator: nobody signs in, and nothing is anybody's own. */
const isOpen = document.documentElement.dataset['auth'] === 'none';
/** @type {{ [name: string]: (me: User) => View }} */
const views = {
  items: (me) => recordsView(items, me),
  users: (me) => (me.role === 'admin' ? recordsView(users, me) : accountView(me)),
  ...(isOpen ? {} : { overview: (me) => overviewView(me, signOut), account: accountView }),
};

const main = part('main');
const bar = part('bar');
/** @type {User | undefined} */ let me;
/** @type {View | undefined} */ let view;
let shown = '';
/** What the sign-in says when the server asks for it. */ let news = '';

/** Shows what the address names; a view that is shown already is told of its new parameters only. */
function route() {
  if (me === undefined) return;
  const [given = '', query = ''] = location.hash.slice(1).split(/\?(.*)/su);
  const name = Object.hasOwn(views, given) ? given : isOpen ? 'items' : 'overview';
  if (view === undefined || name !== shown) {
    shown = name;
    view = (views[name] ?? accountView)(me);
    document.title = `${view.title} · Cairn`;
    for (const link of bar.querySelectorAll('a')) link.ariaCurrent = link.hash === `#${name}` ? 'page' : null;
    main.replaceChildren(...view.nodes);
    main.querySelector('h1')?.focus();
  }
  view.update(new URLSearchParams(query));
}

/** Finds out who is signed in, and shows their view or the sign-in. @param {boolean} [justNow] */
async function start(justNow = false) {
  news = justNow ? 'Your password was right, but this browser did not keep the session cookie. Allow cookies for ' +
    'this site; and note that Safari keeps this one over HTTPS only, even on this machine.' : '';
  await fill(main, async () => {
    // At /dashboard the server has just looked. Elsewhere ask as a browser does for a page: there a "no" is no error.
    const page = new Request('/dashboard', { redirect: 'manual', headers: { Accept: 'text/html' } });
    const here = isOpen || justNow || location.pathname !== '/' || await fetch(page).then(({ ok }) => ok, () => true);
    if (!here) return showSignIn('');
    me = isOpen ? { id: 0, name: '', email: '', role: 'admin' } : (await call('GET', '/dashboard')).data.user;
    news = 'Your session has ended. Sign in again to go on.';
    history.replaceState(history.state, '', `${isOpen ? '/' : '/dashboard'}${location.hash}`);
    bar.hidden = false;
    for (const link of bar.querySelectorAll('a')) link.hidden = link.hash === '#users' && me?.role !== 'admin';
    return [];
  }, route);
}

/** Shows the sign-in in place of everything. @param {string} notice */
async function showSignIn(notice) {
  me = undefined;
  view = undefined;
  bar.hidden = true;
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
  document.title = 'Sign in · Cairn';
  history.replaceState(history.state, '', `/${location.hash}`);
  const form = makeForm({
    fields: [
      { name: 'email', label: 'Email', type: 'email', autocomplete: 'username' },
      { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
    ],
    submit: 'Sign in',
    send: async (body) => {
      await call('POST', '/login', { body });
      await start(true);
    },
  });
  await fill(main, async () => [h('div', { class: 'card' },
    h('img', { src: '/page/icon.svg', alt: '', width: 48 }), h('h1', { tabindex: '-1' }, 'Sign in to Cairn'),
    h('p', { class: 'notice', role: 'alert', hidden: notice === '' }, notice),
    window.isSecureContext ? form : insecureNotice())]);
  main.querySelector('input')?.focus();
  return [];
}

/** Over plain HTTP from the network a sign-in would show the password to others, and its cookie would not be kept. */
function insecureNotice() {
  const { host, hostname, port } = location;
  const tunnel = `ssh -L 3000:localhost:${port || 80} ${hostname}`;
  return h('div', { class: 'notice', role: 'alert' },
    h('p', {}, 'You cannot sign in over this connection. It is plain HTTP over a network: browsers keep no session ',
      'cookie there, and others could read your password. Do one of these:'),
    h('ul', {},
      h('li', {}, 'Open ', h('a', { href: `https://${host}/` }, `https://${host}/`), ', if the server offers it.'),
      h('li', {}, 'Have it started with --tls-cert and --tls-key, or behind a proxy that speaks HTTPS.'),
      h('li', {}, `Make a tunnel with “${tunnel}”, and open http://localhost:3000/.`)));
}

const signOut = (everywhere = false) => attempt(async () => {
  await call('POST', '/logout', { body: everywhere ? { everywhere } : null });
  history.pushState(null, '', '/');
  await showSignIn(everywhere ? 'All your sessions have ended.' : 'You have signed out.');
});

window.addEventListener('sessionended', () => showSignIn(news));
window.addEventListener('popstate', route);
part('sign-out').addEventListener('click', () => signOut());
part('skip').addEventListener('click', () => main.focus());
start();
