import type { Files, Line } from '../disk/files.ts';
import {
  journalName,
  journalNumbers,
  JournalReader,
  type Manifest,
  type Snapshot,
} from '../format/journal.ts';
import {
  conflictsIn,
  findOrAddTable,
  type AnyTable,
  type Tables,
  type Misfit,
} from '../memory/table.ts';
import type { ReadGroup } from '../log.ts';
import { applyChange, listChanges } from '../memory/transaction.ts';
import { errorsFor } from './damage-error.ts';
import { FoundDamage, type Report } from '../format/damage.ts';
import { readSnapshot, snapshotName, findSnapshots, type Header } from '../format/snapshot.ts';

/** The content of a directory at a start, without the records, which are in the tables. */
export interface Recovered {
  /** `undefined` if there is no store yet. */
  readonly epoch: string | undefined;
  readonly sequence: number;
  /** True if the last stop was clean, or there was no start before. */
  readonly closed: boolean;
  readonly replayed: number;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  readonly through: number;
  /** The last groups of the journals that some snapshot needs, ascending. */
  readonly needed: readonly LastGroup[];
  readonly passed: readonly string[];
  /** 0 without journals. */
  readonly number: number;
  /** The last line of the newest journal, if it seems to be a write that was cut short. */
  readonly badLastLine: { readonly file: string; readonly offset: number } | undefined;
  readonly temporary: readonly string[];
}

export interface LastGroup extends Line {
  readonly name: string;
}

/** Earlier editions also created journals in this way, and kept a file in reserve. */
const temporaryPattern =
  /^(journal-\d+\.(jsonl|torn)(\.\w+)?|[\w%-]+\.json\.[\da-f]+|reserve)\.tmp$|^reserve$/;

/** Exists until an import by an earlier edition has ended: its data must not count. */
const formerImport = 'import';

/** Exists until a copy to this directory is complete: it must not be served. */
export const unfinishedName = 'unfinished';

const raise: Report = (damage) => {
  throw new FoundDamage(damage);
};

/**
 * Reads the snapshots into `tables`, adding collections that the program does not know, and replays
 * the journals. Judges by the table in `cases.ts`. Writes nothing.
 * @param report receives all damage, while everything readable is read
 * @throws StoreDamageError for the first damage without `report`, and for a newer format
 */
export async function recover(files: Files, tables: Tables, report = raise): Promise<Recovered> {
  try {
    return await read(files, tables, report);
  } catch (error) {
    if (!(error instanceof FoundDamage)) throw error;
    const [damage = error] = await errorsFor(files, [error.damage]);
    throw damage;
  }
}

async function read(files: Files, tables: Tables, report: Report): Promise<Recovered> {
  const names = await files.list();
  checkMarks(names, report);
  const numbers = journalNumbers(names);
  const journals = await openJournals(files, numbers);
  const newest = journals.at(-1);
  const [snapshot] = findSnapshots(names, tables);
  if (newest === undefined && snapshot !== undefined) report({ label: 'N2', file: snapshot });
  const own = journals.filter((journal) => belongs(journal, newest?.manifest, tables, report));
  const snapshots = new Map<string, Snapshot>();
  for (const table of tables.values()) {
    const isThere = names.includes(snapshotName(table.name));
    const found = isThere ? await readAny(files, table, report) : undefined;
    const file = { file: snapshotName(table.name), isThere };
    snapshots.set(table.name, checkSnapshot(file, found, table, newest?.manifest, report));
  }
  const through = firstEnd(snapshots, newest?.manifest);
  const needed = journalsFrom(through, own);
  const { sequence, replayed } = await replay(needed, through, tables, snapshots, report);
  for (const { label, name, problem } of conflictsIn(tables)) {
    report({ label, file: snapshotName(name), detail: problem });
  }
  const lasts = needed.flatMap(({ name, last }) => (last === undefined ? [] : [{ name, ...last }]));
  const { manifest, name = '', badLine } = newest ?? {};
  return {
    epoch: manifest?.epoch,
    sequence,
    replayed,
    closed: manifest?.closed ?? newest === undefined,
    snapshots,
    through,
    needed: lasts,
    passed: numbers.map(journalName).filter((each) => !lasts.some((last) => last.name === each)),
    number: numbers.at(-1) ?? 0,
    badLastLine: badLine?.isTorn === true ? { file: name, offset: badLine.offset } : undefined,
    temporary: names.filter((each) => temporaryPattern.test(each)),
  };
}

async function openJournals(files: Files, numbers: readonly number[]): Promise<JournalReader[]> {
  const journals: JournalReader[] = [];
  for (const number of numbers) {
    const journal = await JournalReader.open(files, number);
    if (!journal.isUnfinished) journals.push(journal);
  }
  return journals;
}

/** Reports marker files: the data must not be used. */
function checkMarks(names: readonly string[], report: Report): void {
  if (names.includes(formerImport)) {
    report({ label: 'J2', file: formerImport, detail: 'start the previous version once' });
  }
  if (names.includes(unfinishedName)) {
    const again = 'run the command again that copied to this directory';
    const detail = `${again}, or remove this file for an empty store`;
    report({ label: 'N2', file: unfinishedName, detail });
  }
}

/**
 * Adds the collections that a journal lists, and reports any of another owner. Returns false, and
 * reports it, if the journal belongs to another store whose files were mixed with these.
 */
function belongs(
  { name, manifest }: JournalReader,
  newest: Manifest | undefined,
  tables: Tables,
  report: Report,
): boolean {
  for (const [collection, { server }] of manifest?.collections ?? []) {
    if (findOrAddTable(tables, collection, server).isServers === server) continue;
    const [owner, other] = server
      ? ['the server itself', 'a collection has its name']
      : ['a collection', 'this server keeps its own under that name'];
    const detail = `"${collection}" has those of ${owner}, and ${other}`;
    report({ label: 'D1', file: name, detail });
  }
  const isOwn = !manifest || !newest || manifest.epoch === newest.epoch;
  if (!isOwn) report({ label: 'S3', file: name });
  return isOwn;
}

