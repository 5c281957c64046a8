import type { Files, Line } from '../disk/files.ts';
import { journalNumbers, JournalReader } from '../format/journal.ts';
import { conflictsIn, tableOf, type AnyTable, type Tables, type Misfit } from '../memory/table.ts';
import type { ReadGroup } from '../log.ts';
import { applyChange, changesOf } from '../memory/transaction.ts';
import type { RefusalLabel } from './cases.ts';
import { errorsFor } from './damage-error.ts';
import { FoundDamage, type Report } from '../format/damage.ts';
import { readSnapshot, snapshotName, snapshotsOf, type ReadSnapshot } from '../format/snapshot.ts';

/** The content of a directory at a start, beside the records, which are in the tables. */
export interface Recovered {
  /** `undefined` where there is no store yet. */
  readonly epoch: string | undefined;
  /** Sequence number of the last commit. */
  readonly sequence: number;
  /** Whether the last stop was clean, or there was no start before. */
  readonly closed: boolean;
  /** How many commits were replayed. */
  readonly replayed: number;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  /** The last commit that every snapshot holds. */
  readonly through: number;
  /** The journals with commits that some snapshot lacks, ascending, and their last groups. */
  readonly needed: readonly { readonly name: string; readonly last: Line }[];
  /** Where the last line of the newest journal begins, if it is taken for a write that was cut short. */
  readonly badLastLine: { readonly file: string; readonly offset: number } | undefined;
  /** Temporary files of a process that was killed. */
  readonly temporary: readonly string[];
  /** The numbers of all journals that are there, ascending. */
  readonly journals: readonly number[];
}

/** Former editions also made journals in this way, and kept a file in reserve. */
const temporaryPattern =
  /^(journal-\d+\.(jsonl|torn)(\.\w+)?|[\w%-]+\.json\.[\da-f]+|reserve)\.tmp$|^reserve$/;

/** While it is there, an import of a former edition has not ended, and must not count. */
const formerImport = 'import';

/** While it is there, a copy to this directory has not ended, and must not be served. */
export const unfinishedName = 'unfinished';

const raise: Report = (damage) => {
  throw new FoundDamage(damage);
};

/**
 * Reads the snapshots into `tables`, to which it adds collections that the program does not
 * know, and replays the journals. Judges by the table in `cases.ts`. Writes nothing.
 * @param report takes all damage, while everything is read that can be read
 * @throws StoreDamageError for the first damage where there is no `report`, and for a format of
 * a newer version
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
  const journals: JournalReader[] = [];
  for (const number of numbers) {
    const journal = await JournalReader.open(files, number);
    if (!journal.isUnfinished) journals.push(journal);
  }
  const newest = journals.at(-1);
  const [snapshot] = snapshotsOf(names, tables);
  if (newest === undefined && snapshot !== undefined) report({ label: 'N2', file: snapshot });
  for (const journal of journals) checkManifest(journal, newest?.manifest?.epoch, tables, report);
  const snapshots = new Map<string, Snapshot>();
  for (const table of tables.values()) {
    const isThere = names.includes(snapshotName(table.name));
    snapshots.set(table.name, await recoverSnapshot(files, table, newest, isThere, report));
  }
  const [after, needed] = neededOf(journals, snapshots);
  const { sequence, replayed } = await replay(needed, after, tables, snapshots, report);
  for (const { label, name, problem } of conflictsIn(tables)) {
    report({ label, file: snapshotName(name), detail: problem });
  }
  const { manifest, name = '', badLine } = newest ?? {};
  return {
    epoch: manifest?.epoch,
    sequence,
    replayed,
    closed: manifest?.closed ?? newest === undefined,
    snapshots,
    through: after,
    needed: needed.flatMap(({ name, last }) => (last === undefined ? [] : [{ name, last }])),
    badLastLine: badLine?.isTorn === true ? { file: name, offset: badLine.offset } : undefined,
    temporary: names.filter((each) => temporaryPattern.test(each)),
    journals: numbers,
  };
}

/** Reports files that say that what is there must not be used. */
function checkMarks(names: readonly string[], report: Report): void {
  if (names.includes(formerImport)) {
    report({ label: 'J2', file: formerImport, detail: 'start the former version once' });
  }
  if (names.includes(unfinishedName)) {
    const again = 'run the command again that copied to this directory';
    const detail = `${again}, or remove this file for an empty store`;
    report({ label: 'N2', file: unfinishedName, detail });
  }
}

/** Adds the collections that a journal lists, and reports those of others, and of another store. */
function checkManifest(
  { name, manifest }: JournalReader,
  epoch: string | undefined,
  tables: Tables,
  report: Report,
): void {
  for (const [collection, { server }] of manifest?.collections ?? []) {
    if (tableOf(tables, collection, server).isServers === server) continue;
    const [owner, other] = server
      ? ['the server itself', 'a collection has its name']
      : ['a collection', 'this server keeps its own under that name'];
    const detail = `"${collection}" has those of ${owner}, and ${other}`;
    report({ label: 'D1', file: name, detail });
  }
  // Also if nothing needs it: somebody has mixed the files of two stores.
  if (manifest && epoch !== undefined && manifest.epoch !== epoch) {
    report({ label: 'S3', file: name });
  }
}

