/**
 * What a start makes of the files it finds. Nothing here writes: `FileJournal` does, from what is decided here, and so
 * do `check` and `repair`.
 *
 *   case  what is found                                              what is done
 *   ----  ---------------------------------------------------------  --------------------------------------------
 *   N1    no journal and no snapshot: absent or empty directory       a new store with a new epoch
 *   N2    snapshots without a journal                                 refused: their journal is missing
 *   S1    a snapshot is damaged                                       refused
 *   S2    a snapshot is well-formed, but its digest differs           refused as edited; `repair` accepts it
 *   S3    a snapshot of another epoch                                 refused: it belongs to another store
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
 *   L1    temporary files                                             left out; removed after the start
 *   L2    files that the store never makes                            left alone
 *   C1    a collection that the program does not register             carried along as it is
 *   C2    a registered collection that is new                         empty; the next manifest lists it
 */
import { isJsonObject, type JsonValue } from '../base/json.ts';
import { StoreDamageError } from './failures.ts';
import type { Files } from './files.ts';
import { journalName, journalNumber, type LineBody, type ListedCollection, type Manifest } from './journal-format.ts';
import { type GroupLine, JournalReader, type TornTail } from './journal-reader.ts';
import { readSnapshot, snapshotCollection, snapshotName } from './snapshot.ts';
import { type AnyTable, carriedTable, isCount } from './table.ts';

export interface Recovered {
  /** `undefined` for a new store. */
  readonly epoch: string | undefined;
  /** Of the last commit. */
  readonly sequence: number;
  /** The highest number that a journal has or was about to have; 0 without one. */
  readonly journal: number;
  /** Every collection, the carried ones included. */
  readonly collections: Map<string, ListedCollection>;
  readonly snapshotBytes: number;
  readonly replayedCommits: number;
  /** Whether the last stop was clean. True for a new store. */
  readonly closed: boolean;
  readonly torn: TornTail | undefined;
  /** Files of earlier journals and temporary files, to be removed once a new journal is durable. */
  readonly obsolete: readonly string[];
}

/** Takes each replayed group, as it stood in its journal. */
export type Replay = (body: LineBody) => Promise<void>;

/** The sequence after which the journals are needed, known before the first call of `Replay`. */
export type BeforeReplay = (
  after: number,
  found: Pick<Manifest, 'epoch' | 'journal' | 'collections'>,
) => Promise<Replay>;

const temporaryPattern = /^(?:journal-(\d{1,15})\.(?:jsonl|torn)|[a-z][a-z0-9-]{0,62}\.json\.\d{1,15}|reserve)\.tmp$/;

/**
 * Reads everything into `tables` (to which it adds the carried collections) and decides by the table above.
 * @throws StoreDamageError
 */
export async function recover(
  files: Files,
  tables: Map<string, AnyTable>,
  beforeReplay: BeforeReplay = () => Promise.resolve(() => Promise.resolve()),
): Promise<Recovered> {
  const names = await files.list();
  const numbers = names.flatMap((name) => journalNumber(name) ?? []).sort((a, b) => a - b);
  const temporary = names.filter((name) => temporaryPattern.test(name));
  const obsolete = [...numbers.map(journalName), ...temporary];
  const newest = numbers.at(-1);
  // A frozen process may wake and publish a journal that it had begun: its number is never used again.
  const highest = Math.max(newest ?? 0, ...temporary.map((name) => Number(temporaryPattern.exec(name)?.[1] ?? 0)));
  if (newest === undefined) return { ...newStore(names, tables), obsolete, journal: highest };

  const journals = [await JournalReader.open(files, newest)];
  const first = journals[0]?.manifest;
  if (first === undefined) throw new StoreDamageError('J9', 'damaged', journalName(newest), 0, 'it has no first line');
  for (const name of first.collections.keys()) {
    if (!tables.has(name)) tables.set(name, carriedTable(name));
  }
  const { collections, snapshotBytes } = await readSnapshots(files, tables, first);
  const after = Math.min(first.after, ...Array.from(collections.values(), ({ through }) => through));
  for (const name of tables.keys()) if (!collections.has(name)) collections.set(name, { through: after, file: false });
  await addPredecessors(files, journals, after);
  const replay = await beforeReplay(after, { epoch: first.epoch, journal: highest, collections });
  const end = await replayAll(journals, after, tables, collections, replay);
  for (const [name, { through }] of collections) {
    if (through <= end.sequence) continue;
    const problem = `it goes through ${through}, the journals only through ${end.sequence}`;
    throw new StoreDamageError('S7', 'missing', snapshotName(name), 0, problem);
  }
  const { epoch } = first;
  return { epoch, journal: highest, collections, snapshotBytes, obsolete, ...end };
}

function newStore(
  names: readonly string[],
  tables: ReadonlyMap<string, AnyTable>,
): Omit<Recovered, 'obsolete' | 'journal'> {
  const orphan = names.find((name) => tables.has(snapshotCollection(name) ?? ''));
  if (orphan !== undefined) {
    throw new StoreDamageError('N2', 'missing', orphan, 0, 'there is a snapshot, but no journal beside it');
  }
  const collections = new Map(Array.from(tables.keys(), (name) => [name, { through: 0, file: false }] as const));
  const rest = { snapshotBytes: 0, replayedCommits: 0, closed: true, torn: undefined };
  return { epoch: undefined, sequence: 0, collections, ...rest };
}

