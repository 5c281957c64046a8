/**
 * What a start makes of the files it finds. Nothing here writes: `FileJournal` does, from what is decided here, and so
 * do `check` and `repair`.
 *
 *   case  what is found                                              what is done
 *   ----  ---------------------------------------------------------  --------------------------------------------
 *   N1    no journal and no snapshot: absent or empty directory       a new store with a new epoch
 *   N2    snapshots without a journal                                 refused: their journal is missing
 *   N3    the mark of a copy that has not ended                       refused: a restore or a backup was cut short
 *   N4    the reserve without a journal and a snapshot                refused: they are missing
 *   S1    a snapshot is damaged                                       refused
 *   S2    a snapshot is well-formed, but its digest differs           refused as edited; `repair` accepts it
 *   S3    a snapshot of another epoch; or without one, a journal      refused: it belongs to another store
 *   S4    a snapshot or journal of a newer format                     refused
 *   S5    the manifest lists a snapshot, and there is none, or an     refused: it is missing or was replaced
 *         older one
 *   S6    snapshots of different `through`                            each replays from its own
 *   S7    a snapshot goes further than the journals                   refused: journal lines are missing
 *   J1    the last line of the newest journal is damaged              a torn write: left out, kept aside, noticed
 *   J2    a line before it is damaged, missing, repeated or stale     refused
 *   J3    the sequence has a gap                                      refused
 *   J4    something follows the one line of a closed journal          refused
 *   J5    a line that fits its `crc` but not the format or the state  refused
 *   J6    several journals, the older ones still needed               replayed in order, each whole
 *   J7    an older journal is needed and missing, or does not end     refused
 *         where its successor begins
 *   J8    older journals that every snapshot has passed               left out; removed after the start
 *   J9    the first line of the newest journal is damaged             refused
 *   J10   a temporary snapshot is of a journal after the newest       refused: that journal is missing
 *   J11   a number that leaves few to the journals that follow        refused: a file of somebody else
 *   L1    temporary files                                             left out; removed after the start
 *   L2    files that the store never makes                            left alone
 *   C1    a collection that the program does not register             carried along as it is
 *   C2    a registered collection that is new                         empty; the next manifest lists it
 */
import { isJsonObject, type JsonValue } from '../base/json.ts';
import type { Files } from './files.ts';
import {
  JournalReader, journalName, journalNumbers, type LineBody, type ListedCollection, type Manifest,
} from './journal-format.ts';
import { reserveName } from './room.ts';
import { readSnapshot, snapshotName } from './snapshot.ts';
import { StoreDamageError } from './store.ts';
import { carriedTable, isCount, type AnyTable } from './table.ts';

/** The mark of a directory to which a store is being copied: made first, and removed last. */
export const unfinishedName = 'unfinished';

const temporaryPattern = /^(?:journal-(\d{1,15})\.(?:jsonl|torn)|[a-z][a-z0-9-]{0,62}\.json\.(\d{1,15})|reserve)\.tmp$/;

/** A frozen process may wake and publish a journal that it had begun: the number of that one counts, too. */
export function highestJournal(names: readonly string[]): number {
  const begun = names.map((name) => Number(temporaryPattern.exec(name)?.slice(1).join('') ?? 0));
  return Math.max(...journalNumbers(names), ...begun, 0);
}

/**
 * Reads the snapshots into `tables`, to which it adds the carried collections, and finds the journals that are needed.
 * @throws StoreDamageError
 */
export async function findStore(files: Files, tables: Map<string, AnyTable>) {
  const names = await files.list();
  if (names.includes(unfinishedName)) {
    throw new StoreDamageError('N3', unfinishedName, 0, 'a restore or a backup was cut short: empty the directory');
  }
  const numbers = journalNumbers(names);
  const temporary = names.filter((name) => temporaryPattern.test(name));
  const newest = numbers.at(-1) ?? 0;
  const strange = names.find((name) => highestJournal([name]) >= 1e14);
  if (strange !== undefined) throw new StoreDamageError('J11', strange, 0, 'no store comes to that number: move it');
  // It was published, and its name synced, before a snapshot of its view was begun.
  const begun = highestJournal(temporary.filter((name) => name.includes('.json.')));
  if (begun > newest) throw new StoreDamageError('J10', journalName(begun), 0, 'it was there, and is missing');
  const last = newest === 0 ? undefined : await JournalReader.open(files, newest);
  for (const name of last?.manifest.collections.keys() ?? []) {
    if (!tables.has(name)) tables.set(name, carriedTable(name));
  }
  const orphan = Array.from(tables.keys(), snapshotName).find((name) => names.includes(name));
  if (last === undefined && orphan !== undefined) throw new StoreDamageError('N2', orphan, 0, 'no journal beside it');
  if (last === undefined && names.includes(reserveName)) {
    throw new StoreDamageError('N4', reserveName, 0, 'the data are missing: put them back, or remove it to begin anew');
  }
  const { collections, snapshotBytes } = await readSnapshots(files, names, tables, last?.manifest);
  /** The sequence after which the journals are needed. */
  const after = Math.min(last?.manifest.after ?? 0, ...Array.from(collections.values(), ({ through }) => through));
  for (const name of tables.keys()) {
    if (!collections.has(name)) collections.set(name, { through: after, file: false, nextId: 1 });
  }
  // Without a snapshot nothing else tells that a journal was put before another store's.
  const alone = ![...collections.values()].some(({ file }) => file);
  for (const number of alone ? numbers.slice(0, -1) : []) {
    const older = await JournalReader.open(files, number).catch(() => last);
    if (older?.manifest.epoch === last?.manifest.epoch) continue;
    throw new StoreDamageError('S3', journalName(newest), 0, `its epoch is not that of ${journalName(number)}`);
  }
  const journals = last === undefined ? [] : await withPredecessors(files, numbers, last, after);
  /** To be removed once a new journal is durable. */
  const obsolete = [...numbers.map(journalName), ...temporary];
  // There is no epoch where there is no store yet.
  const epoch = last?.manifest.epoch;
  return { epoch, after, journal: highestJournal(names), collections, snapshotBytes, journals, obsolete, temporary };
}

