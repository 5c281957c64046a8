import { openData, type Data } from '../app/data.ts';
import { completeOptions } from '../app/options.ts';
import { CairnError, FatalError } from '../base/errors.ts';
import { isScalar, pointerTo, type JsonObject, type JsonValue, type Scalar } from '../base/json.ts';
import { systemClock } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import { servedCollections, type Declarations } from '../collections/declaration-file.ts';
import { idsIn, referencesOf, type Entry } from '../collections/references.ts';
import { uniqueFields, type CollectionResource, type KeyOf } from '../collections/resource.ts';
import { clusterOptions, flagOnly, option, OptionError, options, text } from '../config/options.ts';
import { silentLog } from '../log/log.ts';
import { storedRecordParser, validateBody } from '../schema/validate.ts';
import { emailKey, type Value } from '../schema/field.ts';
import { looksSame, representationWriter } from '../schema/record.ts';
import { hasType, ruleViolation } from '../schema/kinds.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { HeapWatch } from '../store/memory/heap.ts';
import { readCopy } from '../store/recovery/offline.ts';
import { dataDirectory, declarationsOf, type Call, type Command } from './command.ts';
import { offlineOptions } from './data.ts';
import { Mistakes, numberOf, readRecords, type FileRecord } from './json-file.ts';
import { progressOf } from './progress.ts';

const owner = flagOnly(
  option(
    'owner',
    'e-mail address of the user who owns the records; without it only administrators change them',
    text('EMAIL'),
    undefined,
  ),
);

/** Commands that bring collections in from a file, and out to one. */
export const transferCommands: readonly Command[] = [
  {
    name: 'import',
    summary: 'Adds the records of a file such as json-server has, all or none, and keeps their ids',
    operands: ['FILE'],
    options: [options.directory, options.collections, owner],
    run: importFile,
  },
  {
    name: 'export',
    summary: 'Prints all collections but users as such a file; also beside a running server',
    options: [options.directory, options.collections],
    run: exportAll,
  },
];

/** How far ids may lie apart: a record far from all others takes 8 KiB of memory. */
const idsPerRecordMax = 64;
const idsFree = 1_000_000;

/** A Map or a Set has 2^24 entries at most. */
const recordsMax = 16_000_000;

/** What the file has for one collection. */
interface Arrival {
  readonly declaration: CollectionDeclaration;
  readonly ids: Set<number>;
  /** The records without an id. */
  unnumbered: number;
  highest: number;
  /** The keys of each field whose values are unique. */
  readonly keys: readonly (readonly [field: string, keyOf: KeyOf, seen: Set<string>])[];
  /** For each reference, the ids that it has, each with its first place. */
  readonly references: readonly (readonly [field: string, to: string, Map<number, string>])[];
}

/** A record as it will be stored, apart from its owner. */
interface NewRecord {
  readonly id: number | undefined;
  readonly fields: { readonly [name: string]: Value };
}

async function importFile(call: Call): Promise<void> {
  const {
    terminal,
    operands: [file = ''],
  } = call;
  refuseCluster(call, 'import into a directory, and "cairn restore" that to a new cluster');
  const declarations = await declarationsOf(call.read(options.collections));
  const declared = declaredOf(declarations);
  const message = (_level: string, line: string): void => terminal.err(`${line}\n`);
  const directory = call.read(options.directory);
  const log = { ...silentLog, message };
  const data = openData(completeOptions({ directory, ...declarations, log }));
  let highest: ReadonlyMap<string, number> | undefined;
  if (!(await data.store.exists())) {
    // A mistake makes no store. Without one, no user can be the owner.
    ownerOf(data, call.read(owner));
    highest = await check(call, file, declared);
  }
  await data.store.start();
  try {
    const ownerId = ownerOf(data, call.read(owner));
    highest ??= await check(call, file, declared, data);
    const added = await write(call, file, data, ownerId, highest);
    for (const [name, count] of added) {
      const records = count === 1 ? '1 record' : `${count.toLocaleString('en')} records`;
      terminal.out(`${name}: ${records} added\n`);
    }
    if (added.size === 0) terminal.out('Nothing in the file is new\n');
  } finally {
    await data.store.close();
  }
}

function declaredOf(declarations: Partial<Declarations>) {
  return new Map(servedCollections(declarations).map((each) => [each.name, each]));
}

/**
 * Validates every record of a file: by itself, beside the others, and beside those of a store.
 * Returns the highest id of each collection.
 * @throws FatalError with all mistakes, grouped by cause
 */
