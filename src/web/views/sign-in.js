// @ts-check
/** Signs in and out, in this tab and in others. */
import { call, Problem, session } from '../api/call.js';
import { capitalized } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { events, onClick, part, set } from '../lib/dom.js';
import { count, findCollection, state, storage, explain } from '../state/me.js';
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

/** What the sign-in says at first. */ let news = '';
let isNew = false;
let hasSignedIn = false;
let resume = () => {};
/** @type {Promise<void> | undefined} */ let signingIn;

export function signIn() {
  const { me } = state;
  set('reason', news || (me ? endedAdvice : hasSignedIn && cookieAdvice));
  if (me) email.value = me.email;
  set('to-guide', { hidden: !!me });
  set('first-sign-in', { hidden: !!storage['signedIn'] });
  if (!signingIn) show(false);
  signingIn ??= new Promise((resolve) => {
    resume = () => {
      signingIn = undefined;
      hasSignedIn = true;
      news = '';
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
  if (dialog.open) return;
  dialog.showModal();
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

/** @param {unknown} error */
const listIssues = (error) => (error instanceof Problem ? error.issues : []);

/** Says why a form was refused. @param {unknown} error */
function explainAll(error) {
  const all = listIssues(error).map(
    ({ pointer, detail }) => `${capitalized(pointer.slice(1))} ${detail}.`,
  );
  return all.join(' ') || explain(error);
}

/**
 * Asks for the values of a form of index.html, again and again until they are accepted.
 * @type {(id: string, send: (values: { [name: string]: unknown }) => Promise<unknown>) => Promise<void>}
 */
export async function askForm(id, send) {
  const form = part(`${id}-form`, HTMLFormElement);
  const fields = findCollection('users')?.fields ?? [];
  const { minLength = 0 } = fields.find(({ name }) => name === 'password')?.schema ?? {};
  for (const hint of form.getElementsByTagName('small'))
    hint.textContent = minLength > 1 ? `At least ${minLength} characters.` : '';
  let [problem, refused] = ['', ''];
  for (;;) {
    const asked = ask(id, problem);
    const field = form.elements.namedItem(refused);
    if (field instanceof HTMLInputElement) field.select();
    if (!(await asked)) break;
    try {
      await send(Object.fromEntries(new FormData(form)));
      break;
    } catch (error) {
      problem = explainAll(error);
      refused = listIssues(error)[0]?.pointer.slice(1) ?? '';
    }
  }
  form.reset();
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
      set('reason', explainAll(error));
      password.select();
    }
  },
});

/** Lets an invited person choose a password. @param {string} token */
export async function acceptInvitation(token) {
  await askForm('invitation', async ({ password }) => {
    await call('POST', 'invitations', { body: { token, password } });
    news = 'Your password is set. Sign in with it.';
  });
  await session.left();
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
  news = everywhere ? 'All your sessions have ended.' : 'You have signed out.';
  if (kept) news += ` Nothing that was about to be removed was removed: ${kept}.`;
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
