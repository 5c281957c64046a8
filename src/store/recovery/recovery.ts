import type { JsonValue } from '../../base/json.ts';
import type { Files } from '../disk/files.ts';
import {
  journalNumbers, openJournal, readGroups, type Journal, type Line, type Report,
} from '../journal/journal-format.ts';
import { applyChange, changesOf } from '../memory/transaction.ts';
import { isMisfit, tableOf, type AnyTable } from '../memory/table.ts';
import { StoreDamageError } from '../store.ts';
import type { RefusalLabel } from './cases.ts';
import { readSnapshot, snapshotName } from './snapshot.ts';

/** The mark of a directory to which a store is being copied: made first, and removed last. */
export const unfinishedName = 'unfinished';

/** What a start finds in a directory, beside the records, which are in the tables then. */
export interface Recovered {
  /** `undefined` where there is no store yet. */
  readonly epoch: string | undefined;
  /** Sequence number of the last commit. */
  readonly sequence: number;
  /** Whether the last stop was clean, or there was no start before. */
  readonly closed: boolean;
  /** How many commits were replayed. */
  readonly replayed: number;
  /** Whether the snapshots hold everything, so that no journal is needed. */
  readonly isCurrent: boolean;
  /** In bytes. */
  readonly snapshotSizes: readonly number[];
  /** What a write has left that was cut short, and the journal that ends in it. */
  readonly torn: (Line & { readonly file: string }) | undefined;
  /** Temporary files of a process that was killed. */
  readonly temporary: readonly string[];
  /** All journals that are there, ascending. */
  readonly journals: readonly number[];
}

/** Those of the first edition are among them, as is the file that it kept in reserve. */
const temporaryPattern = /^(journal-\d+\.(jsonl|torn)(\.\w+)?|[a-z][\w-]*\.json\.[\da-f]+|reserve)\.tmp$|^reserve$/;

const raise: Report = (damage) => {
  throw damage;
};

/**
 * Reads the snapshots into `tables`, to which it adds collections that the program does not know, and replays the
 * journals. It judges what it finds by the table in `cases.ts`, and writes nothing.
 * @param report takes what is wrong, and then all is read that can be read; without it, the first damage is thrown
 * @throws StoreDamageError
 */
export async function recover(files: Files, tables: Map<string, AnyTable>, report = raise): Promise<Recovered> {
  const names = await files.list();
  if (names.includes(unfinishedName)) throw new StoreDamageError('N3', unfinishedName);
  const numbers = journalNumbers(names);
  const journals: Journal[] = [];
  for (const number of numbers) journals.push(await openJournal(files, number));
  const newest = journals.at(-1);
  judgeJournals(journals, newest, tables, report);

  const snapshots = new Map<string, Snapshot>();
  for (const table of [...tables.values()]) {
    const isThere = names.includes(snapshotName(table.name));
    snapshots.set(table.name, await readCollection(files, tables, table, newest, isThere, report));
  }
  // The journals are needed from the first commit that some snapshot does not hold.
  const throughs = Array.from(snapshots.values(), ({ through }) => through);
  const after = Math.min(newest?.manifest?.after ?? throughs[0] ?? 0, ...throughs);
  const begin = journals.findLastIndex(({ manifest }) => (manifest?.after ?? Infinity) <= after);
  const needed = journals.slice(Math.max(0, begin));
  const { sequence, replayed } = await replay(files, needed, after, tables, snapshots, report);
  return {
    epoch: newest?.manifest?.epoch,
    sequence,
    replayed,
    closed: newest?.manifest?.closed ?? newest === undefined,
    isCurrent: [...snapshots.values()].every(({ through, size }) => size !== undefined && through === sequence),
    snapshotSizes: Array.from(snapshots.values(), ({ size = 0 }) => size),
    torn: newest?.torn && { ...newest.torn, file: newest.name },
    temporary: names.filter((name) => temporaryPattern.test(name)),
    journals: numbers,
  };
}

/** What is known of a collection before the journals are replayed. */
interface Snapshot {
  /** The last commit that it holds. */
  readonly through: number;
  /** In bytes; `undefined` where there is no snapshot. */
  readonly size: number | undefined;
}

