import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { readWhole, replaceFile, type Files } from './files.ts';
import {
  statedChain, decodeFirst, decodeLine, isPadding, journalName, journalNumbers, lines, parseObject,
  type ListedCollection, type Manifest,
} from './journal-format.ts';
import { newEpoch } from './journal.ts';
import { checkFiles, emptyTables, whileLocked, writeStore, type OfflineOptions } from './offline.ts';
import { applyChange, highestJournal } from './recovery.ts';
import { parseHeader, snapshotName } from './snapshot.ts';
import type { StoreDamageError } from './store.ts';
import { carriedTable, countsOf, isCount, type AnyTable } from './table.ts';

/** How far the next id jumps where it cannot be known which ids were given: none may ever mean two things. */
const idsSkipped = 1_000_000;

/**
 * Keeps everything that can be read, hand edits included, and writes it anew with a new epoch. Files that are damaged
 * are copied aside first. Where anything is lost, credentials end: who they stand for may be lost. After a crash it can
 * be run again. Returns what was wrong (where `damage` is empty, nothing was written) and what is there now: `lost` is
 * what could not be kept, with its file and byte, `aside` the copies of the damaged files as they were.
 * @throws LockedError; StoreDamageError for what is not repairable
 */
export async function repairFiles(files: Files, makeTables: () => Map<string, AnyTable>, options: OfflineOptions) {
  options.onProgress?.(`reading ${files.directory}`);
  return whileLocked(files, options, async () => {
    const found = await checkFiles(files, makeTables);
    const beyond = found.damage.find(({ repairable }) => !repairable);
    if (beyond !== undefined) throw beyond;
    if (found.damage.length === 0) return { ...found, lost: [], aside: [] };
    const names = await files.list();
    const journals = journalNumbers(names);
    const salvage = new Salvage(files, makeTables(), names, found.damage);
    const { tables, lost } = salvage;
    for (const number of journals) await salvage.readManifest(journalName(number));
    for (const table of tables.values()) await salvage.readSnapshot(table);
    for (const number of journals) await salvage.readJournal(journalName(number));
    const sequence = Math.max(salvage.judge(), ...Array.from(tables.values(), ({ revision }) => revision));
    const epoch = newEpoch(options.random);
    // By the names of the copies, the next run after a crash knows what this one wrote, unless something was lost.
    const suffix = `.damaged-${lost.length > 0 ? newEpoch(options.random) : epoch}`;
    const aside: string[] = [];
    for (const name of new Set([...found.damage.map(({ file }) => file), ...salvage.lossy])) {
      const bytes = await readWhole(files, name);
      if (bytes === undefined) continue;
      await replaceFile(files, name + suffix, bytes);
      aside.push(name + suffix);
    }
    if (lost.length > 0) {
      emptyTables(tables, options.credentials.collections, sequence);
      for (const name of names.filter((each) => options.credentials.files.includes(each))) await files.remove(name);
      await files.syncDirectory();
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
  /** The files in which something was lost. */
  readonly lossy = new Set<string>();
  readonly #files: Files;
  readonly #names: readonly string[];
  readonly #damage: readonly StoreDamageError[];
  /** As the newest manifest says it; `through` as the snapshot says. */
  readonly #collections = new Map<string, ListedCollection>();
  /** `undefined` where the newest journal's first line is damaged, or there is none. */
  #manifest: Manifest | undefined;
  /** The last sequence in the journals. */
  #end = 0;
  /** Whether all ids that were ever given are known. */
  #idsKnown = true;

  constructor(files: Files, tables: Map<string, AnyTable>, names: string[], damage: StoreDamageError[]) {
    this.#damage = damage;
    this.#files = files;
    this.tables = tables;
    this.#names = names;
  }

  async readManifest(name: string): Promise<void> {
    this.#manifest = undefined;
    for await (const line of lines(this.#files, name)) {
      this.#manifest = decodeFirst(line.bytes)?.manifest;
      for (const [collection, listed] of this.#manifest?.collections ?? []) {
        if (!this.tables.has(collection)) this.tables.set(collection, carriedTable(collection));
        this.tables.get(collection)?.advance(0, listed.nextId);
        this.#collections.set(collection, listed);
      }
      return;
    }
  }

  async readSnapshot(table: AnyTable): Promise<void> {
    const name = snapshotName(table.name);
    // A collection that is not listed had nothing when the journal was begun.
    const unlisted = { through: this.#manifest?.after ?? 0, file: false, nextId: 0 };
    const listed = this.#collections.get(table.name) ?? unlisted;
    this.#collections.set(table.name, listed);
    const isThere = this.#names.includes(name);
    if (!isThere && !listed.file) return;
    const { head = {}, records } = isThere ? await this.#readRecords(name) : { head: undefined, records: [] };
    const header = parseHeader(head, table.name);
    if (header === undefined) {
      this.#idsKnown &&= listed.nextId > 0;
      this.#lose(name, 0, isThere ? 'its first line is not a header' : 'it is not there');
    }
    const claimed = isCount(head['nextId']) && { nextId: head['nextId'] };
    const guess = { ...listed, revision: 0, epoch: this.#manifest?.epoch, ...claimed };
    const { through, revision, nextId, epoch } = header ?? guess;
    const known = [this.#manifest?.epoch ?? epoch, ...this.#names.map((each) => each.split('.damaged-')[1])];
    if (!known.includes(epoch)) this.#loseIdsToo(name, 0, 'it is of another store');
    if (through < listed.through) this.#lose(name, 0, `it ends with ${through}: what came after it is missing`);
    this.#collections.set(table.name, { ...listed, through, nextId });
    for (const { offset, record } of records) {
      // A record that was added by hand needs no revision of its own; its id stays in front.
      const complete = isJsonObject(record) && { id: 0, revision: through, ...record };
      const id = idOf(record);
      const taken = table.get(id) && 'another record has its id';
      const problem = complete ? (taken ?? table.load(complete)) : 'this line is not a record';
      if (problem !== undefined) this.#lose(name, offset, problem);
      table.advance(table.get(id)?.revision ?? 0, 0);
    }
    table.advance(revision, nextId);
  }

  /** The members before the records, and the records with their places: line by line, or else as JSON of any form. */
  async #readRecords(name: string) {
    let head: JsonObject | undefined;
    let ended = false;
    let records: { readonly offset: number; readonly record: JsonValue | undefined }[] = [];
    for await (const { offset, bytes } of lines(this.#files, name)) {
      if (!isUtf8(bytes)) this.#lose(name, offset, 'bytes that are not UTF-8 became U+FFFD');
      // Some editors put a byte order mark in front, which goes with the spaces; it has three bytes.
      const line = bytes.toString().trim();
      ended ||= line.startsWith('],"count":');
      if (offset === 0) head = parseObject(`${line}]}`);
      if (/^(\{"format":.*\[|\],"count":.*)?$/.test(line)) continue;
      records.push({ offset, record: parseObject(line.replace(/,$/, '')) });
    }
    if (head !== undefined && ended && records.every(({ record }) => record !== undefined)) return { head, records };
    const bytes = (await readWhole(this.#files, name)) ?? Buffer.alloc(0);
    const whole = parseObject(bytes) ?? parseObject(bytes.subarray(3));
    if (whole !== undefined) {
      const { records: all } = whole;
      if (!Array.isArray(all)) this.#lose(name, 0, 'it has no records');
      head = whole;
      records = Array.isArray(all) ? all.map((record: JsonValue) => ({ offset: 0, record })) : [];
    } else if (head !== undefined && !ended) {
      this.#lose(name, 0, 'its last line is missing');
    }
    return { head, records };
  }

  async readJournal(name: string): Promise<void> {
    let chain: number | undefined;
    for await (const { offset, bytes } of lines(this.#files, name)) {
      const manifest = offset === 0 ? decodeFirst(bytes)?.manifest : undefined;
      const { sequence: first, commits } = (chain === undefined ? undefined : decodeLine(bytes, chain)?.value) ?? {};
      if (manifest !== undefined) {
        const known = Math.max(this.#end, Math.min(...this.#throughs()));
        if (manifest.predecessor !== undefined && known < manifest.after) {
          this.#loseIdsToo(name, 0, `what was written after ${known} and before it is missing`);
        }
        if (manifest.epoch !== this.#manifest?.epoch) this.#loseIdsToo(name, 0, 'it is of another store');
        this.#end = Math.max(this.#end, manifest.after);
      } else if (isCount(first) && Array.isArray(commits)) {
        for (const [index, commit] of commits.entries()) {
          this.#end = Math.max(this.#end, first + index);
          const changes = Array.isArray(commit) ? commit : [commit];
          for (const change of changes) this.#apply(change, first + index, name, offset);
        }
      } else if (!isPadding(bytes)) {
        this.#loseIdsToo(name, offset, 'this line is damaged');
      }
      chain = statedChain(bytes);
    }
  }

  /** Tells of missing journals, and skips ids where it is not known which were given. Returns the last sequence. */
  judge(): number {
    const furthest = Math.max(...this.#throughs());
    const missing = this.#damage.find(({ label }) => label === 'J10');
    if (missing !== undefined) this.#loseIdsToo(missing.file, 0, 'it is not there');
    const number = journalNumbers(this.#names).at(-1);
    const newest = number === undefined ? 'the newest journal' : journalName(number);
    if (this.#manifest === undefined) this.#loseIdsToo(newest, 0, 'there is no first line to go by');
    else if (furthest > this.#end) this.#loseIdsToo(newest, 0, `it ends before ${furthest}`);
    for (const table of this.#idsKnown ? [] : this.tables.values()) {
      table.advance(0, Math.min(table.nextId + idsSkipped, 2 ** 52));
      this.lost.push(`${table.name}: which ids were given is not known, so the next one is ${table.nextId}`);
    }
    return Math.max(this.#end, furthest);
  }

  #apply(change: JsonValue, sequence: number, file: string, offset: number): void {
    const [name, value] = Array.isArray(change) ? change : [];
    const table = this.tables.get(String(name));
    const id = isCount(value) ? value : idOf(value);
    const known = table?.get(id);
    // Two journals may hold the same commit.
    if ((known?.revision ?? 0) > sequence) return;
    const problem = applyChange(change, sequence, this.tables, this.#collections);
    // What a change removes may have been lost.
    const gone = table !== undefined && isCount(value) && known === undefined;
    if (problem !== undefined) return gone ? undefined : this.#lose(file, offset, problem);
    const { through = 0, nextId = 0 } = this.#collections.get(String(name)) ?? {};
    if (sequence <= through || id >= nextId || (known?.revision ?? 0) > through) return;
    const snapshot = snapshotName(String(name));
    // It stood in the snapshot; which of those an edit has changed or removed cannot be told.
    if (!this.#damage.some((each) => /^S[12]$/.test(each.label) && each.file === snapshot)) return;
    this.#lose(snapshot, 0, `record ${id} is as ${file} has it: an edit of it is lost`);
  }

  #throughs(): number[] {
    return Array.from(this.#collections.values(), ({ through }) => through);
  }

  #loseIdsToo(file: string, offset: number, problem: string): void {
    this.#idsKnown = false;
    this.#lose(file, offset, problem);
  }

  #lose(file: string, offset: number, problem: string): void {
    this.lossy.add(file);
    this.lost.push(`${file}, byte ${offset}: ${problem}`);
  }
}

function idOf(record: JsonValue | undefined): number {
  const id = isJsonObject(record) ? record['id'] : undefined;
  return isCount(id) ? id : 0;
}
