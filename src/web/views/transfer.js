// @ts-check
/**
 * Exports a list's records to a file, and imports one: lines with a record's id change it, others
 * create one. A preview shows old and new values, and nothing is written before the person confirms
 * it.
 */
import { call, Problem } from '../api/call.js';
import { isSame, lineReader, toTable, withChanges } from '../api/cells.js';
import { capitalized, own, showNumber, toShow } from '../api/model.js';
import { readCsv, writeCsv } from '../lib/csv.js';
import { ask } from '../lib/dialog.js';
import { bdi, h, part, set } from '../lib/dom.js';
import { createEach, sendIfUnchanged, withEach } from '../state/change.js';
import { collectionNow, listPath, loadList } from '../state/list.js';
import { count, state, say } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { joinValues } from '../state/route.js';
import { table } from './parts.js';
import { groupCauses, report } from './refused.js';

/**
 * A line of a file: `source` is its content, `stored` the record that it changes, and `record` the
 * result. `outcome`: what happens to it. `changed`: the fields with new values. `given`: labels of
 * fields that the server fills in.
 * @import { Collection, Field, Row } from '../types.js'
 * @typedef {{ number: number, source: object, problem: string, outcome: string,
 *   changes: readonly import('../api/cells.js').Change[], id?: unknown, stored?: Row | undefined,
 *   record?: { [field: string]: unknown },
 *   changed: readonly Field[], given: readonly string[] }} Line
 * @typedef {{ isCsv: boolean, heads: readonly string[], lines: readonly Line[] }} File
 */

const [previewMax, idsAtOnce] = [20, 100];
/** @type {File} */ const noFile = { isCsv: false, heads: [], lines: [] };

/** @param {string} what */
export async function transfer(what) {
  const collection = collectionNow();
  if (!collection) return;
  if (what === 'import') await importFile(collection);
  else saveRecords(collection, (await call('GET', listPath())).data, what);
}

/** @type {(collection: Collection, records: readonly Row[], format?: string) => void} */
export function saveRecords(collection, records, format = 'csv') {
  const { name, fields } = collection;
  save(name, format, format === 'json' ? records : toTable(fields, records));
  say(`Exported ${count(records, collection)} to ${name}.${format}.`);
}

/**
 * @type {(name: string, format: string, content: readonly any[]) => void}
 */
