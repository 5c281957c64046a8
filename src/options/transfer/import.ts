import type { Principal } from '../../auth/access.ts';
import { FatalError, type Issue } from '../../base/errors.ts';
import { pointerTo } from '../../base/json.ts';
import { recordId, type RecordId } from '../../base/record-id.ts';
import { systemClock, systemRandom } from '../../base/system.ts';
import {
  addIssues,
  issue,
  Mistakes,
  toNewRecord,
  type NewRecord,
} from '../../collections/file-records.ts';
import { singleNumber } from '../../collections/declared-rules.ts';
import type { Declared, Entry, Registry } from '../../collections/declared.ts';
import { CollectionResource } from '../../collections/resource.ts';
import { looksSame, toRepresentation } from '../../schema/record.ts';
import { estimateSize } from '../../store/memory/size.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { areRecords, describeNewIds, withUsableIds, type Named } from './declare.ts';
import { inMiB } from './file.ts';

/** The most ids for each record: a record far from all others takes 8 KiB of memory. */
const idsPerRecordMax = 64;
const idsFree = 1_000_000;

/**
 * The most text of a commit, which is written and read at once. It has room for 4 million records,
 * and a Map holds 16 million.
 */
const commitBytesMax = 256 * 1024 * 1024;
/** The text of a record in a commit, without its members and its collection's name. */
const entryBytes = 64;

interface Arrival {
  readonly collection: Declared;
  /** With their places in the file. */
  readonly records: (readonly [record: NewRecord, pointer: string])[];
  /** Counts records that get a new id, by reason. */
  readonly changed: ReadonlyMap<string, number>;
  readonly ids: Set<string>;
  highest: number;
}

interface Created {
  readonly collection: Declared;
  readonly entries: Map<Entry, string>;
}

interface Imported {
  readonly added: ReadonlyMap<string, number>;
  readonly notes: readonly string[];
}

interface Importer {
  readonly store: Store;
  readonly registry: Registry;
  readonly principal: Principal;
}

/**
 * Creates the records of a file that are not in the store, as POST does, in one transaction. They
 * keep their ids. References are checked once all records are created.
 * @throws FatalError with all mistakes, grouped by cause; CairnError as `Store.write`
 */
export function importMembers(
  file: string,
  members: readonly Named[],
  { store, registry, principal }: Importer,
): Promise<Imported> {
  const invalid = new Mistakes();
  const arrivals = members.flatMap((member) => readMember(member, registry, invalid));
  for (const { collection, records, highest } of arrivals) {
    if (collection.ids === undefined && isFar(highest, records.length))
      invalid.add(`${collection.name}: the ids lie too far apart`, `the highest is ${highest}`);
  }
  return store.write((tx) => {
    const { memoryBytes, memoryMaxBytes } = store.status();
    const mistakes = new Mistakes();
    const all = arrivals.map((arrival) => createRecords(tx, principal, arrival, mistakes));
    // Records with mistakes are missing, so references to them would look wrong as well.
    if (invalid.lines.length === 0 && mistakes.lines.length === 0)
      for (const created of all) checkReferences(tx, principal, created, mistakes);
    const left = Math.max(0, memoryMaxBytes - memoryBytes);
    const problems = [...invalid.lines, ...mistakes.lines, ...lackOfRoom(all, left)];
    if (problems.length > 0) {
      const text = `Cannot import ${file}, and nothing was written:\n  ${problems.join('\n  ')}`;
      throw new FatalError(65, text);
    }
    const added = all.filter(({ entries }) => entries.size > 0);
    const changed = arrivals.flatMap((each) => describeNewIds(each.collection.name, each.changed));
    return {
      added: new Map(added.map(({ collection, entries }) => [collection.name, entries.size])),
      notes: [...changed, ...arrivals.flatMap(addedAgain)],
    };
  });
}

function readMember(
  { name: usable, given, value }: Named,
  registry: Registry,
  mistakes: Mistakes,
): Arrival[] {
  const collection = registry.get(given) ?? registry.get(usable);
  if (collection === undefined) {
    mistakes.add(`${given}: no declaration covers it; use --collections`, pointerTo(given));
    return [];
  }
  const { name, ids, isSingle } = collection;
  const sent = isSingle ? [value] : value;
  if (!Array.isArray(sent)) {
    mistakes.add(`${given}: it must be an array of records`, pointerTo(given));
    return [];
  }
  const { records, changed } =
    ids === 'any' && areRecords(sent) ? withUsableIds(sent) : { records: sent, changed: new Map() };
  const seen = new Set<string>();
  const arrival: Arrival = { collection, records: [], changed, ids: seen, highest: 0 };
  for (const [index, one] of records.entries()) {
    const pointer = pointerTo(given) + (isSingle ? '' : `/${index}`);
    addIssues(mistakes, name, pointer, () => {
      const record = toNewRecord(collection, one);
      const id = isSingle ? recordId(singleNumber) : record.id;
      if (id !== undefined && seen.size === seen.add(String(id)).size)
        throw issue('/id', 'must be unique, but another record in the file has it');
      if (isNumber(id)) arrival.highest = Math.max(arrival.highest, id);
      arrival.records.push([{ ...record, id }, pointer]);
    });
  }
  return [arrival];
}

