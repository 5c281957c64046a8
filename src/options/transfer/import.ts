import { FatalError } from '../../base/errors.ts';
import { pointerTo, type JsonValue } from '../../base/json.ts';
import { idOf, recordId, storedKey, type RecordId } from '../../base/record-id.ts';
import { systemClock, systemRandom } from '../../base/system.ts';
import { uuid7 } from '../../base/uuid.ts';
import {
  addIssues,
  issue,
  Mistakes,
  recordOf,
  type NewRecord,
} from '../../collections/file-records.ts';
import {
  idsIn,
  makesTexts,
  singleNumber,
  type Declared,
  type KeyOf,
  type Registry,
  type Target,
} from '../../collections/registry.ts';
import { checkSize } from '../../collections/size.ts';
import { looksSame, representationOf } from '../../schema/record.ts';
import { sizeOf } from '../../store/memory/size.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { inMiB } from './file.ts';
import { areRecords, withUsableIds, type Named } from './declare.ts';

/** How far ids may lie apart: a record far from all others takes 8 KiB of memory. */
const idsPerRecordMax = 64;
const idsFree = 1_000_000;

/**
 * The most text of a commit, which is written and read at once. It has room for 4 million records,
 * of which a Map takes 16 million.
 */
const commitBytesMax = 256 * 1024 * 1024;
/** What a record has in a commit beside its own members and the name of its collection. */
const entryBytes = 64;

/** What the file has for one collection. */
export interface Arrival {
  readonly collection: Declared;
  /** How many records get another id, by what is wrong with theirs. */
  readonly changed: ReadonlyMap<string, number>;
  /** Those that are not in the store. One that is there already is as the file has it. */
  readonly records: NewRecord[];
  /** The ids that the file gives, by their texts. */
  readonly ids: Map<string, RecordId>;
  /** The highest of them that can be the number of a record. */
  highest: number;
  /** The keys of each field with unique values. */
  readonly keys: readonly (readonly [field: string, keyOf: KeyOf, seen: Set<string>])[];
  /** For each reference, the ids that it has, each with its first place. */
  readonly references: readonly (readonly [field: string, to: Target, Map<RecordId, string>])[];
}

/** What an import needs of a store. */
interface Destination {
  readonly store: Store;
  readonly registry: Registry;
}

/**
 * Validates every record of a file: by itself, beside the others, and beside those of the store.
 * @throws FatalError with all mistakes, grouped by cause
 */
export function checkMembers(
  file: string,
  members: readonly Named[],
  destination: Destination,
): readonly Arrival[] {
  const mistakes = new Mistakes();
  const arrivals: Arrival[] = [];
  for (const { name, given, value } of members) {
    const collection = destination.registry.get(given) ?? destination.registry.get(name);
    if (collection === undefined) {
      mistakes.add(`${given}: no declaration covers it; use --collections`, pointerTo(given));
    } else if (collection.isSingle) {
      arrivals.push(arrivalOf(collection, given, [value], mistakes));
    } else if (!Array.isArray(value)) {
      mistakes.add(`${given}: it must be an array of records`, pointerTo(given));
    } else arrivals.push(arrivalOf(collection, given, value, mistakes));
  }
  let bytes = 0;
  let memoryBytes = 0;
  for (const { collection, records, ids, highest } of arrivals) {
    const { name } = collection;
    for (const { fields } of records) {
      bytes += Buffer.byteLength(JSON.stringify(fields)) + name.length + entryBytes;
      memoryBytes += sizeOf({ id: 0, revision: 0, ownerId: 0, ...fields });
    }
    if (collection.ids === undefined && isFar(highest, Math.max(records.length, ids.size)))
      mistakes.add(`${name}: the ids lie too far apart`, `the highest is ${highest}`);
  }
  // Records with mistakes have no ids, so references to them would look wrong, too.
  for (const { collection, references } of mistakes.lines.length === 0 ? arrivals : []) {
    for (const [field, to, places] of references) {
      const target = arrivals.find((each) => each.collection.name === to.name);
      for (const [id, pointer] of places) {
        const stored = to.records.withId(id);
        if (target?.ids.get(String(id)) === id || (stored && idOf(stored) === id)) continue;
        const { name } = collection;
        mistakes.add(`${name}: ${field} must be the id of one of the ${to.name}`, pointer);
      }
    }
  }
  const problems = [...mistakes.lines];
  if (bytes > commitBytesMax) {
    const most = `at most ${inMiB(commitBytesMax)} of records are written at once`;
    problems.push(`${most}, and it has ${inMiB(bytes)}: split it`);
  }
  const { memoryBytes: inUse, memoryMaxBytes } = destination.store.status();
  const left = Math.max(0, memoryMaxBytes - inUse);
  if (memoryBytes > left) {
    const figures = `take at least ${inMiB(memoryBytes)} of memory, and ${inMiB(left)} are left`;
    problems.push(`the records ${figures}: split it, or raise --memory-max`);
  }
  if (problems.length === 0) return arrivals;
  const text = `Cannot import ${file}, and nothing was written:\n  ${problems.join('\n  ')}`;
  throw new FatalError(65, text);
}