async function check(
  { terminal }: Call,
  file: string,
  declared: ReadonlyMap<string, CollectionDeclaration>,
  data?: Data,
): Promise<ReadonlyMap<string, number>> {
  const arrivals = new Map<string, Arrival>();
  const mistakes = new Mistakes();
  const { onProgress, done } = progressOf(terminal, `checking ${file}`);
  for await (const records of withinMemory(file, readRecords(file, onProgress))) {
    for (const { collection, pointer, record, problem } of records) {
      const declaration = declared.get(collection);
      if (declaration === undefined) {
        mistakes.add(`${collection}: no declaration covers it; use --collections`, pointer);
        continue;
      }
      if (record === undefined) {
        if (problem !== undefined) mistakes.add(`${collection}: ${problem}`, pointer);
        continue;
      }
      const arrival = arrivals.get(collection) ?? newArrival(declaration);
      arrivals.set(collection, arrival);
      try {
        register(arrival, recordOf(declaration, record), pointer, data);
      } catch (error) {
        if (!(error instanceof CairnError) || error.issues === undefined) throw error;
        for (const { pointer: member, detail } of error.issues) {
          mistakes.add(`${collection}: ${member.slice(1)} ${detail}`, pointer + member);
        }
      }
    }
  }
  done();
  for (const [name, { ids, unnumbered, highest }] of arrivals) {
    if (highest <= idsFree + (ids.size + unnumbered) * idsPerRecordMax) continue;
    mistakes.add(`${name}: the ids lie too far apart`, `the highest is ${highest}`);
  }
  // Records with mistakes have no ids, so references to them would look wrong, too.
  for (const [name, { references }] of mistakes.lines.length === 0 ? arrivals : []) {
    for (const [field, to, ids] of references) {
      for (const [id, pointer] of ids) {
        if (arrivals.get(to)?.ids.has(id) || (data && existing(data, to, id))) continue;
        mistakes.add(`${name}: ${field} must be the id of one of the ${to}`, pointer);
      }
    }
  }
  refuse(file, mistakes);
  return new Map(Array.from(arrivals, ([name, { highest }]) => [name, highest]));
}

/** Passes records on. @throws FatalError where there are more than the memory holds */
async function* withinMemory(
  file: string,
  all: AsyncIterable<FileRecord[]>,
): AsyncGenerator<FileRecord[]> {
  const watch = new HeapWatch(() => undefined);
  watch.start();
  let count = 0;
  try {
    for await (const records of all) {
      count += records.length;
      if (count > recordsMax || watch.isFull) {
        const problem = `over ${count.toLocaleString('en')} records do not fit into memory`;
        const remedy = 'split it, or give Node.js more by NODE_OPTIONS=--max-old-space-size=…';
        throw new FatalError(74, `Cannot import ${file}: ${problem}; ${remedy}`);
      }
      yield records;
    }
  } finally {
    watch.stop();
  }
}

const newArrival = (declaration: CollectionDeclaration): Arrival => ({
  declaration,
  ids: new Set(),
  unnumbered: 0,
  highest: 0,
  keys: uniqueFields(declaration.fields).map(([field, keyOf]) => [field, keyOf, new Set()]),
  references: referencesOf(declaration.fields).map(([field, { to }]) => [field, to, new Map()]),
});

/**
 * Counts a record in.
 * @throws CairnError `validation_failed` where another record has its id, or a value that is unique
 */
function register(arrival: Arrival, record: NewRecord, pointer: string, data?: Data): void {
  const { ids, declaration, keys, references } = arrival;
  const { id, fields } = record;
  const known = data && existing(data, declaration.name, id);
  if (known !== undefined && !looksSame(declaration.fields, known, fields)) {
    throw issue('/id', 'must be that of no other record in the store');
  }
  if (id === undefined) arrival.unnumbered += 1;
  else if (ids.has(id)) throw issue('/id', 'must be that of no other record in the file');
  else ids.add(id);
  arrival.highest = Math.max(arrival.highest, id ?? 0);
  for (const [field, keyOf, seen] of keys) {
    const key = keyOf(fields);
    if (key === undefined) continue;
    const records = data && resourceOf(data, declaration.name)?.records;
    const holder = records?.find(field, key);
    if (seen.has(key) || (holder !== undefined && holder.id !== id)) {
      throw issue(pointerTo(field), 'must be unique');
    }
    seen.add(key);
  }
  for (const [field, , places] of references) {
    for (const target of [idsIn(fields, field) ?? []].flat()) {
      if (!places.has(target)) places.set(target, pointer + pointerTo(field));
    }
  }
}

function issue(pointer: string, detail: string): CairnError {
  const issues = [{ pointer, code: 'import', detail }];
  return new CairnError('validation_failed', 'Cannot import the record', { issues });
}

/** @throws FatalError with all mistakes, if there are any */
function refuse(file: string, { lines }: Mistakes): void {
  if (lines.length === 0) return;
  throw new FatalError(
    65,
    `Cannot import ${file}, and nothing was written:\n  ${lines.join('\n  ')}`,
  );
}

/**
 * Returns a record of a file as it is stored. A null is an absent value.
 * @throws CairnError `validation_failed` with all issues
 */