/** Creates records that are not in the store. They may refer to later ones. */
function createRecords(
  tx: Transaction,
  principal: Principal,
  arrival: Arrival,
  mistakes: Mistakes,
): Created {
  const { collection, records } = arrival;
  const { name, fields, ids, timestamps, isSingle } = collection;
  const tools = { clock: systemClock, random: systemRandom };
  const resource = new CollectionResource({ ...collection, references: undefined }, tools);
  const entries = new Map<Entry, string>();
  const create = ({ id, fields: sent }: NewRecord, isLast: boolean): Entry | undefined => {
    const known = id === undefined ? undefined : collection.records.withId(id);
    if (known !== undefined) {
      if (looksSame(fields, known, sent)) return undefined;
      throw isSingle
        ? issue('', 'must be as it is in the store')
        : issue('/id', 'must be unique, but another record in the store has it');
    }
    const input = timestamps ? withTimes(sent) : sent;
    const withId = ids === undefined || id === undefined ? input : { id, ...input };
    return resource.insert(tx, principal, withId, chooseNumber(tx, arrival, id, isLast));
  };
  for (const [index, [record, pointer]] of records.entries()) {
    const work = (): void => {
      const entry = create(record, index === records.length - 1);
      if (entry !== undefined) entries.set(entry, pointer);
    };
    addIssues(mistakes, name, pointer, work, describeDuplicate);
  }
  return { collection, entries };
}

const describeDuplicate = (issue: Issue): Issue =>
  issue.code === 'not_unique' ? { ...issue, detail: 'must be unique' } : issue;

/** Sets both times of a record if the file has one. */
function withTimes({ createdAt, updatedAt, ...others }: NewRecord['fields']): NewRecord['fields'] {
  const created = createdAt ?? updatedAt;
  if (created === undefined) return others;
  return { ...others, createdAt: created, updatedAt: updatedAt ?? created };
}

const isNumber = (id: RecordId | undefined): id is RecordId & number =>
  typeof id === 'number' && Number.isInteger(id) && id > 0 && id < 2 ** 52;

/** True if the numbers of this many records, up to `highest`, would take too much memory. */
const isFar = (highest: number, count: number): boolean =>
  highest > idsFree + count * idsPerRecordMax;

/**
 * Returns the number of a new record: its id, if the order of the file stays, or else the next one.
 * A record without an id gets its number as the id, which the file must not give to another. The
 * last number is at least the highest id, so that later ids are higher.
 */
function chooseNumber(
  tx: Transaction,
  { collection, records, ids, highest }: Arrival,
  id: RecordId | undefined,
  isLast: boolean,
): number {
  const table = tx.of(collection.records);
  const { nextId } = table;
  const areNumbers = collection.ids === undefined;
  if (isNumber(id) && (areNumbers || (id >= nextId && !isFar(id, records.length)))) return id;
  let number = areNumbers || isLast ? Math.max(nextId, highest) : nextId;
  const isTaken = (): boolean =>
    ids.has(String(number)) || table.withId(recordId(number)) !== undefined;
  while (id === undefined && isTaken()) number += 1;
  return number;
}

function checkReferences(
  tx: Transaction,
  principal: Principal,
  { collection, entries }: Created,
  mistakes: Mistakes,
): void {
  const { name, outgoing, references } = collection;
  const describe = (issue: Issue): Issue => {
    const reference = outgoing.find(({ name }) =>
      `${issue.pointer}/`.startsWith(`${pointerTo(name)}/`),
    );
    if (reference === undefined) return issue;
    const detail = `must be the id of one of the ${reference.to.name}`;
    return { ...issue, pointer: pointerTo(reference.name), detail };
  };
  for (const [entry, pointer] of outgoing.length > 0 ? entries : []) {
    const check = (): void => references?.check(tx, principal, collection, entry);
    addIssues(mistakes, name, pointer, check, describe);
  }
}

/** The created records must fit into one commit, and into memory. */
function lackOfRoom(all: readonly Created[], left: number): string[] {
  let bytes = 0;
  let memoryBytes = 0;
  for (const { collection, entries } of all) {
    for (const entry of entries.keys()) {
      bytes += Buffer.byteLength(JSON.stringify(entry)) + collection.name.length + entryBytes;
      memoryBytes += estimateSize(entry);
    }
  }
  const problems: string[] = [];
  if (bytes > commitBytesMax) {
    const most = `at most ${inMiB(commitBytesMax)} of records are written at once`;
    problems.push(`${most}, and it has ${inMiB(bytes)}: split it`);
  }
  if (memoryBytes > left) {
    const figures = `take at least ${inMiB(memoryBytes)} of memory, and ${inMiB(left)} are left`;
    problems.push(`the records ${figures}: split it, or raise --memory-max`);
  }
  return problems;
}

/** Counts records without ids that equal stored ones: the file was probably imported before. */
function addedAgain({ collection, records }: Arrival): string[] {
  const { name, fields, timestamps, isSingle } = collection;
  const news = records.filter(([{ id }]) => id === undefined);
  if (isSingle || news.length === 0 || collection.records.size === 0) return [];
  const writeForComparison = (record: object): string => {
    const { id, createdAt, updatedAt, ...values } = toRepresentation(fields, record);
    return JSON.stringify(timestamps ? values : { ...values, createdAt, updatedAt });
  };
  const stored = new Set(collection.records.view().blocks.flat().map(writeForComparison));
  const again = news.filter(([record]) => stored.has(writeForComparison(record.fields))).length;
  if (again === 0) return [];
  const [have, were] = again === 1 ? ['record has', 'was'] : ['records have', 'were'];
  const count = again.toLocaleString('en');
  const advice = 'give ids, so that a file can be imported twice';
  return [`${name}: ${count} ${have} no id, and ${were} added again next to equal ones; ${advice}`];
}
