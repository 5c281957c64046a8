// @ts-check
/** Shows what refers to the open record: as editable tables, which are short in a peek. */
import { showNumber } from '../api/model.js';
import { fromText, toText } from '../api/texts.js';
import { button, draw, h } from '../lib/dom.js';
import { createEach } from '../state/change.js';
import { reloadRelated } from '../state/draft.js';
import { listColumns } from '../state/list.js';
import { allows, isLeaving, say } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { relatedTo } from '../state/related.js';
import { address, newId, pageAddress, route } from '../state/route.js';
import { cell } from './cell.js';
import { control } from './control.js';
import { removeSoon } from './removal.js';
import { alignColumns } from './parts.js';

/** @import { Collection, Description } from '../types.js' */
/** @import { Related } from '../state/related.js' */

const [peekMax, columnsMax, controlsMax] = [3, 6, 5];

/** @type {(collection: Collection, id: string) => Description[]} */
export const relatedView = (collection, id) =>
  relatedTo(collection, id).map((each, index) => drawTable(id, each, index));

/** @type {(id: string, related: Related, index: number) => Description} */
function drawTable(id, related, index) {
  const { from, field, query, total, rows } = related;
  const columns = listColumns(from).filter(({ name }) => name !== field.name && name !== 'id');
  const { isPage } = route;
  const shown = columns.slice(0, isPage ? columnsMax : peekMax);
  const digits = alignColumns(shown, rows);
  const mayChange = isPage && allows(from, 'change');
  const mayRemove = isPage && allows(from, 'remove');
  const body = rows
    .filter((row) => !isLeaving(from, row))
    .map((row) => {
      const title = toTitle(from, row);
      return h(
        'tr',
        { key: row.id },
        shown.map((each) => cell(from, each, row, mayChange, digits, true)),
        h(
          'td.actions',
          h(
            'a.quiet',
            {
              id: isPage && `open-${row.id}`,
              href: pageAddress(from.name, row.id),
              'aria-label': `Open ${title}`,
            },
            'Open',
          ),
          mayRemove &&
            button('×', () => removeSoon(from, [row]), {
              class: 'plain',
              'aria-label': `Remove ${title}`,
            }),
        ),
      );
    });
  const heads = shown.map(({ label, kind }) => h('th', { scope: 'col', class: kind }, label));
  return h(
    'section.related stack tight',
    { key: `${from.name} ${field.name}` },
    h(
      'h2.row spread',
      h(
        'span',
        `${from.title} `,
        h('small', `by ${field.label.toLowerCase()} · ${showNumber(total)}`),
      ),
      h('a.quiet', { href: address(from.name, '', query) }, `Open as a list`),
    ),
    rows.length > 0 &&
      h(
        'div.card scroll',
        { tabindex: 0, role: 'region', 'aria-label': from.title },
        h('table', h('thead', h('tr', heads, h('td'))), h('tbody', body)),
      ),
    total > rows.length && h('p.quiet', `The first ${rows.length} of ${showNumber(total)}.`),
    allows(from, 'create') &&
      (isPage
        ? adder(id, related, index)
        : h('a', { href: address(from.name, newId, query) }, `+ New ${from.one}`)),
  );
}

/**
 * @type {(id: string, of: Related, index: number) => Description}
 */
function adder(id, of, index) {
  const { from, field, isTried } = of;
  // What the record needs, and some others.
  const fields = from.fields
    .filter(
      ({ name, created, schema }) =>
        created && name !== field.name && name !== 'id' && !schema.properties,
    )
    .filter(
      ({ isRequired, kind }, index) =>
        isRequired || (index < controlsMax && kind !== 'json' && kind !== 'long'),
    );
  const read = () =>
    fields.map((each) => {
      const text = of.texts[each.name] ?? toText(each, each.declared.default);
      return { field: each, text, at: `add-${index}-${each.name}`, ...fromText(each, text) };
    });
  const focus = (/** @type {{ at: string } | undefined} */ to) =>
    draw(to && `#${CSS.escape(to.at)}`);
  const onsubmit = async () => {
    of.isTried = true;
    // What was typed since the last frame is not drawn yet.
    const all = read();
    const wrong = all.find(({ problem }) => problem);
    if (wrong) return focus(wrong);
    const filled = all.filter(({ value }) => value !== null);
    const record = {
      ...Object.fromEntries(filled.map((each) => [each.field.name, each.value])),
      [field.name]: fromText(field, id).value,
    };
    const [refusal] = await createEach(from, [{ record }], () => from.one);
    if (refusal) return say(refusal.why);
    Object.assign(of, { texts: {}, isTried: false });
    say(`Created ${from.one}.`);
    await reloadRelated();
    return focus(all[0]);
  };
  return h(
    'form.adder card row',
    { onsubmit, 'aria-label': `New ${from.one}` },
    read().map(({ field: each, text, at, problem }) => {
      const issue = isTried && problem;
      const type = (/** @type {string} */ typed) => void (of.texts[each.name] = typed);
      return h(
        'div.stack tight',
        { key: each.name },
        h('label', { for: at }, each.label),
        control(each, text, type, { id: at, 'aria-invalid': !!issue && 'true' }),
        !!issue && h('small.error', `${each.label} ${issue}.`),
      );
    }),
    h('button.primary', `Add ${from.one}`),
  );
}
