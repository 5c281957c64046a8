// @ts-check
/** Imports records from files and exports them to files. */
import { Problem, call } from './api.js';
import { readCsv, writeCsv } from './csv.js';
import { bdi, button, h, part, set } from './dom.js';
import { collectionNow, listPath, loadList } from './records.js';
import { causesOf, report } from './refused.js';
import { table } from './parts.js';
import { ask, explain, say, state } from './state.js';
import { fromText, ruleBroken } from './texts.js';

/** @import { Collection } from './types.js' */

/**
 * A line of a file: the record that it describes, or the problem with it.
 * `source` is what the file has.
 * @typedef {{ number: number, source: unknown, isCsv: boolean, record: { [field: string]: unknown },
 *   problem: string }} Line
 */

const previewLines = 5;

/** Exports the list as `csv` or `json`, or imports a file with `import`. @param {string} what */
export async function transfer(what) {
  const collection = collectionNow();
  if (collection) await (what === 'import' ? importFile(collection) : exportList(collection, what));
}

/** @param {Line} line */
const lineAndProblem = ({ number, problem }) => ({ what: `line ${number}`, why: problem });

/** A list is written as lines. @param {unknown} value */
const plain = (value) => (Array.isArray(value) ? value.join('\n') : value);

/**
 * Saves all records of the list to a file, with its search, filters and order applied.
 * @type {(collection: Collection, format: string) => Promise<void>}
 */
async function exportList({ name, fields }, format) {
  const { data } = await call('GET', listPath());
  const names = fields.filter(({ shown }) => shown).map((field) => field.name);
  download(name, format, data, names);
  say(`Exported ${data.length} records to ${name}.${format}.`);
}

/**
 * Saves records to a file.
 * @type {(name: string, format: string, records: readonly unknown[], columns?: readonly string[]) => void}
 */
