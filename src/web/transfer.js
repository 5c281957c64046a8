// @ts-check
/** Imports records from files and exports them to files. */
import { Problem, call } from './api.js';
import { readCsv, writeCsv } from './csv.js';
import { bdi, h, part, set } from './dom.js';
import { collectionNow, listPath, loadList } from './records.js';
import { ask, explain, say } from './state.js';
import { fromText } from './texts.js';

/** @import { Collection, Row } from './types.js' */

/**
 * A line of a file: the record that it describes, or the problem with it.
 * @typedef {{ number: number, record: { [field: string]: unknown }, problem: string }} Line
 */

const previewLines = 5;

/** Exports the list as `csv` or `json`, or imports a file with `import`. @param {string} what */
export async function transfer(what) {
  const collection = collectionNow();
  if (collection) await (what === 'import' ? importFile(collection) : exportList(collection, what));
}

/**
 * Saves all records of the list to a file, with its search, filters and order applied.
 * @type {(collection: Collection, format: string) => Promise<void>}
 */
async function exportList({ name, fields }, format) {
  const { data } = await call('GET', listPath());
  const names = fields.filter(({ shown }) => shown).map((field) => field.name);
  const rows = data.map((/** @type {Row} */ row) => names.map((each) => row[each]));
  const text = format === 'json' ? JSON.stringify(data, null, 1) : `\ufeff${writeCsv([names, ...rows])}`;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${name}.${format}`;
  link.click();
  say(`Exported ${data.length} records to ${link.download}.`);
}

/**
 * Asks for a file, shows a preview with the lines that cannot be created, and creates the others.
 * @param {Collection} collection
 */
async function importFile(collection) {
  const columns = collection.fields.filter(({ created }) => created);
  const file = part('file', HTMLInputElement);
  /** @type {readonly Line[]} */ let good = [];
  const show = (/** @type {readonly Line[]} */ bad, problem = '') => {
    const rows = good.slice(0, previewLines).map(({ record }) =>
      h('tr', columns.map(({ name }) => h('td', bdi(`${record[name] ?? '–'}`)))));
    set('preview', h('p.error', problem), h('p', `${good.length} can be created, ${bad.length} cannot.`),
      h('table', h('tr', columns.map(({ label }) => h('th', { scope: 'col' }, label))), rows),
      h('ul.error', bad.map((line) => h('li', `Line ${line.number}: ${line.problem}`))));
    set('create-all', { disabled: good.length === 0 });
  };
  file.value = '';
  file.onchange = async () => {
    good = [];
    try {
      const lines = linesOf(collection, await file.files?.[0]?.text() ?? '');
      good = lines.filter(({ problem }) => !problem);
      show(lines.filter(({ problem }) => problem));
    } catch (error) {
      show([], `Cannot read the file: ${error instanceof Error && error.message}.`);
    }
  };
  show([]);
  if (await ask('import-file', columns.map(({ name }) => name).join(', '))) await create(collection, good);
}

/** Parses the lines of a file. @type {(collection: Collection, text: string) => Line[]} @throws SyntaxError */
export function linesOf({ fields }, text) {
  const isJson = /^\s*\[/u.test(text);
  const { separator, rows: [head = [], ...rows] } = isJson ? { separator: '', rows: [] } : readCsv(text);
  /** @type {{ [name: string]: unknown }[]} */
  const records = isJson ? JSON.parse(text)
    : rows.map((row) => Object.fromEntries(row.map((cell, index) => [head[index], cell])));
  const decimal = separator === ';' ? ',' : '.';
  return records.map((given, index) => {
    /** @type {{ [field: string]: unknown }} */ const record = {};
    const strange = Object.keys(given).filter((name) => !fields.some((field) => field.name === name));
    const problems = strange.map((name) => `There is no field ${name}.`);
    for (const field of fields.filter(({ created }) => created)) {
      const { value, problem } = fromText(field, `${given[field.name] ?? ''}`, field.isRequired, decimal);
      if (value !== null) record[field.name] = value;
      if (problem) problems.push(`${field.label} ${problem}.`);
    }
    return { number: index + (isJson ? 1 : 2), record, problem: problems.join(' ') };
  });
}

/**
 * Creates records, as many in one request as the server allows. Refused lines are left out and reported.
 * @type {(collection: Collection, lines: readonly Line[]) => Promise<void>}
 */
async function create({ name, title, bulkMax }, lines) {
  /** @type {string[]} */ const failed = [];
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
      const refused = new Map(issues.map(({ pointer, detail }) => [part[parseInt(pointer.slice(1))], detail]));
      for (const [line, detail] of refused) failed.push(`line ${line?.number} ${detail}`);
      // A refused record keeps the whole request from being carried out, so the others are sent again.
      if (refused.size > 0) parts.push(part.filter((line) => !refused.has(line)));
      else failed.push(`lines ${first.number} to ${part.at(-1)?.number}: ${explain(error)}`);
    }
    say(`Creating ${title.toLowerCase()}: ${done} of ${lines.length}…`);
  }
  const news = `Created ${done} of ${lines.length}.`;
  if (failed.length > 0) say(`${news} Not created: ${failed.join('; ')}`, undefined, 60);
  else say(news);
  await loadList(true);
}