/** The newest journal may be all there is. */
function firstEnd(snapshots: ReadonlyMap<string, Snapshot>, newest?: Manifest): number {
  const ends = Array.from(snapshots.values(), ({ through }) => through);
  if (newest !== undefined) ends.push(newest.after);
  return ends.length === 0 ? 0 : Math.min(...ends);
}

function journalsFrom(after: number, journals: readonly JournalReader[]): readonly JournalReader[] {
  const first = journals.findLastIndex(({ manifest }) => manifest && manifest.after <= after);
  return journals.slice(Math.max(0, first));
}

/** True even for an incomplete store of these collections. */
export async function holdsStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
): Promise<boolean> {
  const names = await files.list();
  return journalNumbers(names).length > 0 || findSnapshots(names, tables).length > 0;
}

function checkSnapshot(
  { file, isThere }: { readonly file: string; readonly isThere: boolean },
  found: (Header & Snapshot) | undefined,
  table: AnyTable,
  newest: Manifest | undefined,
  report: Report,
): Snapshot {
  // A start that was cut short may have written the first snapshot of a new collection.
  const unlisted = { through: newest?.after ?? 0, file: false, nextId: 1 };
  const listed = newest?.collections.get(table.name) ?? unlisted;
  if (!isThere && listed.file) report({ label: 'S5', file });
  table.advance(0, listed.nextId);
  if (found === undefined) return { through: listed.through, size: 0 };
  const { through, epoch, size } = found;
  if (newest !== undefined && epoch !== newest.epoch) report({ label: 'S3', file });
  if (through < listed.through || (newest?.closed === true && through > listed.through)) {
    report({ label: 'S5', file, detail: `it goes through ${through}, not ${listed.through}` });
  }
  return { through, size };
}

/** Returns `undefined` if the header is damaged. */
async function readAny(
  files: Files,
  table: AnyTable,
  report: Report,
): Promise<(Header & Snapshot) | undefined> {
  const intact = await readSnapshot(files, table);
  if (intact !== undefined) return intact;
  const { salvageSnapshot } = await import('./salvage.ts');
  const salvaged = await salvageSnapshot(files, table, report);
  return salvaged && { ...salvaged, size: 0 };
}

/**
 * Replays the commits that the snapshots do not hold. If reading continues after damage, it uses
 * each journal up to the first line that does not fit.
 */
async function replay(
  journals: readonly JournalReader[],
  after: number,
  tables: ReadonlyMap<string, AnyTable>,
  snapshots: ReadonlyMap<string, Snapshot>,
  report: Report,
): Promise<{ sequence: number; replayed: number }> {
  let sequence = after;
  let replayed = 0;
  let isBroken = false;
  for (const [index, journal] of journals.entries()) {
    const { name } = journal;
    isBroken = !follows(journal, sequence, index === 0, report);
    if (isBroken) break;
    const end = journals[index + 1]?.manifest?.after ?? Infinity;
    for await (const group of journal.groups(end)) {
      if (journal.sequence <= after) continue;
      const { offset, first, commits } = group;
      if (first <= after) report({ label: 'J2', file: name, offset });
      replayed += commits.length;
      for (const { problem, cause } of replayGroup(group, tables, snapshots)) {
        const label = cause === undefined ? 'J2' : 'D1';
        report({ label, file: name, offset, detail: problem });
      }
    }
    sequence = Math.max(sequence, journal.sequence);
    isBroken = !endsWhole(journal, journals.length - index - 1, report);
    if (isBroken) break;
  }
  // The damage above already explains why snapshots go further.
  for (const [name, { through }] of snapshots) {
    if (through <= sequence) continue;
    if (!isBroken) report({ label: 'S5', file: snapshotName(name) });
    sequence = through;
  }
  return { sequence, replayed };
}

/** Returns false, and reports it, if a journal cannot be replayed after this commit. */
function follows(
  { name, manifest }: JournalReader,
  sequence: number,
  isFirst: boolean,
  report: Report,
): boolean {
  if (manifest === undefined) {
    report({ label: 'J2', file: name });
    return false;
  }
  const { after } = manifest;
  // The first one may begin earlier: the snapshots hold its beginning.
  if (after === sequence || (isFirst && after < sequence)) return true;
  const detail = `it follows commit ${after}, and the last one is ${sequence}`;
  report({ label: 'J7', file: name, detail });
  return isFirst;
}

/** Returns false, and reports it, if a line does not fit and a crash cannot have left it. */
function endsWhole({ name, badLine }: JournalReader, later: number, report: Report): boolean {
  if (badLine === undefined || (badLine.isTorn && later === 0)) return true;
  const { offset, detail = 'it does not fit', following } = badLine;
  const rest = `${counted(following, 'line')} and ${counted(later, 'journal')}`;
  report({ label: 'J2', file: name, offset, detail: `${detail}, before ${rest}` });
  return false;
}

const counted = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? '' : 's'}`;

/** Yields problems with the changes. */
function* replayGroup(
  group: ReadGroup,
  tables: ReadonlyMap<string, AnyTable>,
  snapshots: ReadonlyMap<string, Snapshot>,
): Generator<Misfit> {
  for (const [change, sequence] of listChanges(group)) {
    const name = Array.isArray(change) ? String(change[0]) : '';
    if (sequence <= (snapshots.get(name)?.through ?? 0)) continue;
    const applied = applyChange(change, sequence, tables);
    if ('problem' in applied) yield applied;
  }
}
