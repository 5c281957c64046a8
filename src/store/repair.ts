import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { type CheckReport, checkFiles } from './check.ts';
import { newEpoch } from './file-journal.ts';
import { type Files, readWhole, replaceFile } from './files.ts';
import { decodeLine, journalName, journalNumber, parseObject } from './journal-format.ts';
import { claimedChain, decodeFirst, isPadding, lines } from './journal-reader.ts';
import { countsOf, type OfflineOptions, whileLocked, writeStore } from './offline.ts';
import { applyChange, highestJournal } from './recovery.ts';
import { parseHeader, snapshotName } from './snapshot.ts';
import { type AnyTable, carriedTable, isCount } from './table.ts';

/** What was wrong (empty where nothing was, and then nothing was written), and what is there now. */
export interface RepairReport extends CheckReport {
  /** What could not be kept, with its file and byte. */
  readonly lost: readonly string[];
  /** Copies of the damaged files as they were. */
  readonly aside: readonly string[];
}

/**
 * Keeps everything that can be read, hand edits included, and writes it anew with a new epoch. Files that are damaged
 * are copied aside first. After a crash it can be run again.
 * @throws LockedError; StoreDamageError for a newer format, of which this version would lose what it does not know
 */
export async function repairFiles(
  files: Files,
  makeTables: () => Map<string, AnyTable>,
  options: OfflineOptions,
): Promise<RepairReport> {
  return whileLocked(files, options, async () => {
    const found = await checkFiles(files, makeTables);
    const newer = found.damage.find(({ label }) => label === 'S4');
    if (newer !== undefined) throw newer;
    if (found.damage.length === 0) return { ...found, lost: [], aside: [] };
    const names = await files.list();
    const journals = names.flatMap((name) => journalNumber(name) ?? []).sort((a, b) => a - b);
    const salvage = new Salvage(files, makeTables());
    const { tables, lost } = salvage;
    for (const number of journals) await salvage.readManifest(journalName(number));
    for (const table of tables.values()) await salvage.readSnapshot(table);
    for (const number of journals) await salvage.readJournal(journalName(number));
    const sequence = Math.max(salvage.sequence, ...Array.from(tables.values(), ({ revision }) => revision));
    const epoch = newEpoch(options.random);
    const aside: string[] = [];
    for (const name of new Set(found.damage.map(({ file }) => file))) {
      const bytes = await readWhole(files, name);
      if (bytes === undefined) continue;
      const copy = `${name}.damaged-${epoch}`;
      await replaceFile(files, copy, bytes);
      aside.push(copy);
    }
    await writeStore(files, tables, { epoch, sequence, journal: highestJournal(names) + 1 }, options);
    for (const number of journals) await files.remove(journalName(number));
    return { ...found, lost, aside, collections: countsOf(tables) };
  });
}

/** Reads all that can be read: for each record the newest version, by its revision. */
class Salvage {
  readonly tables: Map<string, AnyTable>;
  readonly lost: string[] = [];
  sequence = 0;
  readonly #files: Files;
  /** What a collection's snapshot holds already. */
  readonly #collections = new Map<string, { readonly through: number }>();

  constructor(files: Files, tables: Map<string, AnyTable>) {
    this.#files = files;
    this.tables = tables;
  }

  async readManifest(name: string): Promise<void> {
    for await (const line of lines(this.#files, name)) {
      const manifest = decodeFirst(line.bytes)?.manifest;
      for (const [collection, listed] of manifest?.collections ?? []) {
        if (!this.tables.has(collection)) this.tables.set(collection, carriedTable(collection));
        this.#collections.set(collection, listed);
      }
      this.sequence = Math.max(this.sequence, manifest?.after ?? 0);
      return;
    }
  }

  async readSnapshot(table: AnyTable): Promise<void> {
    const name = snapshotName(table.name);
    const listed = this.#collections.get(table.name) ?? { through: 0 };
    this.#collections.set(table.name, listed);
    const bytes = await readWhole(this.#files, name);
    if (bytes === undefined) return;
    if (!isUtf8(bytes)) this.#lose(name, 0, 'bytes that are not UTF-8 became U+FFFD');
    const text = bytes.toString();
    const whole = parseObject(text);
    const header = parseHeader(whole ?? parseObject(`${text.slice(0, text.indexOf('\n'))}]}`), table.name);
    const { through, nextId, revision } = header ?? { ...listed, nextId: 1, revision: 0 };
    this.#collections.set(table.name, { through });
    this.sequence = Math.max(this.sequence, through);
    const records = whole === undefined ? this.#readLines(name, text) : whole['records'];
    for (const record of Array.isArray(records) ? records.toSorted((a, b) => idOf(a) - idOf(b)) : []) {
      // A record that was added by hand needs no revision of its own; its id stays in front.
      const complete = isJsonObject(record) && { id: 0, revision: through, ...record };
      const problem = complete ? load(table, complete) : 'it is not a record';
      if (problem !== undefined) this.#lose(name, text.indexOf(`{"id":${idOf(record)},`), problem);
    }
    table.advance(revision, nextId);
  }

  /** The records of a snapshot that is no JSON as a whole. */
  #readLines(name: string, text: string): JsonObject[] {
    const records: JsonObject[] = [];
    let offset = 0;
    for (const whole of text.split('\n')) {
      const line = whole.trim();
      const record = parseObject(line.replace(/,$/, ''));
      if (record !== undefined) records.push(record);
      else if (!/^(\{"format":.*|\],"count":.*)?$/.test(line)) this.#lose(name, offset, 'this line is not a record');
      offset += Buffer.byteLength(whole) + 1;
    }
    return records;
  }

  async readJournal(name: string): Promise<void> {
    let chain: number | undefined;
    for await (const { offset, bytes } of lines(this.#files, name)) {
      const { sequence: first, commits } = (chain === undefined ? undefined : decodeLine(bytes, chain)?.value) ?? {};
      if (isCount(first) && Array.isArray(commits)) {
        for (const [index, commit] of commits.entries()) {
          this.sequence = Math.max(this.sequence, first + index);
          const changes = Array.isArray(commit) ? commit : [commit];
          for (const change of changes) this.#apply(change, first + index, name, offset);
        }
      } else if (offset > 0 && !isPadding(bytes)) {
        this.#lose(name, offset, 'this line is damaged');
      }
      chain = claimedChain(bytes);
    }
  }

  #apply(change: JsonValue, sequence: number, file: string, offset: number): void {
    const [name, value] = Array.isArray(change) ? change : [];
    const table = this.tables.get(String(name));
    const known = table?.get(isCount(value) ? value : idOf(value));
    // Two journals may hold the same commit.
    if ((known?.revision ?? 0) > sequence) return;
    const problem = applyChange(change, sequence, this.tables, this.#collections);
    // What a change removes may have been lost.
    const gone = table !== undefined && isCount(value) && known === undefined;
    if (problem !== undefined && !gone) this.#lose(file, offset, problem);
  }

  #lose(file: string, offset: number, problem: string): void {
    this.lost.push(`${file}, byte ${Math.max(0, offset)}: ${problem}`);
  }
}

function load(table: AnyTable, record: JsonObject): string | undefined {
  const { id, revision } = record;
  if (isCount(id) && table.get(id) !== undefined) return 'another record has its id';
  const problem = table.load(record);
  if (problem === undefined && isCount(id)) table.advance(isCount(revision) ? revision : 0, id + 1);
  return problem;
}

function idOf(record: JsonValue | undefined): number {
  const id = isJsonObject(record) ? record['id'] : undefined;
  return isCount(id) ? id : 0;
}
