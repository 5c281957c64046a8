import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FileLog } from '../../src/store/disk/file-log.ts';
import type { Group } from '../../src/store/log.ts';
import { Tables } from '../../src/store/memory/table.ts';
import {
  listRecords,
  createMachine,
  joinNames,
  type Opened,
  people,
  createPerson,
  seedRandom,
  SimulatedDisk,
  small,
  startStore,
  createSteppingClock,
  waitTurns,
  writePeople,
} from '../support/store/fixtures.ts';

const client = {
  between: <T>(work: () => Promise<T>) => work(), onFailure() {}, published() {}, unavailable() {},
};

/** A group of one commit, which adds a record. */
function group(first: number, sequence = first): Group {
  const record = { id: sequence, revision: sequence, ...createPerson(`p${sequence}`) };
  const change = { collection: people, id: sequence, record, before: undefined, sequence };
  return { first, commits: [`[["people",${JSON.stringify(record)}]]`], changes: [change] };
}

it('refuses a group that does not follow, or whose commits do not match its changes', async () => {
  const disk = new SimulatedDisk();
  const tables = new Tables();
  const table = tables.add(people);
  const options = {
    files: disk, clock: createSteppingClock(), random: seedRandom(1), machine: createMachine(),
    onNotice() {}, ...small,
  };
  const log = new FileLog(options, tables);
  await log.open(client);
  assert.equal((await log.append(group(1))).outcome, 'won');
  const good = group(2);
  const wrong: readonly Group[] = [
    { ...good, commits: [] },
    { ...good, changes: [] },
    { ...good, commits: [...good.commits, ...good.commits] },
    { ...good, commits: [...good.commits, '[]'] },
    { ...good, changes: [...good.changes, ...group(4).changes] },
    { ...good, changes: [...good.changes, ...group(1).changes] },
    { ...good, changes: group(1).changes },
    group(1), group(3), group(2, 3),
    { first: 3, commits: [], changes: [] },
  ];
  for (const each of wrong) {
    const answer = await log.append(each);
    assert.equal(answer.outcome, 'refused', JSON.stringify(each));
  }
  assert.equal((await log.append({ first: 2, commits: [], changes: [] })).outcome, 'won');
  assert.equal((await log.append(good)).outcome, 'won');
  table.load({ id: 1, revision: 1, ...createPerson('p1') });
  table.load({ id: 2, revision: 2, ...createPerson('p2') });
  await log.close(Promise.resolve(true));
  const again = await startStore({ files: disk });
  assert.deepEqual(listRecords(again.people).map(({ name }) => name), ['p1', 'p2']);
});

/** Writes a few records and makes a snapshot of them, so that a further checkpoint has something to do. */
async function writing(spareBytes = 400): Promise<Opened & { readonly disk: SimulatedDisk }> {
  const disk = new SimulatedDisk();
  const opened = await startStore({ files: disk, spareBytes });
  await writePeople('a', 'b')(opened);
  return { ...opened, disk };
}

const kinds = (disk: SimulatedDisk, from: number): string[] => disk.operations.slice(from).map(({ kind }) => kind);

it('syncs the directory after removing a partly created journal', async () => {
  for (const failing of ['write', 'sync'] as const) {
    const opened = await writing();
    const { disk, store, people } = opened;
    disk.fault = ({ operation, name }) =>
      operation === failing && name === 'journal-2.jsonl' ? { code: 'ENOSPC' } : undefined;
    await store.checkpoint();
    const removed = disk.operations.findLastIndex(({ kind }) => kind === 'remove');
    assert.deepEqual(kinds(disk, removed), ['remove', 'syncDirectory'], failing);
    await writePeople('c')(opened);
    assert.equal(joinNames(await startStore({ files: new SimulatedDisk(unlocked(disk)) })), 'abc');
    assert.deepEqual([store.state, people.size], ['writable', 3]);
  }
});

it('fails if a partly created journal cannot be removed', async () => {
  const { disk, store, people, failures } = await writing();
  disk.fault = ({ operation, name }) =>
    (operation === 'write' || operation === 'remove') && name === 'journal-2.jsonl' ? { code: 'ENOSPC' } : undefined;
  await assert.rejects(store.checkpoint(), { code: 'ENOSPC' });
  await assert.rejects(store.write((tx) => tx.of(people).remove(1)), { code: 'store_failed' });
  assert.equal(failures.length, 1);
});