async function readSnapshots(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
  manifest: Manifest,
): Promise<{ collections: Map<string, ListedCollection>; snapshotBytes: number }> {
  const collections = new Map<string, ListedCollection>();
  let snapshotBytes = 0;
  for (const table of tables.values()) {
    const name = snapshotName(table.name);
    const listed = manifest.collections.get(table.name);
    const snapshot = await readSnapshot(files, table);
    if (snapshot === undefined) {
      if (listed?.file === true) throw new StoreDamageError('S5', 'missing', name, 0, 'it is listed, but not there');
      if (listed !== undefined) collections.set(table.name, listed);
      continue;
    }
    const { epoch, through } = snapshot.header;
    if (epoch !== manifest.epoch) {
      throw new StoreDamageError('S3', 'foreign', name, 0, `its epoch is ${epoch}, the journal's ${manifest.epoch}`);
    }
    if (listed === undefined) throw new StoreDamageError('S3', 'foreign', name, 0, 'the journal does not list it');
    if (through < listed.through || (manifest.closed && through > listed.through)) {
      throw new StoreDamageError('S5', 'missing', name, 0, `it goes through ${through}, not ${listed.through}`);
    }
    snapshotBytes += snapshot.bytes;
    collections.set(table.name, { through, file: true });
  }
  return { collections, snapshotBytes };
}

/** Puts the older journals that are needed in front, so that what is left begins at or before `after`. */
async function addPredecessors(files: Files, journals: JournalReader[], after: number): Promise<void> {
  for (;;) {
    const manifest = journals[0]?.manifest;
    if (manifest === undefined || manifest.after <= after) return;
    const { predecessor } = manifest;
    const name = journalName(predecessor?.journal ?? manifest.journal);
    const missing = `what was written after ${after} and before ${manifest.after} is missing`;
    if (predecessor === undefined) throw new StoreDamageError('J7', 'missing', name, 0, missing);
    if (!(await files.list()).includes(name)) throw new StoreDamageError('J7', 'missing', name, 0, missing);
    journals.unshift(await JournalReader.open(files, predecessor.journal));
  }
}

async function replayAll(
  journals: readonly JournalReader[],
  after: number,
  tables: ReadonlyMap<string, AnyTable>,
  collections: ReadonlyMap<string, ListedCollection>,
  replay: Replay,
): Promise<Pick<Recovered, 'sequence' | 'replayedCommits' | 'closed' | 'torn'>> {
  let sequence = after;
  let replayedCommits = 0;
  for (const [index, journal] of journals.entries()) {
    const successor = journals[index + 1]?.manifest;
    for await (const group of journal.groups()) {
      if (group.last <= after) continue;
      if (group.first <= after) {
        throw new StoreDamageError('J3', 'damaged', journal.name, group.offset, `a snapshot ends within this group`);
      }
      await replay(group.body);
      replayedCommits += group.commits.length;
      const problem = applyGroup(group, tables, collections);
      if (problem !== undefined) throw new StoreDamageError('J5', 'damaged', journal.name, group.offset, problem);
    }
    sequence = journal.sequence;
    if (successor === undefined) break;
    if (journal.torn !== undefined) {
      throw new StoreDamageError('J2', 'damaged', journal.name, journal.torn.offset, 'this line is damaged');
    }
    if (journal.chain !== successor.predecessor?.chain || sequence !== successor.after) {
      const problem = `it ends at ${sequence}; its successor begins after ${successor.after}`;
      throw new StoreDamageError('J7', 'missing', journal.name, journal.size, problem);
    }
  }
  const last = journals.at(-1);
  return { sequence, replayedCommits, closed: last?.manifest.closed ?? false, torn: last?.torn };
}

/** Applies one group to every collection that its snapshot does not hold already; says what does not fit. */
function applyGroup(
  group: GroupLine,
  tables: ReadonlyMap<string, AnyTable>,
  collections: ReadonlyMap<string, ListedCollection>,
): string | undefined {
  for (const [index, commit] of group.commits.entries()) {
    if (!Array.isArray(commit)) return 'a commit is not a list of changes';
    for (const change of commit) {
      const problem = applyChange(change, group.first + index, tables, collections);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function applyChange(
  change: JsonValue,
  sequence: number,
  tables: ReadonlyMap<string, AnyTable>,
  collections: ReadonlyMap<string, ListedCollection>,
): string | undefined {
  if (!Array.isArray(change)) return 'a change is not a pair';
  const [name, value] = change;
  const table = typeof name === 'string' ? tables.get(name) : undefined;
  const through = collections.get(table?.name ?? '')?.through;
  if (table === undefined || through === undefined) return 'it names a collection that the manifest does not list';
  if (sequence <= through) return undefined;
  if (isCount(value)) {
    const problem = table.unload(value);
    table.advance(sequence, value + 1);
    return problem;
  }
  if (!isJsonObject(value)) return 'a change is neither a record nor an id';
  if (value['revision'] !== sequence) return 'a record does not have the revision of its commit';
  const problem = table.load(value);
  if (problem !== undefined) return problem;
  table.advance(sequence, isCount(value['id']) ? value['id'] + 1 : 0);
  return undefined;
}