async function readSnapshots(files: Files, names: string[], tables: Map<string, AnyTable>, manifest?: Manifest) {
  const collections = new Map<string, ListedCollection>();
  let snapshotBytes = 0;
  if (manifest === undefined) return { collections, snapshotBytes };
  for (const table of tables.values()) {
    const listed = manifest.collections.get(table.name);
    const damage = (label: string, problem: string): StoreDamageError =>
      new StoreDamageError(label, snapshotName(table.name), 0, problem);
    if (!names.includes(snapshotName(table.name))) {
      if (listed?.file === true) throw damage('S5', 'it is listed, but not there');
      if (listed !== undefined) collections.set(table.name, listed);
      continue;
    }
    const { epoch, through, nextId, bytes } = await readSnapshot(files, table);
    if (epoch !== manifest.epoch) throw damage('S3', `its epoch is ${epoch}, the journal's ${manifest.epoch}`);
    if (listed === undefined) throw damage('S3', 'the journal does not list it');
    if (through < listed.through || (manifest.closed && through > listed.through)) {
      throw damage('S5', `it goes through ${through}, not ${listed.through}`);
    }
    snapshotBytes += bytes;
    collections.set(table.name, { through, file: true, nextId });
  }
  return { collections, snapshotBytes };
}

/** The newest journal, with older ones in front until they begin at or before `after`. */
async function withPredecessors(files: Files, numbers: number[], newest: JournalReader, after: number) {
  const journals = [newest];
  let { manifest } = newest;
  while (manifest.after > after) {
    const before = manifest.predecessor?.journal ?? manifest.journal;
    if (before >= manifest.journal || !numbers.includes(before)) {
      const problem = `what was written after ${after} and before ${manifest.after} is missing`;
      throw new StoreDamageError('J7', journalName(before), 0, problem);
    }
    const journal = await JournalReader.open(files, before);
    journals.unshift(journal);
    manifest = journal.manifest;
  }
  return journals;
}

/**
 * Replays the journals upon the snapshots. `copy` takes each group that is needed, as it stood in its journal. A new
 * store was stopped well.
 * @throws StoreDamageError
 */
export async function replay(
  { journals, after, collections }: Awaited<ReturnType<typeof findStore>>,
  tables: ReadonlyMap<string, AnyTable>,
  copy: (body: LineBody) => Promise<void> = () => Promise.resolve(),
) {
  let sequence = after;
  let commits = 0;
  for (const [index, journal] of journals.entries()) {
    const damage = (label: string, offset: number, problem: string): StoreDamageError =>
      new StoreDamageError(label, journal.name, offset, problem);
    for await (const group of journal.groups()) {
      if (group.last <= after) continue;
      if (group.first <= after) throw damage('J3', group.offset, 'a snapshot ends within this group');
      await copy(group.body);
      commits += group.commits.length;
      for (const [at, commit] of group.commits.entries()) {
        for (const change of Array.isArray(commit) ? commit : [commit]) {
          const problem = applyChange(change, group.first + at, tables, collections);
          if (problem !== undefined) throw damage('J5', group.offset, problem);
        }
      }
    }
    sequence = journal.sequence;
    const successor = journals[index + 1]?.manifest;
    if (successor === undefined) break;
    if (journal.torn !== undefined) throw damage('J2', journal.torn.offset, 'this line is damaged');
    if (journal.chain !== successor.predecessor?.chain || sequence !== successor.after) {
      throw damage('J7', journal.size, `it ends at ${sequence}; its successor begins after ${successor.after}`);
    }
  }
  for (const [name, { through }] of collections) {
    if (through <= sequence) continue;
    const problem = `it goes through ${through}, the journals only through ${sequence}`;
    throw new StoreDamageError('S7', snapshotName(name), 0, problem);
  }
  const last = journals.at(-1);
  const torn = last?.torn && { ...last.torn, file: last.name };
  return { sequence, commits, closed: last?.manifest.closed ?? true, torn };
}

/** Makes one change of the commit `sequence`, unless the snapshot holds it already; says what is wrong with it. */
export function applyChange(
  change: JsonValue,
  sequence: number,
  tables: ReadonlyMap<string, AnyTable>,
  collections: ReadonlyMap<string, Pick<ListedCollection, 'through'>>,
): string | undefined {
  if (!Array.isArray(change)) return 'a change is not a pair';
  const [name, value] = change;
  const table = typeof name === 'string' ? tables.get(name) : undefined;
  const through = collections.get(table?.name ?? '')?.through;
  if (table === undefined || through === undefined) return 'it names a collection that the manifest does not list';
  if (sequence <= through) return undefined;
  const id = isJsonObject(value) ? value['id'] : value;
  if (!isCount(id)) return 'a change is neither a record nor an id';
  if (isJsonObject(value) && value['revision'] !== sequence) return 'a record does not have the revision of its commit';
  const problem = isJsonObject(value) ? table.load(value) : table.unload(id);
  table.advance(sequence, id + 1);
  return problem;
}