it('writes to a new journal only once its name is durable', async () => {
  const opened = await writing();
  const { disk, store } = opened;
  const before = disk.operations.length;
  disk.pause = (at, name) => {
    if (at !== 'write' || !name.startsWith('people.json')) return undefined;
    disk.pause = () => undefined;
    return writePeople('c')(opened);
  };
  await store.checkpoint();
  const made = kinds(disk, before).filter((kind) => kind !== 'failedSync');
  assert.deepEqual(made.slice(0, 4), ['create', 'write', 'sync', 'syncDirectory']);
  const name = disk.operations.slice(before).findIndex((each) => each.kind === 'rename');
  assert.ok(name > 4, 'and only then are snapshots renamed');
});

it('looks for room again after a line hit a full disk', async () => {
  const { disk, store, people } = await writing(64 * 1024);
  let looks = 0;
  disk.free = async () => {
    looks += 1;
    return Infinity;
  };
  await store.write((tx) => tx.of(people).insert(createPerson('c')));
  assert.equal(looks, 0, 'what was written ahead holds the line');
  disk.fault = ({ operation }) => (operation === 'write' ? { code: 'EDQUOT', written: 9 } : undefined);
  await assert.rejects(store.write((tx) => tx.of(people).insert(createPerson('d'))), { code: 'storage_full' });
  disk.fault = () => undefined;
  await store.write((tx) => tx.of(people).insert(createPerson('e')));
  assert.equal(looks, 1);
  assert.equal(joinNames(await startStore({ files: new SimulatedDisk(unlocked(disk)) })), 'abce');
});

it('is full after a line hit a full disk, until there is room', async () => {
  const { disk, store, people } = await writing(64 * 1024);
  const insert = (name: string) => store.write((tx) => tx.of(people).insert(createPerson(name)));
  await insert('c');
  disk.fault = ({ operation }) => (operation === 'write' ? { code: 'ENOSPC' } : undefined);
  await assert.rejects(insert('d'), { code: 'storage_full' });
  assert.deepEqual([store.state, store.isMemoryFull], ['full', false]);
  disk.fault = () => undefined;
  await insert('e');
  assert.equal(store.state, 'writable');
});

it('reports a quota once, and room once', async () => {
  const { disk, store, people, notices } = await writing();
  const insert = (name: string) => store.write((tx) => tx.of(people).insert(createPerson(name)));
  disk.fault = ({ operation }) => (operation === 'write' ? { code: 'EDQUOT' } : undefined);
  for (let n = 0; n < 5; n += 1) await assert.rejects(insert(`p${n}`), { code: 'storage_full' });
  assert.equal(store.state, 'full');
  disk.fault = () => undefined;
  await insert('c');
  assert.equal(store.state, 'writable');
  const told = notices.map((notice) => notice.split(':', 1).join()).filter((notice) => notice.includes('disk'));
  assert.deepEqual(told, ['the disk is full', 'there is room on the disk again']);
});

it('waits for the current checkpoint when it stops', async () => {
  const opened = await writing();
  const { disk, store, notices } = opened;
  const ended: string[] = [];
  let closing: Promise<unknown> | undefined;
  disk.pause = (at, name) => {
    if (at === 'written' || !name.startsWith('people.json') || closing !== undefined) return undefined;
    closing = store.close().then(() => ended.push('stop'));
    return waitTurns(30);
  };
  await store.checkpoint().then(() => ended.push('checkpoint'));
  await closing;
  assert.deepEqual(ended, ['checkpoint', 'stop']);
  const files = [...disk.content().keys()].filter((name) => name.startsWith('journal'));
  assert.equal(files.length, 1);
  assert.match(String(disk.content().get(files[0] ?? '')), /"closed":true/);
  assert.deepEqual(notices, []);
  const again = await startStore({ files: disk });
  assert.deepEqual([joinNames(again), again.notices], ['ab', []]);
});

function unlocked(disk: SimulatedDisk): Map<string, Buffer> {
  const content = disk.content();
  content.delete('lock');
  return content;
}