/** Checks the records of one collection, and adds their mistakes to the others. */
function arrivalOf(
  collection: Declared,
  given: string,
  sent: readonly JsonValue[],
  mistakes: Mistakes,
): Arrival {
  const { name, ids, unique, outgoing } = collection;
  const { records: values, changed } =
    ids === 'any' && areRecords(sent) ? withUsableIds(sent) : { records: sent, changed: new Map() };
  const arrival: Arrival = {
    collection,
    changed,
    records: [],
    ids: new Map(),
    highest: 0,
    keys: unique.map(([field, keyOf]) => [field, keyOf, new Set()]),
    references: outgoing.map(({ name, to }) => [name, to, new Map()]),
  };
  for (const [index, value] of values.entries()) {
    const pointer = pointerTo(given) + (collection.isSingle ? '' : `/${index}`);
    addIssues(mistakes, name, pointer, () => {
      const record = recordOf(collection, value);
      const id = collection.isSingle ? recordId(singleNumber) : record.id;
      register(arrival, { ...record, id }, pointer);
    });
  }
  return arrival;
}

/**
 * Counts a record in.
 * @throws CairnError `validation_failed` where another record has its id, or a value that is unique
 */
function register(arrival: Arrival, record: NewRecord, pointer: string): void {
  const { collection, records, ids, keys, references } = arrival;
  const { id, fields } = record;
  const known = id === undefined ? undefined : collection.records.withId(id);
  if (known !== undefined && !looksSame(collection.fields, known, fields)) {
    if (collection.isSingle) throw issue('', 'must be as it is in the store');
    throw issue('/id', 'must be that of no other record in the store');
  }
  if (id !== undefined && ids.has(String(id))) {
    throw issue('/id', 'must be that of no other record in the file');
  }
  for (const [field, keyOf, seen] of keys) {
    const key = keyOf(fields);
    if (key === undefined) continue;
    const holder = collection.records.find(field, key);
    if (seen.has(key) || (holder !== undefined && holder !== known)) {
      throw issue(pointerTo(field), 'must be unique');
    }
    seen.add(key);
  }
  for (const [field, , places] of references) {
    for (const target of [idsIn(fields, field) ?? []].flat()) {
      if (!places.has(target)) places.set(target, pointer + pointerTo(field));
    }
  }
  if (id !== undefined) ids.set(String(id), id);
  if (isNumber(id)) arrival.highest = Math.max(arrival.highest, id);
  if (known !== undefined) return;
  checkSize(collection.fields, fields, collection.recordBytesMax);
  records.push(record);
}

/**
 * Says of which records without ids the store has others with the same values: the file was probably
 * imported before.
 */
