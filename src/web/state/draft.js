// @ts-check
/**
 * The form of one record, in a drawer next to its list or as the person's account. Input is kept
 * until it is saved or discarded: it survives a refusal, a lost response, the end of the session
 * and changes by others.
 */
import { call, newKey, Problem } from '../api/call.js';
import { at, withChanges } from '../api/cells.js';
import { isOpen, listLeaves, listWords } from '../api/model.js';
import { fromText, toText } from '../api/texts.js';
import { ask } from '../lib/dialog.js';
import { draw } from '../lib/dom.js';
import { loadList, showChange } from './list.js';
import { allows, state, explain, say } from './me.js';
import { findName } from './names.js';
import { loadRelated, referencesTo, relatedTo } from './related.js';
import { address, go, newId, pageAddress, route } from './route.js';
import { loadSessions } from './sessions.js';

/** @import { Change, Collection, Draft, Field, Stored } from '../types.js' */
/** @import { Change as FieldChange } from '../api/cells.js' */

/** @type {Draft | undefined} */
export let draft;
const controls = '.record :is(input, select, textarea)';

/** The kinds that a form control writes differently from an address. */
const typedKinds = new Set(['time', 'number', 'integer']);

/** Texts by field. Without a prototype, because a field may be called `constructor`. */
const empty = () => Object.create(null);

/** The state of a form at its start, and once it is based on another version. */
const untroubled = () => ({
  isSaving: false,
  isUnknown: false,
  isGone: false,
  isNew: false,
  disputes: empty(),
  issues: empty(),
  message: '',
});

export function reset() {
  draft = undefined;
  isReading = false;
}

/**
 * Opens a record's form, empty for `newId`. Without a collection, closes any open form.
 * @type {(collection: Collection | undefined, id: string) => void}
 */
export function openDraft(collection, id) {
  if (draft && draft.collection === collection && draft.id === id) {
    // As a page, it shows more of what refers to it.
    if (relatedTo(collection, id).length === 0) void reloadRelated().catch(() => {});
    return;
  }
  draft = undefined;
  if (!collection || !id) return;
  draft = {
    ...untroubled(),
    key: newKey(),
    collection,
    id,
    before: empty(),
    texts: empty(),
    sent: '',
    retryKey: '',
    isNew: id === newId,
    isOwner: true,
  };
  if (!draft.isNew) return void loadDraft(draft);
  prefill(draft);
  draw(controls);
}

/** Fills in a new record from the list's filters, and needed times with now. @param {Draft} of */
function prefill(of) {
  const { query } = route;
  for (const field of listFields(of)) {
    const { name, declared, kind } = field;
    const given = typedKinds.has(kind) ? undefined : (query.get(name) ?? query.get(`${name}:has`));
    const now = kind === 'time' && isNeeded(of, field) ? new Date().toISOString() : undefined;
    of.before[name] = of.texts[name] = given ?? toText(field, declared.default ?? now);
  }
}

/** @param {Draft} of */
const called = ({ collection: { one, title, single }, id }) =>
  single ? title.toLowerCase() : id === newId ? `the new ${one}` : `${one} ${id}`;

/**
 * Sends a request about a form's record. A single value counts as a record with one field.
 * @type {(of: Draft, method: string, options?: Parameters<typeof call>[2]) => ReturnType<typeof call>}
 */
async function send({ collection: { name, single }, id }, method, options) {
  const path = single || id === newId ? name : `${name}/${encodeURIComponent(id)}`;
  const answer = await call(method, path, options);
  return single === 'value' ? { ...answer, data: { value: answer.data } } : answer;
}

/**
 * @type {(of: Draft, operation: string) => boolean}
 */
export const may = (of, operation) =>
  allows(of.collection, operation, (word) =>
    word === 'owner' ? of.isOwner : named(of, word).includes(state.me?.id),
  );

/**
 * @type {(of: Draft, field: string) => unknown[]}
 */
const named = ({ base, texts }, field) =>
  base ? [base.data[field] ?? []].flat() : (texts[field] ?? '').split('\n').map(Number);

/**
 * Says who may carry out an operation on the form's record.
 * @type {(of: Draft, operation: string) => string}
 */
export function whoMay(of, operation) {
  const { collection, isOwner } = of;
  const who = listWords(collection, operation).flatMap((word) => {
    if (word === 'owner') return isOwner ? 'you' : `the person who created this ${collection.one}`;
    const field = collection.fields.find(({ name }) => name === word);
    if (!field) return word === 'admin' ? [] : word === 'member' ? 'members' : `the role ${word}`;
    const others = named(of, word).map((id) =>
      id === state.me?.id ? 'you' : findName('users', id),
    );
    return others.map((name) => (/^\d+$/u.test(name) ? `user ${name}` : name));
  });
  return `Only ${new Intl.ListFormat('en-GB').format([...new Set(who), 'administrators'])}`;
}

/** Reads what refers to the open record, whichever that is now. */
export const reloadRelated = async () => draft?.base && loadRelated(draft.collection, draft.id);

