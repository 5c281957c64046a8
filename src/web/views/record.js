// @ts-check
/** Shows the form of one record, as a page or as a peek next to its list. */
import { at } from '../api/cells.js';
import { capitalized, inShort, isOpen, listLeaves, own } from '../api/model.js';
import { bdi, button, draw, h } from '../lib/dom.js';
import {
  countChanges,
  createAgain,
  discard,
  draft,
  listFields,
  isNeeded,
  isSelf,
  loadDraft,
  may,
  openDraft,
  openFields,
  save,
  whoMay,
} from '../state/draft.js';
import { collectionNow, list, readRows } from '../state/list.js';
import { allows, findCollection, state } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { address, go, isAccount, newId, pageAddress, route } from '../state/route.js';
import { invite, sessionsView } from './account.js';
import { control, findChoices, readable } from './control.js';
import { relatedView } from './related.js';
import { removeSoon } from './removal.js';
import { show, fact } from './parts.js';

/** @import { Child, Description, Draft, Field, Row } from '../types.js' */

export const open = () =>
  isAccount()
    ? openDraft(findCollection('users'), `${state.me?.id}`)
    : openDraft(collectionNow(), route.id);

export { reset as close } from '../state/draft.js';

/** Closes the peek, which focuses the link to its record. */
const leave = () => go(address(route.view, '', route.query));

/** @type {(of: Draft, step: 1 | -1) => Row | undefined} */
function neighbour({ collection, id }, step) {
  const rows = list.collection === collection.name ? readRows(collection) : [];
  const at = rows.findIndex((row) => `${row.id}` === id);
  return at < 0 ? undefined : rows[at + step];
}

/** @type {readonly [step: 1 | -1, id: string, key: string, name: string, sign: string][]} */
const steps = [
  [-1, 'peek-prev', 'k', 'Previous', '↑'],
  [1, 'peek-next', 'j', 'Next', '↓'],
];

/** The buttons that open the record before or after one. @param {Draft} of */
const stepButtons = (of) =>
  steps.map(([step, id, key, name, sign]) => {
    const next = neighbour(of, step);
    return button(sign, () => next && go(address(of.collection.name, next.id, route.query)), {
      id,
      disabled: !next,
      'data-key': key,
      'aria-label': `${name} record`,
      title: `${name} (${key.toUpperCase()})`,
    });
  });

/**
 * Removes a record. If that is allowed, first closes it and focuses the link to the next one.
 * @type {(of: Draft, row: Row) => Promise<void>}
 */
const remove = (of, row) =>
  removeSoon(of.collection, [row], async () => {
    // The person has pressed twice, or moved on.
    if (draft !== of) return false;
    const next = neighbour(of, 1) ?? neighbour(of, -1);
    await (route.isPage ? go(address(of.collection.name)) : leave());
    if (!draft) draw(next ? `#${CSS.escape(`open-${next.id}`)}` : '#title');
    return !draft;
  });

/** @param {Draft} of */
async function duplicate(of) {
  const { collection, texts } = of;
  await go(address(collection.name, newId));
  if (draft?.isNew) Object.assign(draft.texts, texts);
}

/** True if the record is a page, and not a peek next to its list. */
const isAlone = () => route.isPage || !!draft?.collection.single || isAccount();

/** Describes the open form and more below it, as a page or a peek. */
export function view() {
  if (!draft) return undefined;
  const { id, base, collection } = draft;
  const { one, single, title } = collection;
  const isWhole = isAlone();
  const isPeek = !isWhole && !!base;
  const status = collection.fields.find((field) => field.kind === 'choice' && field.shown);
  const kind = single ? title : id === newId ? `New ${one}` : capitalized(`${one} ${id}`);
  const name = !single && base && toTitle(collection, base.data);
  return h(
    isWhole ? 'aside.scroll alone' : 'aside.scroll',
    { id: 'drawer', key: 'drawer', 'aria-labelledby': 'record-title' },
    h(
      'div.bar row spread pad',
      h(
        'div.grow',
        route.isPage && h('a.quiet', { id: 'back', href: address(collection.name) }, title),
        h('h2', { id: 'record-title', tabindex: -1, 'aria-level': isWhole ? 1 : 2 }, name || kind),
        h('small', { id: 'record-kind' }, !!name && name !== id && kind),
      ),
      isWhole && status && base && show(status, own(base.data, status.name)),
      isPeek && stepButtons(draft),
      isPeek && h('a.button', { id: 'open-page', href: pageAddress(collection.name, id) }, 'Open'),
      isWhole && drawActions(draft),
      !isWhole &&
        button('×', leave, {
          id: 'close',
          'data-key': 'Escape',
          'aria-label': 'Close',
          title: 'Close (Esc)',
        }),
    ),
    h(
      'div.stack pad',
      { id: 'record' },
      recordForm(draft),
      collection.isUsers && sessionsView(id),
      relatedView(collection, id),
    ),
  );
}