function download(name, format, records, columns = Object.keys(Object(records[0]))) {
  const rows = records.map((record) => columns.map((each) => plain(Object(record)[each])));
  const text =
    format === 'json' ? JSON.stringify(records, null, 1) : `\ufeff${writeCsv([columns, ...rows])}`;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${name}.${format}`;
  link.click();
}

/**
 * Saves lines as they stand in their file, so that they can be mended and imported alone.
 * @type {(collection: Collection, lines: readonly Line[]) => void}
 */
const downloadRefused = ({ name }, lines) =>
  download(
    `${name}-refused`,
    lines[0]?.isCsv ? 'csv' : 'json',
    lines.map(({ source }) => source),
  );

/**
 * Asks for a file, shows a preview with the lines that cannot be created, and creates the others.
 * @param {Collection} collection
 */
async function importFile(collection) {
  const columns = collection.fields.filter(({ created }) => created);
  const file = part('file', HTMLInputElement);
  const omit = part('omit', HTMLInputElement);
  /** @type {readonly Line[]} */ let lines = [];
  /** Columns that the server fills in. @type {readonly string[]} */ let given = [];
  const show = (problem = '') => {
    const bad = lines.filter((line) => line.problem);
    const good = lines.filter((line) => !line.problem);
    const rows = good
      .slice(0, previewLines)
      .map(({ record }) => columns.map(({ name }) => bdi(`${plain(record[name]) ?? '–'}`)));
    const heads = columns.map(({ label }) => label);
    set(
      'preview',
      h('p.error', problem),
      h('p', `${good.length} can be created, ${bad.length} cannot.`),
      h('div.scroll', { tabindex: 0 }, table(heads, rows)),
      h('ul.error', causesOf(bad.map(lineAndProblem))),
      bad.length > 0 &&
        button('Download the refused lines', () => downloadRefused(collection, bad)),
    );
    set('omitted', { hidden: given.length === 0 });
    set('omitted-names', given.join(', '));
    set('create-all', { disabled: good.length === 0 || (given.length > 0 && !omit.checked) });
  };
  omit.onchange = () => show();
  file.value = '';
  file.onchange = async () => {
    Object.assign(omit, { checked: false });
    [lines, given] = [[], []];
    try {
      ({ lines, given } = linesOf(collection, decode(await file.files?.[0]?.arrayBuffer())));
      show();
    } catch (error) {
      show(error instanceof Problem ? error.message : 'Cannot read the file. Is it valid JSON?');
    }
  };
  show();
  if (await ask('import-file', columns.map(({ name }) => name).join(', '))) {
    const good = lines.filter(({ problem }) => !problem);
    state.isImporting = true;
    await create(collection, good).finally(() => (state.isImporting = false));
  }
}

/** Decodes UTF-8, or UTF-16 with its mark. @throws Problem for any other encoding */
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
 * Parses the lines of a file, and checks them with the rules that the server describes. `given`: columns that it has,
 * but that the server fills in.
 * @type {(collection: Collection, text: string) => { lines: Line[], given: string[] }} @throws SyntaxError
 */
export function linesOf({ fields }, text) {
  const isJson = /^\s*[[{]/u.test(text);
  const {
    separator,
    rows: [head = [], ...rows],
  } = isJson ? { separator: '', rows: [] } : readCsv(text);
  const records = isJson
    ? JSON.parse(text)
    : rows.map((row) => Object.fromEntries(row.map((cell, index) => [head[index], cell])));
  if (!Array.isArray(records))
    throw new Problem('The file has an object where an array of records is needed.');
  const decimal = separator === ';' ? ',' : '.';
  const bare = (/** @type {string} */ name) => name.trim().toLowerCase();
  const known = new Map(
    fields.flatMap((each) => [
      [bare(each.label), each],
      [bare(each.name), each],
    ]),
  );
  /** @type {Set<string>} */ const given = new Set();
  const lines = records.map((record, index) => {
    const line = readLine(record);
    return { number: index + (isJson ? 1 : 2), source: record, isCsv: !isJson, ...line };
  });
  return { lines, given: [...given] };

  /** @param {unknown} source */
  function readLine(source) {
    /** @type {{ [field: string]: unknown }} */ const record = {};
    if (typeof source !== 'object' || source === null)
      return { record, problem: `This is ${source}, not a record.` };
    /** @type {string[]} */ const problems = [];
    /** @type {Map<unknown, unknown>} */ const cells = new Map();
    for (const [name, value] of Object.entries(source)) {
      const field = known.get(bare(name));
      if (!field) problems.push(`There is no field ${name}.`);
      else if (field.created) cells.set(field, value);
      else given.add(name);
    }
    for (const field of fields.filter(({ created }) => created)) {
      const value = cells.get(field);
      const read = fromText(field, `${plain(value) ?? ''}`, field.isRequired, decimal);
      const problem = read.problem ?? ruleBroken(field, read.value);
      if (problem)
        problems.push(`${field.label} ${value === null ? 'must not be null' : problem}.`);
      else if (read.value !== null) record[field.name] = read.value;
    }
    return { record, problem: problems.join(' ') };
  }
}

/**
 * Creates records, as many in one request as the server allows. Refused lines are left out and reported.
 * @type {(collection: Collection, lines: readonly Line[]) => Promise<void>}
 */
async function create(collection, lines) {
  const { name, title, bulkMax } = collection;
  /** @type {Line[]} */ const failed = [];
  const fail = (/** @type {Line} */ line, /** @type {string} */ problem) =>
    failed.push({ ...line, problem });
  let done = 0;
  const parts = [];
  for (let at = 0; at < lines.length; at += bulkMax) parts.push(lines.slice(at, at + bulkMax));
  for (const part of parts) {
    const [first] = part;
    if (!first) continue;
    const body = bulkMax > 1 ? part.map(({ record }) => record) : first.record;
    try {
      const fields = { 'Idempotency-Key': `"${crypto.randomUUID()}"` };
      await call('POST', bulkMax > 1 ? `${name}/batch` : name, { body, fields });
      done += part.length;
    } catch (error) {
      const issues = error instanceof Problem && bulkMax > 1 ? error.issues : [];
      const refused = new Map(
        issues.map(({ pointer, detail }) => [part[parseInt(pointer.slice(1))], detail]),
      );
      for (const [line, detail] of refused) if (line) fail(line, `It ${detail}.`);
      // A refused record keeps the whole request from being carried out, so the others are sent again.
      if (refused.size > 0) parts.push(part.filter((line) => !refused.has(line)));
      else for (const line of part) fail(line, explain(error));
    }
    say(`Creating ${title.toLowerCase()}: ${done} of ${lines.length}…`);
  }
  const news = `Created ${done} of ${lines.length}.`;
  say(news);
  await loadList(true);
  if (failed.length === 0) return;
  set('refused-save', { hidden: false, onclick: () => downloadRefused(collection, failed) });
  await report(news, failed.map(lineAndProblem));
}