/** Reads the record again and keeps the input. @param {Draft} of */
export async function loadDraft(of) {
  const {
    collection: { name, one, single, hasOwners },
    id,
    base,
  } = of;
  try {
    const stored = await send(of, 'GET');
    if (draft !== of || of.isSaving) return;
    // The person has saved, or another result came first: this one may be older, or their own.
    if (of.base !== base) return loadDraft(of);
    if (!base && hasOwners && (state.me?.role !== 'admin' || !isOpen(of.collection, 'read'))) {
      // If the person may not list, the server decides.
      const mine = await call('GET', `${name}?owner=me&id=${encodeURIComponent(id)}`).catch(
        () => {},
      );
      of.isOwner = mine?.data.length !== 0;
    }
    const taken = adopt(of, stored);
    if (!base) void reloadRelated().catch(() => {});
    if (!base && of.collection.isUsers) void loadSessions(id).catch(() => {});
    if (base && taken.length > 0) say(`Someone else has changed ${taken.join(' and ')}.`);
  } catch (error) {
    if (draft !== of) return;
    const isMissing = error instanceof Problem && [400, 404].includes(error.status);
    if (single && isMissing) {
      of.isNew = true;
      prefill(of);
      return draw('#record-title');
    }
    of.message = isMissing
      ? `There is no ${one} ${id}: it was removed, or the address is wrong.`
      : explain(error);
    of.isGone = isMissing;
    // Its row may still be shown.
    if (isMissing) void loadList(true);
  }
  draw(base ? undefined : '#record-title');
}

/**
 * Makes this person's own change to a record outside its form, and updates the form.
 * @type {(of: Collection, id: unknown, work: () => Promise<Stored>) => Promise<Stored>}
 */
export async function store(collection, id, work) {
  const of = draft?.collection === collection && draft.id === `${id}` ? draft : undefined;
  if (of) of.isSaving = true;
  try {
    const stored = await work();
    if (of) adopt(of, stored);
    return stored;
  } finally {
    if (of) of.isSaving = false;
  }
}

let isStale = false;
let isReading = false;

/** Reads the form's record again if it has changed. @param {Change} change */
export function notice({ collection, id, record }) {
  if (draft?.collection.name !== collection || draft.id !== `${id}` || draft.isSaving) return;
  if (JSON.stringify(draft.base?.data) !== JSON.stringify(record)) void reread();
}

/** Reads it once for all changes that arrive meanwhile. */
async function reread() {
  isStale = true;
  if (isReading) return;
  isReading = true;
  while (isStale) {
    isStale = false;
    if (draft) await loadDraft(draft);
  }
  isReading = false;
}

const disputed =
  'Not saved yet: someone else has changed the same field. Choose a value, then save.';

/**
 * Bases the form on another version of its record. Input is kept. Fields that only others changed
 * are updated and returned; fields that both sides changed are disputed.
 * @type {(of: Draft, base: Stored) => string[]}
 */
function adopt(of, base) {
  const { disputes } = of;
  Object.assign(of, untroubled(), { base });
  /** @type {string[]} */ const taken = [];
  for (const field of listFields(of)) {
    const { name } = field;
    const [before = '', mine = ''] = [of.before[name], of.texts[name]];
    const theirs = (of.before[name] = toText(field, at(base.data, name.split('/'))));
    const dispute = disputes[name];
    if (mine === before && !dispute) {
      of.texts[name] = theirs;
      if (theirs !== mine) taken.push(name);
    } else if (theirs !== mine && (theirs !== before || dispute)) {
      of.disputes[name] = [dispute?.[0] ?? before, theirs];
      of.message = disputed;
    }
  }
  showChange(of.collection.name, base.data);
  return taken;
}

/** @param {Draft} of */
export const isSelf = (of) => of.collection.isUsers && of.id === `${state.me?.id}`;

/** Your own password has a form of its own. @param {Draft} of */
export function openFields(of) {
  const role = state.me?.role;
  const isAdmin = role === 'admin';
  const hidden = of.collection.isUsers
    ? [isSelf(of) ? 'password' : 'currentPassword', 'keepKeys', !isAdmin && 'role']
    : [];
  return of.collection.fields.filter(
    ({ name, created, changed, declared: { set } }) =>
      (of.isNew ? created : changed) &&
      !hidden.includes(name) &&
      (!set || isAdmin || set.some((word) => word === role || (word === 'owner' && of.isOwner))),
  );
}

/** @param {Draft} of */
export const listFields = (of) => openFields(of).flatMap((field) => listLeaves(field));

/** The number of fields whose input is not stored. */
export const countChanges = (of = draft) =>
  of ? listFields(of).filter(({ name }) => of.texts[name] !== of.before[name]).length : 0;

/** @param {Draft} of */
export function discard(of) {
  const { isGone, before } = of;
  Object.assign(of, untroubled(), { isGone, texts: Object.assign(empty(), before) });
}

/**
 * Returns the path of an optional object that contains a field and is empty.
 * @param {Draft} of @param {Field} field
 */