export function addedAgain(arrivals: readonly Arrival[]): string[] {
  return arrivals.flatMap(({ collection, records }) => {
    const { name, fields, timestamps } = collection;
    const news = records.filter(({ id }) => id === undefined);
    if (collection.isSingle || news.length === 0 || collection.records.size === 0) return [];
    const textOf = (record: object): string => {
      const { id, createdAt, updatedAt, ...values } = representationOf(fields, record);
      return JSON.stringify(timestamps ? values : { ...values, createdAt, updatedAt });
    };
    const stored = new Set(collection.records.view().blocks.flat().map(textOf));
    const again = news.filter((record) => stored.has(textOf(record.fields))).length;
    if (again === 0) return [];
    const [have, were] = again === 1 ? ['record has', 'was'] : ['records have', 'were'];
    const count = again.toLocaleString('en');
    const advice = 'give ids, so that a file can be imported twice';
    return `${name}: ${count} ${have} no id, and ${were} added again beside equal ones; ${advice}`;
  });
}

/** Whether an id can be the number of a record. */
const isNumber = (id: RecordId | undefined): id is RecordId & number =>
  typeof id === 'number' && Number.isInteger(id) && id > 0 && id < 2 ** 52;

/** Whether the numbers of as many records, up to this one, would take too much memory. */
const isFar = (highest: number, count: number): boolean =>
  highest > idsFree + count * idsPerRecordMax;

/**
 * Yields the records with their numbers, in the order of the file. Where ids can be the numbers,
 * they are; else the last record has the highest of them, so that ids made later are higher.
 */
function* numbered({ collection, records, ids, highest }: Arrival): Generator<[NewRecord, number]> {
  const { nextId } = collection.records;
  const isTaken = (id: number): boolean =>
    ids.has(String(id)) || collection.records.withId(recordId(id)) !== undefined;
  let last = nextId - 1;
  const areNumbers =
    !isFar(highest, records.length) &&
    records.every(({ id }) => {
      const isNext = isNumber(id) && id > last;
      if (isNext) last = id;
      return isNext;
    });
  let next = nextId;
  if (collection.ids === undefined) next = Math.max(highest + 1, nextId);
  for (const [index, record] of records.entries()) {
    const { id } = record;
    const isLast = index === records.length - 1;
    if (isNumber(id) && (areNumbers || collection.ids === undefined)) {
      yield [record, id];
      continue;
    }
    if (isLast && collection.ids !== undefined) next = Math.max(next, highest);
    while (id === undefined && isTaken(next)) next += 1;
    yield [record, next];
    next += 1;
  }
}

/** Returns the function of the member for an id that is not the number of its record. */
function keysOf({ collection, ids }: Arrival) {
  const areTexts = makesTexts(collection) || [...ids.values()].some((id) => typeof id === 'string');
  return ({ id }: NewRecord, number: number) => {
    const made = areTexts ? uuid7(systemClock.now(), systemRandom) : number;
    return storedKey(id ?? recordId(made), number);
  };
}

/** Writes all new records in one commit, and returns their numbers. */
export async function writeArrivals(
  arrivals: readonly Arrival[],
  { store }: Destination,
  ownerId: number,
): Promise<ReadonlyMap<string, number>> {
  const news = arrivals.filter(({ records }) => records.length > 0);
  const insertAll = (transaction: Transaction): void => {
    for (const arrival of news) {
      const { collection } = arrival;
      const records = transaction.of(collection.records);
      const keyOf = keysOf(arrival);
      for (const [record, number] of numbered(arrival)) {
        const key = keyOf(record, number);
        records.insert({ ownerId, ...key, ...withTimes(collection, record.fields) }, number);
      }
    }
  };
  if (news.length > 0) await store.write(insertAll);
  return new Map(news.map(({ collection, records }) => [collection.name, records.length]));
}

function withTimes({ timestamps }: Declared, fields: NewRecord['fields']) {
  if (!timestamps) return fields;
  const now = new Date(systemClock.now()).toISOString();
  const { createdAt = fields['updatedAt'] ?? now, updatedAt = createdAt, ...others } = fields;
  return { ...others, createdAt, updatedAt };
}