/** @param {Draft} of */
function recordForm(of) {
  const { base, collection, isNew, message } = of;
  const { single } = collection;
  const operation = !isNew ? 'change' : single ? 'put' : 'create';
  const mayChange = isSelf(of) || may(of, operation);
  if (!base && !isNew) {
    if (!message) return h('p.loading quiet', { 'aria-busy': 'true' }, 'Loading…');
    return h(
      'div.note stack pad',
      { role: 'alert' },
      h('p', message),
      button('Try again', () => loadDraft(of)),
    );
  }
  const isSameEmail = collection.isUsers && of.texts['email'] === of.before['email'];
  const fields = mayChange
    ? openFields(of).filter(({ name }) => !isSameEmail || name !== 'currentPassword')
    : [];
  const facts = collection.fields.filter((field) => base && field.shown && !fields.includes(field));
  return h(
    'form.record stack',
    { 'aria-busy': `${of.isSaving}`, key: of.key, onsubmit: save },
    !isOpen(collection, 'read') && h('p.quiet', `${whoMay(of, 'read')} see this.`),
    single && isNew && h('p', `No ${collection.title.toLowerCase()} yet.`),
    h(
      'div.fields stack',
      fields.map((field) => {
        const leaves = listLeaves(field);
        if (leaves[0] === field) return labelled(of, field);
        const texts = leaves.map(({ name }) => of.texts[name]);
        const controls = leaves.map((leaf) => labelled(of, leaf));
        return fold(field.label, texts, h('div.stack', controls));
      }),
    ),
    drawFacts(facts, base?.data),
    !mayChange &&
      h('p.quiet', `${whoMay(of, operation)} can ${single && isNew ? 'set' : operation} this.`),
    !isAlone() && h('div.row', { key: 'actions' }, drawActions(of)),
    (mayChange || message) && saveBar(of),
  );
}

/** The actions on a stored record. @param {Draft} of @returns {Child[]} */
function drawActions(of) {
  const { base, collection, id } = of;
  if (!base) return [];
  const { single, isUsers } = collection;
  const isOther = !isSelf(of);
  return [
    isUsers &&
      isOther &&
      state.me?.role === 'admin' &&
      button('Invite to choose a password', () => invite(id)),
    !single && !isUsers && allows(collection, 'create') && button('Duplicate', () => duplicate(of)),
    isOther &&
      may(of, 'remove') &&
      button('Remove', () => remove(of, base.data), { class: 'danger' }),
  ];
}

/** @param {Draft} of */
function saveBar(of) {
  const { base, collection, message } = of;
  const { one, single } = collection;
  const problem = message || troubled(of);
  const changes = base ? countChanges(of) : 0;
  if (base && !changes && !problem && !of.isGone) return undefined;
  const main = of.isUnknown ? 'Try again' : base || single ? 'Save' : `Create ${one}`;
  return h(
    'div.foot row pad line',
    { key: 'save' },
    h('p.error', { role: 'alert' }, problem),
    changes > 0 && h('span.quiet', `${changes} unsaved ${changes === 1 ? 'change' : 'changes'}`),
    changes > 0 && button('Discard', () => discard(of)),
    of.isGone
      ? allows(collection, 'create') &&
          button('Create it again', () => createAgain(of), { class: 'primary', key: 'again' })
      : h('button.primary', { key: 'main' }, main),
  );
}

const openMax = 3;

/**
 * @type {(label: Child, texts: readonly unknown[], content: Child) => Description}
 */
const fold = (label, texts, content) =>
  h(
    'details.fold',
    { key: `${label}`, open: texts.length <= openMax },
    h('summary', label, ' ', h('small', bdi(inShort(texts)))),
    content,
  );

/** @type {(fields: readonly Field[], data: unknown) => Description} */
const drawFacts = (fields, data) =>
  h(
    'dl.stack tight',
    fields.map((field) => {
      const { name, label } = field;
      const value = at(data, name.split('/'));
      const leaves = listLeaves(field);
      if (leaves[0] === field || !value) return fact(label, show(field, value));
      const texts = leaves.map((leaf) => at(data, leaf.name.split('/')));
      return fact(label, fold(`${texts.length} fields`, texts, drawFacts(leaves, data)));
    }),
  );

/** Names the fields that prevent saving, since they may be out of view. @param {Draft} of */
function troubled(of) {
  const labels = listFields(of).flatMap(({ name, label }) => (of.issues[name] ? [label] : []));
  return labels.length > 0 && `Not saved. Check ${labels.join(', ')}.`;
}

/** Describes a field's rule in advance. @param {Field} field */
function writeHint(field) {
  const {
    kind,
    schema: { description, minLength = 0 },
  } = field;
  if (kind === 'list' && !findChoices(field) && !field.declared.of?.values)
    return 'One value a line.';
  return kind === 'password' && minLength > 1 ? `At least ${minLength} characters.` : description;
}

/**
 * @type {(of: Draft, field: Field) => Description}
 */
function labelled(of, field) {
  const { name, label } = field;
  const [text = '', issue, dispute] = [of.texts[name], of.issues[name], of.disputes[name]];
  const id = `field-${name.replaceAll('/', '-')}`;
  const type = (/** @type {string} */ typed) => {
    of.texts[name] = typed;
    delete of.issues[name];
  };
  const { format, default: initial } = field.declared;
  const isOptional = of.isNew && initial === undefined && !isNeeded(of, field);
  const unit = Object(format).money ?? (format === 'percent' && '1 = 100 %');
  const settle = (/** @type {string} */ chosen) => {
    type(chosen);
    delete of.disputes[name];
  };
  return h(
    'div.stack tight',
    { key: name },
    h('label', { for: id }, label, ' ', h('small', unit || (isOptional && 'optional'))),
    control(field, text, type, {
      id,
      'aria-describedby': `${id}-hint`,
      'aria-invalid': (issue || dispute) && 'true',
    }),
    h(
      'small',
      { id: `${id}-hint`, class: issue && 'error' },
      issue ? `${label} ${issue}.` : writeHint(field),
    ),
    dispute &&
      h(
        'div.dispute note stack tight pad',
        h(
          'dl.stack tight',
          fact('Before', readable(field, dispute[0])),
          fact('Theirs', readable(field, dispute[1])),
          fact('Mine', readable(field, text)),
        ),
        h(
          'div.row',
          button('Keep mine', () => settle(text)),
          button('Take theirs', () => settle(dispute[1])),
        ),
      ),
  );
}