function recordOf({ fields, timestamps }: CollectionDeclaration, sent: JsonObject): NewRecord {
  const body: [string, JsonValue][] = [];
  const own: { [name: string]: Scalar } = {};
  for (const [name, given] of Object.entries(sent)) {
    const field = fields[name];
    const isNumber = field !== undefined && hasType(field.kind === 'list' ? field.of : field, 1);
    const value = isNumber ? numberOf(name, given) : given;
    if (value === null) continue;
    const isOwn = name === 'id' || (timestamps && /^(created|updated)At$/.test(name));
    if (!isOwn) body.push([name, value]);
    else if (field !== undefined && isScalar(value)) {
      const violation = ruleViolation(field, value);
      if (violation !== undefined) throw issue(`/${name}`, violation.detail);
      own[name] = value;
    } else throw issue(`/${name}`, 'must be a text or a number');
  }
  const input = validateBody(fields, Object.fromEntries(body), { kind: 'create' });
  const { id, ...times } = own;
  return { id: typeof id === 'number' ? id : undefined, fields: { ...input, ...times } };
}

/** @throws OptionError where no user has the address */
function ownerOf({ users }: Data, email: string | undefined): number {
  if (email === undefined) return 0;
  const user = users.records.find('email', emailKey(email));
  if (user !== undefined) return user.id;
  throw new OptionError(`Cannot use --owner: no user has the address ${JSON.stringify(email)}`);
}

const resourceOf = ({ collections }: Data, name: string): CollectionResource | undefined =>
  collections.find(({ declaration }) => declaration.name === name);

/** The record that has an id already. */
function existing(data: Data, name: string, id: number | undefined): Entry | undefined {
  return id === undefined ? undefined : resourceOf(data, name)?.records.get(id);
}

/**
 * Writes all records, chunk by chunk, or none, and returns how many are new. A record that is there
 * already is as the file has it.
 */
async function write(
  { terminal }: Call,
  file: string,
  data: Data,
  ownerId: number,
  highest: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  const added = new Map<string, number>();
  const nextIds = new Map(Array.from(highest, ([name, id]) => [name, id + 1]));
  const { onProgress, done } = progressOf(terminal, `importing ${file}`);
  await data.store
    .allOrNone(async () => {
      for await (const records of readRecords(file, onProgress)) {
        const entries = records.flatMap(({ collection, record }) => {
          const resource = resourceOf(data, collection);
          if (resource === undefined || record === undefined) return [];
          const { id = nextId(resource, nextIds), fields } = recordOf(resource.declaration, record);
          if (existing(data, collection, id) !== undefined) return [];
          added.set(collection, (added.get(collection) ?? 0) + 1);
          return [{ resource, id, fields: { ownerId, ...withTimes(resource, fields) } }];
        });
        await data.store.write((transaction) => {
          for (const { resource, id, fields } of entries) {
            transaction.of(resource.records).insert(fields, id);
          }
        });
      }
    })
    .catch((error: unknown) => {
      if (!(error instanceof CairnError)) throw error;
      throw new FatalError(74, `Cannot import ${file}: ${error.message}; nothing of it counts`);
    });
  done();
  return added;
}

/** Returns an id above those of the file and of the store. */
function nextId({ declaration: { name }, records }: CollectionResource, ids: Map<string, number>) {
  const id = Math.max(ids.get(name) ?? 1, records.nextId);
  ids.set(name, id + 1);
  return id;
}

function withTimes(
  { declaration: { timestamps } }: CollectionResource,
  fields: NewRecord['fields'],
) {
  if (!timestamps) return fields;
  const now = new Date(systemClock.now()).toISOString();
  const { createdAt = fields['updatedAt'] ?? now, updatedAt = createdAt, ...others } = fields;
  return { ...others, createdAt, updatedAt };
}

/** @throws OptionError where CAIRN_CLUSTER names a cluster, whose data are not in the directory */
function refuseCluster({ command: { name }, read }: Call, remedy: string): void {
  if (read(clusterOptions.members) === undefined) return;
  throw new OptionError(`Cannot ${name} beside CAIRN_CLUSTER: unset it and ${remedy}`);
}

async function exportAll(call: Call): Promise<void> {
  refuseCluster(call, 'export a directory that "cairn backup" has made of it');
  const { out } = call.terminal;
  const declared = declaredOf(await declarationsOf(call.read(options.collections)));
  const { image } = await readCopy(new NodeFiles(dataDirectory(call)), {
    ...offlineOptions(call.terminal),
    restores: false,
  });
  let separator = '{';
  for (const { name, fields } of declared.values()) {
    await out(`${separator}\n${JSON.stringify(name)}:[`);
    separator = ',';
    const parse = storedRecordParser(fields);
    const shown = representationWriter(fields);
    let before = '\n';
    for (const block of image.views.find((view) => view.name === name)?.blocks ?? []) {
      const lines = block.map((stored) => {
        const record = parse({ ...stored });
        if (typeof record === 'object') return shown(record);
        throw new FatalError(78, `Cannot export ${name}: record ${stored.id} ${record}`);
      });
      await out(before + lines.join(',\n'));
      before = ',\n';
    }
    await out('\n]');
  }
  await out(`${separator === '{' ? '{' : ''}\n}\n`);
}