const findBlank = (of, { within = [] }) =>
  within.find((path) =>
    listFields(of).every(({ name }) => !name.startsWith(`${path}/`) || !of.texts[name]),
  );

/** @param {Draft} of @param {Field} field */
export function isNeeded(of, field) {
  const { isRequired, isOptional, shown, schema } = field;
  const isWanted = isRequired ? !schema.type?.includes('null') : !!of.base && shown && !isOptional;
  return isWanted && !findBlank(of, field);
}

/** Builds the request body. Invalid input becomes issues of the form. @param {Draft} of */
function buildBody(of) {
  /** @type {FieldChange[]} */ const changes = [];
  of.issues = empty();
  for (const field of listFields(of)) {
    const { name, isOptional, isRequired } = field;
    const text = of.texts[name] ?? '';
    const blank = findBlank(of, field);
    const path = (blank ?? name).split('/');
    const isStored = text === of.before[name] && at(of.base?.data, path.slice(0, -1)) !== undefined;
    if (of.base ? isStored : blank) continue;
    const { value = null, problem } = blank ? {} : fromText(field, text, isNeeded(of, field));
    if (problem) of.issues[name] = problem;
    else if (value !== null || isRequired || (of.base && isOptional)) changes.push({ path, value });
  }
  return withChanges({}, changes);
}

/** @returns {Promise<boolean>} */
export async function save() {
  const of = draft;
  if (!of || of.isSaving) return false;
  const {
    collection: { name, single },
    base,
  } = of;
  const body = buildBody(of);
  of.message = Object.keys(of.disputes).length > 0 ? disputed : '';
  if (of.message || Object.keys(of.issues).length > 0) return leadToIssue();
  if (base && !countChanges(of)) return true;
  // Input that arrives during the request is not part of it.
  const before = Object.assign(empty(), of.texts);
  const sent = JSON.stringify(single === 'value' ? (body['value'] ?? null) : body);
  if (of.sent !== sent) Object.assign(of, { sent, retryKey: newKey() });
  // No version that the form is not based on is overwritten.
  const given = single ? { 'If-None-Match': '*' } : { 'Idempotency-Key': of.retryKey };
  const fields = base ? { 'If-Match': base.etag } : given;
  const method = base && single !== 'value' ? 'PATCH' : single ? 'PUT' : 'POST';
  of.isSaving = true;
  draw();
  try {
    const { status, ...stored } = await send(of, method, { body: JSON.parse(sent), fields });
    if (status === 412) return await reconcile(of, await send(of, 'GET'));
    Object.assign(of, { before, id: single ? of.id : `${stored.data.id}` });
    adopt(of, stored);
    if (!base && !single) {
      // Typing continues in the same field; after the button, in the first one.
      const isTyping = document.activeElement?.matches(controls);
      // Related records are added on its page.
      await go(
        referencesTo(name).length > 0
          ? pageAddress(name, of.id)
          : address(name, of.id, route.query),
        true,
      );
      if (!isTyping) draw(controls);
      void loadList(true);
    }
    announceSaved(of, base ? 'Saved' : 'Created');
    return true;
  } catch (error) {
    const { isUnknown, issues, status } = error instanceof Problem ? error : new Problem();
    const fields = listFields(of);
    for (const { pointer, detail } of issues) {
      const field = fields.find(({ name }) => `${pointer}/`.startsWith(`/${name}/`));
      of.issues[field?.name ?? ''] = detail;
    }
    Object.assign(of, {
      isSaving: false,
      isUnknown,
      isGone: !!base && status === 404,
      message: fields.some((field) => of.issues[field.name]) ? '' : explain(error),
    });
    return leadToIssue();
  }
}

/** @type {(of: Draft, done: string) => void} */
function announceSaved(of, done) {
  say(`${done} ${called(of)}.`);
  if (isSelf(of)) Object.assign(state, { me: of.base?.data });
}

async function reconcile(/** @type {Draft} */ of, /** @type {Stored} */ theirs) {
  const taken = adopt(of, theirs);
  if (of.message) return leadToIssue();
  // An earlier request may have stored everything, with only its response lost.
  if (!countChanges(of)) announceSaved(of, 'Saved');
  else if (!(await save())) return false;
  if (taken.length > 0)
    say(`Saved. Someone else had changed ${taken.join(' and ')}; that was kept.`);
  return true;
}

function leadToIssue() {
  draw('.record [aria-invalid]');
  return false;
}

/** Creates a record again from the input, after someone else has removed it. @param {Draft} of */
export async function createAgain(of) {
  Object.assign(of, untroubled(), { base: undefined, id: newId, isNew: true, before: empty() });
  await go(address(of.collection.name, newId, route.query), true);
  return save();
}

export async function mayLeaveForm() {
  if (!draft || !countChanges()) return true;
  const choice = draft.isSaving ? '' : await ask('leave', called(draft));
  if (choice === 'discard') draft = undefined;
  return choice === 'discard' || (choice === 'save' && save());
}