function save(name, format, content) {
  const text = format === 'json' ? JSON.stringify(content, null, 1) : `\ufeff${writeCsv(content)}`;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${name}.${format}`;
  link.click();
}

/**
 * @type {(collection: Collection, file: File, lines: readonly Line[]) => void}
 */
function saveRefused({ name }, { isCsv, heads }, lines) {
  const sources = lines.map(({ source }) => source);
  const rows = sources.map((source) => heads.map((head) => own(source, head)));
  save(`${name}-refused`, isCsv ? 'csv' : 'json', isCsv ? [heads, ...rows] : sources);
}

/** @param {Line} line */
const nameLine = ({ number }) => `line ${number}`;

/**
 * @param {Collection} collection
 */
async function importFile(collection) {
  const control = part('file', HTMLInputElement);
  let file = noFile;
  const show = (problem = '') => {
    const { lines } = file;
    const due = listDue(lines);
    set('preview', h('p.error', problem), lines.length > 0 && drawPreview(collection, lines));
    set(
      'import-all',
      { disabled: due.length === 0 },
      due.length > 0 ? `Import ${count(due, collection)}` : 'Nothing to import',
    );
  };
  const onchange = async () => {
    file = noFile;
    show();
    const chosen = control.files?.[0];
    let read = noFile;
    let problem = '';
    try {
      const found = readFile(collection, decode(await chosen?.arrayBuffer()));
      await compare(collection, found.lines);
      read = found;
    } catch (error) {
      problem =
        error instanceof Problem ? error.message : 'Cannot read the file. Is it valid JSON?';
    }
    // The person may have chosen another file meanwhile.
    if (control.files?.[0] !== chosen) return;
    file = read;
    show(problem);
  };
  set('file', { value: '', onchange });
  show();
  const columns = collection.fields.filter(({ created }) => created).map(({ name }) => name);
  if (!(await ask('import-file', columns.join(', ')))) return;
  state.isImporting = true;
  await write(collection, file).finally(() => (state.isImporting = false));
}

/** Decodes UTF-8, or UTF-16 with its byte order mark. @throws Problem for any other encoding */
function decode(bytes = new ArrayBuffer(0)) {
  const mark = new Uint8Array(bytes).subarray(0, 2).join();
  const encoding = { '255,254': 'utf-16le', '254,255': 'utf-16be' }[mark] ?? 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw new Problem('The file is not in UTF-8. Save it as “CSV UTF-8”, then choose it again.');
  }
}

/**
 * @type {(collection: Collection, text: string) => File} @throws SyntaxError
 */
function readFile(collection, text) {
  const isCsv = !/^\s*[[{]/u.test(text);
  const { separator, rows } = isCsv ? readCsv(text) : { separator: '', rows: [] };
  const [head = [], ...others] = rows;
  const heads = head.map((name = '') => name);
  const sources = isCsv
    ? others.map((row) => Object.fromEntries(heads.map((name, index) => [name, row[index]])))
    : JSON.parse(text);
  if (!Array.isArray(sources))
    throw new Problem('The file has an object where an array of records is needed.');
  const read = lineReader(collection, isCsv ? (separator === ';' ? ',' : '.') : undefined);
  /** @type {Set<string>} */ const ids = new Set();
  const lines = sources.map((source, index) => {
    /** @type {Line} */
    const line = {
      number: index + (isCsv ? 2 : 1),
      source: Object(source),
      problem: '',
      outcome: '',
      changes: [],
      changed: [],
      given: [],
    };
    if (typeof source !== 'object' || source === null || Array.isArray(source))
      return { ...line, problem: `This is ${JSON.stringify(source)}, not a record.` };
    const { changes, problems, id, given } = read(source);
    if (id !== undefined && ids.size === ids.add(`${id}`).size)
      problems.push(`An earlier line has the id ${id}.`);
    return { ...line, changes, id, given, problem: problems.join(' ') };
  });
  return { isCsv, heads, lines };
}

/**
 * @type {(collection: Collection, lines: readonly Line[]) => Promise<void>}
 */
async function compare({ name, one, fields }, lines) {
  const ids = lines.flatMap(({ id }) => (id === undefined ? [] : `${id}`));
  /** @type {Map<string, Row>} */ const stored = new Map();
  while (ids.length > 0) {
    const some = new URLSearchParams({ 'id:in': joinValues(ids.splice(0, idsAtOnce)) });
    for (const row of (await call('GET', `${name}?${some}`)).data) stored.set(`${row.id}`, row);
  }
  for (const line of lines) {
    const { changes, problem } = line;
    const before = (line.stored = stored.get(`${line.id}`));
    const record = (line.record = withChanges(before ?? {}, changes));
    // A file may write an id differently.
    if (before) record['id'] = before.id;
    line.changed = fields.filter(
      (field) => field.created && !isSame(own(before, field.name), own(record, field.name)),
    );
    const fixed = line.changed.find((field) => before && !field.changed);
    const missing = fields.filter(
      ({ name, created, isRequired }) => created && isRequired && own(record, name) === undefined,
    );
    line.problem = [
      problem,
      fixed && `${fixed.label} of ${one} ${line.id} cannot be changed.`,
      !before && !problem && missing.map(({ label }) => `${label} must be filled in.`).join(' '),
    ]
      .filter(Boolean)
      .join(' ');
    const valid = !before ? 'new' : isSame(before, record) ? 'unchanged' : 'change';
    line.outcome = line.problem ? 'refused' : valid;
  }
}

const outcomes = ['change', 'new', 'unchanged', 'refused'];

/** Returns the lines of each outcome, in that order. @param {readonly Line[]} lines */
const sorted = (lines) =>
  outcomes.map((outcome) => lines.filter((line) => line.outcome === outcome));

/** @param {readonly Line[]} lines */
const listDue = (lines) => sorted(lines).slice(0, 2).flat();

/** @type {(collection: Collection, lines: readonly Line[]) => import('../types.js').Description} */
function drawPreview(collection, lines) {
  const { fields, one } = collection;
  const all = sorted(lines);
  const counts = all.flatMap(({ length }, at) =>
    length > 0 ? `${showNumber(length)} ${outcomes[at]}` : [],
  );
  const [changes = [], news = [], , bad = []] = all;
  const given = new Set(news.flatMap((line) => line.given));
  const edits = changes.flatMap(({ stored, record, changed }) =>
    changed.map((field) => [
      bdi(stored ? toTitle(collection, stored) : ''),
      field.label,
      shown(field, stored),
      shown(field, record),
    ]),
  );
  const columns = fields.filter(({ created }) => created);
  const rows = news
    .slice(0, previewMax)
    .map(({ record }) => columns.map((field) => shown(field, record)));
  return h(
    'div.stack',
    h('p', counts.join(', ')),
    given.size > 0 && h('p.quiet', `The server fills in ${[...given].join(', ')} of new records.`),
    edits.length > 0 &&
      h(
        'div.scroll',
        { key: 'edits', tabindex: 0 },
        table([capitalized(one), 'Field', 'Before', 'After'], edits.slice(0, previewMax)),
      ),
    rows.length > 0 &&
      h(
        'div.scroll',
        { key: 'news', tabindex: 0 },
        table(
          columns.map(({ label }) => label),
          rows,
        ),
      ),
    h(
      'ul.error',
      { key: 'bad' },
      groupCauses(bad.map((each) => ({ what: nameLine(each), why: each.problem }))),
    ),
  );
}

/** @param {Field} field @param {unknown} record */
function shown(field, record) {
  const value = own(record, field.name);
  return bdi(typeof value === 'object' && value ? JSON.stringify(value) : toShow(field, value));
}

/**
 * @type {(collection: Collection, file: File) => Promise<void>}
 */
async function write(collection, file) {
  const [changes = [], news = [], , bad = []] = sorted(file.lines);
  const due = listDue(file.lines);
  const refusals = [
    ...(await createEach(collection, news, nameLine)),
    ...(await withEach(changes, nameLine, async ({ stored, record }) =>
      stored && record ? sendIfUnchanged('PUT', collection, stored, record) : undefined,
    )),
  ];
  const done = `Imported ${showNumber(due.length - refusals.length)} of ${count(due, collection)}.`;
  say(done);
  await loadList(true);
  await report(done, refusals, () =>
    saveRefused(collection, file, [...bad, ...refusals.map(({ of }) => of)]),
  );
}