/** Looks at the first lines of all journals, and makes tables for the collections that only they know. */
function judgeJournals(
  journals: readonly Journal[],
  newest: Journal | undefined,
  tables: Map<string, AnyTable>,
  report: Report,
): void {
  for (const { name, manifest } of journals) {
    for (const collection of manifest?.collections.keys() ?? []) tableOf(tables, collection);
    // One that nothing needs may be damaged, but one of another store was put beside ours, or ours beside it.
    const epoch = newest?.manifest?.epoch ?? manifest?.epoch;
    if (manifest !== undefined && manifest.epoch !== epoch) report(new StoreDamageError('S3', name));
  }
}

/** Reads one snapshot. */
async function readCollection(
  files: Files,
  tables: Map<string, AnyTable>,
  table: AnyTable,
  newest: Journal | undefined,
  isThere: boolean,
  onDamage: Report,
): Promise<Snapshot> {
  const report = (label: RefusalLabel, detail?: string): void =>
    onDamage(new StoreDamageError(label, snapshotName(table.name), 0, detail));
  const { collections, after = 0, closed, epoch } = newest?.manifest ?? {};
  // A start that was cut short may have written the first snapshot of a collection that is new.
  const { through, file, nextId } = collections?.get(table.name) ?? { through: after, file: false, nextId: 1 };
  if (!isThere && file) report('S5');
  if (isThere && newest === undefined) report('N2');
  const read = isThere ? await readSnapshot(files, tables, table, onDamage) : undefined;
  tables.get(table.name)?.advance(0, nextId);
  if (read?.header === undefined) return { through, size: undefined };
  const { header, size } = read;
  if (newest?.manifest !== undefined && header.epoch !== epoch) report('S3');
  if (header.through < through || (closed === true && header.through > through)) {
    report('S5', `it goes through ${header.through}, not ${through}`);
  }
  return { through: header.through, size };
}

/** Replays what the snapshots do not hold. */
async function replay(
  files: Files,
  journals: readonly Journal[],
  after: number,
  tables: ReadonlyMap<string, AnyTable>,
  snapshots: ReadonlyMap<string, Snapshot>,
  report: Report,
): Promise<{ sequence: number; replayed: number }> {
  let sequence = after;
  let replayed = 0;
  for (const [index, journal] of journals.entries()) {
    const { name, manifest } = journal;
    if (manifest === undefined) report(new StoreDamageError('J9', name));
    const start = manifest?.after ?? sequence;
    if (index > 0 ? start !== sequence : start > sequence) {
      report(new StoreDamageError('J7', name, 0, `it follows commit ${start}, and the last one is ${sequence}`));
    }
    for await (const { offset, first, commits } of readGroups(files, journal, report)) {
      if (journal.sequence <= after) continue;
      if (first <= after) report(new StoreDamageError('J3', name, offset, 'a snapshot ends within this group'));
      replayed += commits.length;
      for (const [change, at] of changesOf(commits)) {
        const problem = replayChange(change, first + at, tables, snapshots);
        if (problem !== undefined) report(new StoreDamageError(isMisfit(problem) ? 'D1' : 'J5', name, offset, problem));
      }
    }
    const isLast = index === journals.length - 1;
    if (!isLast && journal.torn !== undefined) report(new StoreDamageError('J2', name, journal.torn.offset));
    sequence = Math.max(sequence, journal.sequence);
  }
  for (const [name, { through }] of snapshots) {
    if (through <= sequence) continue;
    report(new StoreDamageError('S7', snapshotName(name)));
    sequence = through;
  }
  return { sequence, replayed };
}

/** Applies a change, unless the snapshot holds it already. Returns what is wrong with it. */
function replayChange(
  change: JsonValue,
  sequence: number,
  tables: ReadonlyMap<string, AnyTable>,
  snapshots: ReadonlyMap<string, Snapshot>,
): string | undefined {
  const name = Array.isArray(change) ? String(change[0]) : '';
  if (sequence <= (snapshots.get(name)?.through ?? 0)) return undefined;
  const applied = applyChange(change, sequence, tables);
  return typeof applied === 'string' ? applied : undefined;
}
