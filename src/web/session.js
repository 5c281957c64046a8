// @ts-check
/** Signing in and out, in this tab and in others. */
import { call } from './api.js';
import { part, set } from './dom.js';
import { list } from './records.js';
import { ask, explain, page, say, state } from './state.js';

const endedAdvice = 'Your session has ended. Sign in again to go on: what you typed is still here.';
const cookieAdvice = 'Your password was right, but this browser did not keep the session cookie. Allow cookies for ' +
  'this site. Safari keeps this one over HTTPS only, even on this machine.';

const dialog = part('sign-in', HTMLDialogElement);
const email = part('email', HTMLInputElement);
const password = part('password', HTMLInputElement);

/** What else there is to say. */ let news = '';
let hasSignedIn = false;
/** What goes on when they have signed in. */ let goOn = () => {};
/** @type {Promise<void> | undefined} */ let signingIn;

/** Asks for e-mail address and password, above what is shown, until they are right. */
export function signIn() {
  const { me } = state;
  set('reason', news || (me ? endedAdvice : hasSignedIn && cookieAdvice));
  if (me) email.value = me.email;
  signingIn ??= new Promise((resolve) => {
    goOn = () => {
      signingIn = undefined;
      hasSignedIn = true;
      news = '';
      dialog.close();
      resolve();
    };
  });
  if (!dialog.open) dialog.showModal();
  (me ? password : email).focus();
  return signingIn;
}
dialog.oncancel = (event) => event.preventDefault();

set('credentials', {
  hidden: !window.isSecureContext,
  async onsubmit(event) {
    event.preventDefault();
    try {
      const body = { email: email.value, password: password.value };
      const { data: { user } } = await call('POST', 'login', { body });
      password.value = '';
      notice(user.id);
    } catch (error) {
      set('reason', explain(error));
      password.select();
    }
  },
});

/** @param {boolean} everywhere */
export async function signOut(everywhere) {
  await call('POST', 'logout', { body: { everywhere } });
  // Nothing of the person is left on the page, not even behind "back".
  Object.assign(state, { me: undefined });
  say('');
  Object.assign(list, { key: '', rows: [] });
  history.pushState(null, '', './');
  hasSignedIn = false;
  news = everywhere ? 'All your sessions have ended.' : 'You have signed out.';
  void page.start();
}

/** Is told who has signed in, perhaps in another tab. @param {number} id */
export async function notice(id) {
  const { me } = state;
  if (dialog.open && (!me || me.id === id)) return goOn();
  if (!me || me.id === id) return;
  // What is open belongs to somebody else.
  if (!dialog.open) await ask('somebody-else');
  location.reload();
}

const { host, hostname, port } = location;
set('insecure', { hidden: window.isSecureContext });
set('secure-address', { href: `https://${host}/` }, `https://${host}/`);
set('tunnel', `ssh -L 3000:localhost:${port || 80} ${hostname}`);