/** Returns the last commit that every snapshot holds, and the journals from there on. */
function neededOf(
  journals: readonly JournalReader[],
  snapshots: ReadonlyMap<string, Snapshot>,
): [after: number, needed: readonly JournalReader[]] {
  const newest = journals.at(-1)?.manifest;
  const own = newest
    ? journals.filter(({ manifest }) => (manifest?.epoch ?? newest.epoch) === newest.epoch)
    : journals;
  const throughs = Array.from(snapshots.values(), ({ through }) => through);
  if (newest !== undefined) throughs.push(newest.after);
  const after = throughs.length === 0 ? 0 : Math.min(...throughs);
  const begin = own.findLastIndex(({ manifest }) => (manifest?.after ?? Infinity) <= after);
  return [after, own.slice(Math.max(0, begin))];
}

/** True if the directory holds a store of these collections, or parts of one. */
export async function holdsStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
): Promise<boolean> {
  const names = await files.list();
  return journalNumbers(names).length > 0 || snapshotsOf(names, tables).length > 0;
}

/** A collection before the journals are replayed. The size is 0 where no snapshot can be read. */
type Snapshot = Pick<ReadSnapshot, 'through' | 'size'>;

/**
 * Reads the snapshot of a collection, and compares it with what the newest journal says
 * of it.
 */
async function recoverSnapshot(
  files: Files,
  table: AnyTable,
  newest: JournalReader | undefined,
  isThere: boolean,
  onDamage: Report,
): Promise<Snapshot> {
  const { name } = table;
  const report = (label: RefusalLabel, detail?: string): void =>
    onDamage({ label, file: snapshotName(name), detail });
  const { collections, after = 0, closed, epoch } = newest?.manifest ?? {};
  // A start that was cut short may have written the first snapshot of a new collection.
  const listed = collections?.get(name) ?? { through: after, file: false, nextId: 1 };
  if (!isThere && listed.file) report('S5');
  const found = isThere ? await readAny(files, table, onDamage) : undefined;
  table.advance(0, listed.nextId);
  if (found === undefined) return { through: listed.through, size: 0 };
  const { through } = found;
  if (epoch !== undefined && found.epoch !== epoch) report('S3');
  if (through < listed.through || (closed === true && through > listed.through)) {
    report('S5', `it goes through ${through}, not ${listed.through}`);
  }
  return found;
}

/** Reads a snapshot, or what can be read of it; `undefined` where its header is damaged. */
async function readAny(
  files: Files,
  table: AnyTable,
  report: Report,
): Promise<ReadSnapshot | undefined> {
  const intact = await readSnapshot(files, table);
  if (intact !== undefined) return intact;
  const { salvageSnapshot } = await import('./salvage.ts');
  const salvaged = await salvageSnapshot(files, table, report);
  return salvaged && { ...salvaged, size: 0 };
}

/**
 * Replays the commits that the snapshots do not hold. If the reading goes on after damage, it goes
 * on with what is intact: of the journals, what comes before the first line that does not fit.
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
    const { name, manifest } = journal;
    const start = manifest?.after ?? sequence;
    if (index > 0 ? start !== sequence : start > sequence) {
      const detail = `it follows commit ${start}, and the last one is ${sequence}`;
      report({ label: 'J7', file: name, detail });
      isBroken = index > 0;
    }
    if (manifest === undefined) {
      report({ label: 'J2', file: name });
      isBroken = true;
    }
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
    const { badLine } = journal;
    const later = journals.length - index - 1;
    if (badLine === undefined || (badLine.isTorn && later === 0)) continue;
    const { offset, detail = 'it does not fit', following } = badLine;
    const rest = `${counted(following, 'line')} and ${counted(later, 'journal')}`;
    report({ label: 'J2', file: name, offset, detail: `${detail}, before ${rest}` });
    isBroken = true;
    break;
  }
  for (const [name, { through }] of snapshots) {
    if (through <= sequence) continue;
    if (!isBroken) report({ label: 'S5', file: snapshotName(name) });
    sequence = through;
  }
  return { sequence, replayed };
}

const counted = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? '' : 's'}`;

/** Applies the changes that the snapshots do not hold. Yields what is wrong with them. */
function* replayGroup(
  group: ReadGroup,
  tables: ReadonlyMap<string, AnyTable>,
  snapshots: ReadonlyMap<string, Snapshot>,
): Generator<Misfit> {
  for (const [change, sequence] of changesOf(group)) {
    const name = Array.isArray(change) ? String(change[0]) : '';
    if (sequence <= (snapshots.get(name)?.through ?? 0)) continue;
    const applied = applyChange(change, sequence, tables);
    if ('problem' in applied) yield applied;
  }
}
