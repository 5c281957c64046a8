// @ts-check
/** Signs in and out, in this tab and in others. */
import { call, Problem, session } from '../api/call.js';
import { capitalized } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { events, onClick, part, set } from '../lib/dom.js';
import { count, state, storage, tabStorage, explain } from '../state/me.js';
import { isGuide } from '../state/route.js';

const endedAdvice =
  'Your session has ended. Sign in again to continue: what you typed is still here.';
const cookieAdvice =
  'Your password was right, but this browser did not keep the session cookie. Allow cookies for ' +
  'this site. Safari keeps this one over HTTPS only, even on this machine.';

/** Tabs of one server announce who has signed in; an origin may have several servers. */
const tabs = new BroadcastChannel(`session of ${new URL('.', location.href).pathname}`);
tabs.onmessage = ({ data: id }) => events.run(() => noticeUser(id));

const dialog = part('sign-in', HTMLDialogElement);
const email = part('email', HTMLInputElement);
const password = part('password', HTMLInputElement);
const name = part('new-name', HTMLInputElement);

let isNew = false;
let hasSignedIn = false;
let resume = () => {};
/** @type {Promise<void> | undefined} */ let signingIn;

export function signIn() {
  const { me } = state;
  set('reason', tabStorage['news'] || (me ? endedAdvice : hasSignedIn && cookieAdvice));
  if (me) email.value = me.email;
  set('to-guide', { hidden: !!me });
  set('first-sign-in', { hidden: !!storage['signedIn'] });
  if (!signingIn) show(false);
  signingIn ??= new Promise((resolve) => {
    resume = () => {
      signingIn = undefined;
      hasSignedIn = true;
      delete tabStorage['news'];
      dialog.close();
      resolve();
    };
  });
  showSignIn();
  return signingIn;
}

/**
 * Shows the dialog until someone signs in. Readers of the documentation see it only if their
 * session has ended.
 */
export function showSignIn() {
  const { me } = state;
  if (!signingIn || (!me && isGuide())) return dialog.close();
  if (!dialog.open) dialog.showModal();
  (me ? password : email).focus();
}
dialog.oncancel = (event) => event.preventDefault();

/** @param {boolean} asNew */
function show(asNew) {
  isNew = asNew;
  name.required = asNew;
  set('for-name', { hidden: !asNew });
  set('enter', asNew ? 'Create account' : 'Sign in');
  set('register', asNew ? 'I have an account' : 'Create an account');
}
onClick('register', () => {
  show(!isNew);
  (isNew ? name : email).focus();
});

/** Says why a form was refused. @type {(place: string, error: unknown) => void} */
function refuse(place, error) {
  const { issues } = error instanceof Problem ? error : new Problem();
  const all = issues.map(({ pointer, detail }) => `${capitalized(pointer.slice(1))} ${detail}.`);
  set(place, all.join(' ') || explain(error));
}

set('credentials', {
  hidden: !window.isSecureContext,
  async onsubmit() {
    try {
      const body = { email: email.value, password: password.value };
      if (isNew) await call('POST', 'users', { body: { ...body, name: name.value } });
      show(false);
      const { data } = await call('POST', 'login', { body });
      password.value = '';
      storage['signedIn'] = 'yes';
      tabs.postMessage(data.user.id);
      void noticeUser(data.user.id);
    } catch (error) {
      refuse('reason', error);
      password.select();
    }
  },
});

/** Lets an invited person choose a password, and signs in with it. @param {string} token */
export async function acceptInvitation(token) {
  set('choose-password', {
    async onsubmit() {
      try {
        const body = { token, password: part('chosen', HTMLInputElement).value };
        await call('POST', 'invitations', { body });
        tabStorage['news'] = 'Your password is set. Sign in with it.';
        location.reload();
      } catch (error) {
        refuse('invitation-problem', error);
      }
    },
  });
  part('invitation', HTMLDialogElement).showModal();
}

function endRemovals() {
  const { removals } = state;
  for (const { undo } of removals) undo();
  return removals.map(({ collection, rows }) => count(rows, collection)).join(', ');
}

/** @param {boolean} everywhere */
export async function signOut(everywhere) {
  const kept = endRemovals();
  await call('POST', 'logout', { body: { everywhere } });
  let news = everywhere ? 'All your sessions have ended.' : 'You have signed out.';
  if (kept) news += ` Nothing that was about to be removed was removed: ${kept}.`;
  tabStorage['news'] = news;
  hasSignedIn = false;
  await session.left();
}

/** @param {number} id */
export async function noticeUser(id) {
  const { me } = state;
  if (dialog.open && (!me || me.id === id)) return resume();
  if (me && me.id !== id) await noticeOther();
}

/**
 * Reports that the session now belongs to someone else, so that nothing more is sent for the person
 * shown.
 */
export async function noticeOther() {
  endRemovals();
  if (dialog.open || (await ask('other-user', state.me?.name))) location.reload();
}

const { host, hostname, port } = location;
set('insecure', { hidden: window.isSecureContext });
set('secure-address', { href: `https://${host}/` }, `https://${host}/`);
set('tunnel', `ssh -L 3000:localhost:${port || 80} ${hostname}`);
