import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runBeforeTests } from '../support/basics.ts';
import {
  blogsWithModel, crashWhileFull, deletingBlog, failEveryCall, faults, type Faults, peopleAndNotes, writingPeople,
} from '../support/store/crashes.ts';
import type { OpenFile } from '../../src/store/disk/files.ts';
import {
  listRecords, createMachine, createStore, notes, createPerson, SimulatedDisk, startStore, thisProcess, waitTurns,
} from '../support/store/fixtures.ts';

const failures: { title: string; outcomes: () => Faults }[] = [];
for (const [at, [name, fault]] of Object.entries(faults).entries()) {
  const code = at % 2 === 0 ? 'ENOSPC' : 'EIO';
  const title = `${name} with ${code}`;
  failures.push({ title, outcomes: await runBeforeTests(() => failEveryCall(writingPeople, fault(code), title)) });
}
// The torture suite has every combination.
const title = `fails once with EIO while ${deletingBlog.name}`;
const failsOnce = faults['fails once'] ?? assert.fail();
failures.push({ title, outcomes: await runBeforeTests(() => failEveryCall(deletingBlog, failsOnce('EIO'), title)) });
const shortWrites = await runBeforeTests(() =>
  failEveryCall(
    writingPeople,
    (call, at, n) => (call.operation === 'write' && at >= n ? { written: 1 + (at % 7) } : undefined),
    'short writes',
  ),
);
const crashesWhileFull = await runBeforeTests(async () => [
  await crashWhileFull(1, 20, peopleAndNotes),
  await crashWhileFull(4, 20, blogsWithModel()),
]);

describe('a store whose n-th call fails, for every n', () => {
  for (const { title, outcomes } of failures) {
    it(`loses nothing when it ${title}`, () => {
      const { runs, refused, unknown } = outcomes();
      assert.ok(runs > 40 && refused + unknown > 0, `${runs} runs, ${refused} refused, ${unknown} unknown`);
    });
  }

  it('continues after short writes', () => {
    const { runs, written } = shortWrites();
    assert.equal(written, runs * 7);
  });
});

describe('a store on a full disk', () => {
  const small = { spareBytes: 400 };

  it('accepts only removals, and resumes when there is room', async () => {
    const disk = new SimulatedDisk();
    const opened = await startStore({ files: disk, spareBytes: 2000 });
    const { store, people, notices } = opened;
    const insert = (name: string): Promise<unknown> => store.write((tx) => tx.of(people).insert(createPerson(name)));
    for (let n = 1; n <= 10; n += 1) await insert(`p${n}`);
    disk.capacity = 0;
    await assert.rejects(Promise.all([insert('a'), insert('b')]), { code: 'storage_full' });
    assert.equal(people.size, 10);
    await assert.rejects(insert('c'), { code: 'storage_full' });
    assert.equal(store.status().state, 'full');

    const used = [...disk.content().values()].reduce((sum, { length }) => sum + length, 0);
    disk.capacity = used + 2000;
    disk.unused = 2000;
    await store.write((tx) => tx.of(people).remove(3));
    assert.equal(people.size, 9);
    await assert.rejects(insert('d'), { code: 'storage_full' });

    disk.capacity = disk.unused = Number.POSITIVE_INFINITY;
    await insert('e');
    assert.equal(store.status().state, 'writable');
    assert.deepEqual(people.latest(1).map(({ id, name }) => [id, name]), [[11, 'e']]);
    assert.ok(notices.some((notice) => notice.startsWith('the disk is full')));
    assert.ok(notices.some((notice) => notice.startsWith('there is room')));
    await store.close();
  });

  it('has only acknowledged writes after a crash', () => {
    for (const { refused, states } of crashesWhileFull()) {
      assert.ok(refused > 1 && states > 60, `${refused} refused, ${states} states`);
    }
  });

  it('is full while the next checkpoint does not fit', async () => {
    const disk = new SimulatedDisk();
    const { store, people, clock } = await startStore({ ...small, files: disk });
    let count = 0;
    const insert = (): Promise<unknown> => store.write((tx) => tx.of(people).insert(createPerson(`p${(count += 1)}`)));
    for (let n = 0; n < 10; n += 1) await insert();
    await store.checkpoint();
    await insert();
    const sizes = [...disk.content()].filter(([name]) => name.endsWith('.json')).map(([, { length }]) => length);
    const needed = (): number => Math.max(...sizes) + store.status().journalBytes + small.spareBytes;
    disk.unused = needed();
    await insert();
    disk.unused = needed() - 1;
    await assert.rejects(insert(), { code: 'storage_full' });
    assert.deepEqual([store.status().state, store.status().checkpoints], ['full', 1]);
    clock.advance(30_000);
    await store.write((tx) => tx.of(people).remove(1));
    await waitTurns(50);
    assert.equal(store.status().checkpoints, 2, 'what is removed leaves the files by a checkpoint');
    disk.unused = 1000;
    await assert.rejects(insert(), { code: 'storage_full' });
    disk.unused = 10_000;
    await insert();
    assert.equal(store.status().state, 'writable');
  });

  it('tries one checkpoint in half a minute when it becomes full', async () => {
    const disk = new SimulatedDisk();
    const { store, people, clock } = await startStore({ ...small, files: disk });
    for (let n = 0; n < 10; n += 1) await store.write((tx) => tx.of(people).insert(createPerson(`p${n}`)));
    disk.fault = ({ operation, name }) =>
      operation === 'write' && (disk.unused === 0 || name.startsWith('people.json')) ? { code: 'ENOSPC' } : undefined;
    const attempts = async (unused: number): Promise<number[]> => {
      disk.unused = unused;
      await store.write((tx) => tx.of(people).remove(2)).catch(() => undefined);
      await waitTurns(50);
      return [store.status().checkpoints, store.status().checkpointFailures];
    };
    for (const unused of [0, 0, 1000]) assert.deepEqual(await attempts(unused), [0, 1]);
    clock.advance(30_000);
    assert.deepEqual(await attempts(0), [0, 2]);
  });

  /** A full store with a collection that stays open to writes, and another one with two records. */
  async function startFull() {
    const disk = new SimulatedDisk();
    const { store } = createStore({ ...small, files: disk });
    const visits = store.collection({ ...notes, name: 'visits', whenFull: 'written' });
    const others = store.collection({ ...notes, name: 'others' });
    await store.start();
    const visit = { person: 1, text: 'x'.repeat(200) };
    for (const _ of [1, 2]) await store.write((tx) => tx.of(others).insert(visit));
    disk.unused = 0;
    await assert.rejects(store.write((tx) => tx.of(others).insert(visit)), { code: 'storage_full' });
    return { store, visits, others, visit };
  }

  it('refuses writes to other collections', async () => {
    const { store, visits, others, visit } = await startFull();
    await assert.rejects(store.write((tx) => tx.of(others).replace(1, visit)), { code: 'storage_full' });
    const both = store.write((tx) => [tx.of(visits).insert(visit), tx.of(others).insert(visit)]);
    await assert.rejects(both, { code: 'storage_full' });
    await assert.rejects(
      store.write((tx) => [tx.of(others).remove(1), tx.of(others).insert(visit)]),
      { code: 'storage_full' },
    );
    assert.deepEqual([visits.size, others.size], [0, 2]);
  });

  it('accepts writes to collections that stay open', async () => {
    const { store, visits, visit } = await startFull();
    await store.write((tx) => tx.of(visits).insert(visit));
    assert.equal(visits.size, 1);
  });

  it('accepts a change in a transaction that also removes', async () => {
    const { store, others, visit } = await startFull();
    await store.write((tx) => [tx.of(others).remove(1), tx.of(others).replace(2, visit)]);
    assert.equal(others.size, 1);
  });

  it('accepts a transaction that only reads', async () => {
    const { store, others, visit } = await startFull();
    assert.equal(await store.write((tx) => tx.of(others).get(2)?.text), visit.text);
  });

  it('makes room for one snapshot after another', async () => {
    const disk = new SimulatedDisk();
    const { store, people, notes } = await startStore({ ...small, files: disk });
    await store.write((tx) => [
      tx.of(people).insert(createPerson('ann')),
      tx.of(notes).insert({ person: 1, text: 'x' }),
    ]);
    disk.fault = ({ operation, name }) =>
      operation === 'write' && name.startsWith('notes.json') ? { code: 'ENOSPC' } : undefined;
    for (let n = 0; n < 5; n += 1) await store.checkpoint();
    const journals = [...disk.content().keys()].filter((name) => name.startsWith('journal-'));
    assert.deepEqual(journals.sort(), ['journal-1.jsonl', 'journal-2.jsonl']);
    assert.ok(disk.content().has('people.json') && !disk.content().has('notes.json'));
    await disk.remove('lock');
    disk.fault = () => undefined;
    const again = await startStore({ ...small, files: disk });
    assert.deepEqual([again.people.size, again.notes.size], [1, 1]);
  });

  it('counts the unpublished files of a checkpoint as room', async () => {
    const disk = new SimulatedDisk();
    const { store, people } = await startStore({ ...small, files: disk });
    for (let n = 0; n < 10; n += 1) await store.write((tx) => tx.of(people).insert(createPerson(`p${n}`)));
    const { journalBytes } = store.status();
    let during: Promise<unknown> | undefined;
    disk.pause = (at, name) => {
      const written = disk.content().get(name)?.length ?? 0;
      if (at === 'written' || !name.startsWith('people.json') || written === 0) return undefined;
      disk.unused = journalBytes + 800 - written;
      assert.ok(disk.unused < journalBytes + small.spareBytes);
      during = store.write((tx) => tx.of(people).insert(createPerson('new')));
      return during.then(() => undefined);
    };
    await store.checkpoint();
    await during;
    assert.equal(people.size, 11);
  });

  it('is not created', async () => {
    const disk = new SimulatedDisk();
    disk.fault = ({ operation, name }) => (operation === 'write' && name !== 'lock' ? { code: 'ENOSPC' } : undefined);
    const message = 'Cannot open the store: there is no room in simulated';
    await assert.rejects(startStore({ ...small, files: disk }), { code: 'storage_full', message });
  });

  for (const stop of ['clean', 'killed', 'killed and locked'] as const) {
    it(`starts and serves reads without a free byte (${stop})`, async () => {
      const former = new SimulatedDisk();
      const first = await startStore({ ...small, files: former });
      await first.store.write((tx) => tx.of(first.people).insert(createPerson('ann')));
      await first.store.checkpoint();
      await first.store.write((tx) => tx.of(first.people).insert(createPerson('bob')));
      if (stop === 'clean') await first.store.close();
      const content = former.content();
      if (stop === 'killed') content.delete('lock');
      const disk = new SimulatedDisk(content);
      disk.capacity = [...content.values()].reduce((sum, { length }) => sum + length, 0);
      disk.unused = 0;
      const machine = createMachine({ ...thisProcess, pid: 8 }, [8]);
      const opened = await startStore({ ...small, files: disk, machine });
      const { store, people, notices, failures } = opened;
      assert.deepEqual(listRecords(people).map(({ name }) => name), ['ann', 'bob']);
      assert.equal(store.status().state, 'full');
      const message = /^Cannot write: the disk has no room left: \d+ bytes have to be free$/;
      const refused = { code: 'storage_full', message };
      await assert.rejects(store.write((tx) => tx.of(people).insert(createPerson('cy'))), refused);
      await assert.rejects(store.write((tx) => tx.of(people).remove(1)), refused);
      const notice = /^the disk is full: nothing is written until \d+ bytes are free in simulated$/;
      assert.match(notices.at(-1) ?? '', notice);
      for (const [name, bytes] of content) {
        if (name !== 'lock') assert.deepEqual(disk.content().get(name), bytes, `${name} is as it was`);
      }
      machine.renew();
      await waitTurns(20);
      assert.equal(store.status().state, 'full');

      disk.unused = disk.capacity = Infinity;
      await store.write((tx) => tx.of(people).insert(createPerson('cy')));
      assert.deepEqual([store.status().state, failures], ['writable', []]);
      machine.renew();
      await waitTurns(5);
      assert.match(disk.content().get('lock')?.toString() ?? '', /"pid":8,.*\n2\n$/);
      await store.close();
      assert.deepEqual(failures, []);
      const last = await startStore({ ...small, files: new SimulatedDisk(disk.content()) });
      assert.deepEqual(listRecords(last.people).map(({ name }) => name), ['ann', 'bob', 'cy']);
    });
  }

  it('refuses to start if the last group, which may not be durable, cannot be written again', async () => {
    const former = new SimulatedDisk();
    const first = await startStore({ ...small, files: former });
    await first.store.write((tx) => tx.of(first.people).insert(createPerson('ann')));
    const content = former.content();
    content.delete('lock');
    const disk = new SimulatedDisk(content);
    // As on a file system that copies what is written in place.
    disk.fault = ({ operation, name }) => (operation === 'write' && name !== 'lock' ? { code: 'ENOSPC' } : undefined);
    await assert.rejects(startStore({ ...small, files: disk }), { code: 'storage_full' });
  });

  it('accepts writes if the free space is unknown', async () => {
    const disk = new SimulatedDisk();
    disk.free = () => Promise.reject(new Error('no such call'));
    const { store, people, failures } = await startStore({ ...small, files: disk });
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    await store.close();
    assert.deepEqual([people.size, failures], [1, []]);
  });

  it('truncates a partly written line of a refused write', async () => {
    const disk = new SimulatedDisk();
    const { store, people } = await startStore({ files: disk, spareBytes: 16 });
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    const content = disk.content().get('journal-1.jsonl');
    disk.fault = ({ operation }) => (operation === 'write' ? { code: 'ENOSPC', written: 60 } : undefined);
    const long = store.write((tx) => tx.of(people).insert(createPerson('x'.repeat(100))));
    await assert.rejects(long, { code: 'storage_full' });
    assert.deepEqual(disk.content().get('journal-1.jsonl'), content);
  });

  it('starts if an interrupted checkpoint took the last room', async () => {
    const disk = new SimulatedDisk();
    const first = await startStore({ files: disk, spareBytes: 2000 });
    await first.store.write((tx) => tx.of(first.people).insert(createPerson('ann')));
    const torn = `{"sequ${'x'.repeat(200)}`;
    const content = disk.content().set('people.json.0a.tmp', Buffer.alloc(2000));
    content.delete('lock');
    content.set('journal-1.jsonl', Buffer.from(`${content.get('journal-1.jsonl')?.toString().trim()}\n${torn}`));
    const full = new SimulatedDisk(content);
    full.capacity = 300;
    for (const { length } of content.values()) full.capacity += length;
    const second = await startStore({ files: full, spareBytes: 2000 });
    assert.equal(second.people.size, 1);
  });
});

describe('a store whose sync fails', () => {
  const temporarySnapshot = /^people\.json\.\w+\.tmp$/;

  it('does not publish a group with an unknown outcome', async () => {
    const disk = new SimulatedDisk(new Map(), false);
    const { store, people } = await startStore({ files: disk, spareBytes: 16 });
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    let wake: () => void = () => undefined;
    const frozen = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let writing: Promise<unknown> | undefined;
    let waits = false;
    disk.pause = (at, name) => {
      if (at !== 'write') return undefined;
      if (temporarySnapshot.test(name)) {
        // The new journal is there: a write goes to it, and waits there while the checkpoint fails.
        writing ??= store.write((tx) => tx.of(people).insert(createPerson('bob')));
        writing.catch(() => undefined);
        return waitTurns(4);
      }
      if (writing === undefined || !name.startsWith('journal')) return undefined;
      waits = true;
      return frozen;
    };
    disk.fault = ({ operation, name }) =>
      operation === 'rename' && temporarySnapshot.test(name) ? { code: 'EIO' } : undefined;
    await assert.rejects(store.checkpoint(), { code: 'EIO' });
    assert.ok(waits);
    wake();
    assert.ok(writing !== undefined);
    await assert.rejects(writing, { code: 'outcome_unknown' });
    await new Promise(setImmediate);
    assert.equal(people.size, 1);
    assert.equal(store.status().sequence, 1);
  });

  /** A store with Ann, whose sync has failed while Bob and Cat were written. */
  async function startWithFailedSync() {
    const disk = new SimulatedDisk(new Map(), false);
    const { store, people, failures } = await startStore({ files: disk, spareBytes: 16 });
    const insert = (name: string): Promise<unknown> => store.write((tx) => tx.of(people).insert(createPerson(name)));
    await insert('ann');
    let syncs = 0;
    disk.fault = ({ operation }) => (operation === 'sync' ? { code: (syncs += 1) > 0 ? 'EIO' : '' } : undefined);
    const both = await Promise.allSettled([insert('bob'), insert('cat')]);
    return { store, people, failures, both, insert, countSyncs: () => syncs };
  }

  it('fails the writes that wait with outcome_unknown', async () => {
    const { both } = await startWithFailedSync();
    for (const outcome of both) {
      assert.equal(outcome.status, 'rejected');
      assert.equal(outcome.reason.code, 'outcome_unknown');
    }
  });

  it('refuses later writes', async () => {
    const { insert } = await startWithFailedSync();
    await assert.rejects(insert('dan'), { code: 'store_failed' });
  });

  it('serves reads of what was durable', async () => {
    const { people } = await startWithFailedSync();
    assert.equal(people.find('email', 'ann@example.org')?.id, 1);
    assert.equal(people.size, 1);
  });

  it('reports the failure once', async () => {
    const { failures, insert } = await startWithFailedSync();
    await assert.rejects(insert('dan'));
    assert.equal(failures.length, 1);
  });

  it('does not repeat a failed sync', async () => {
    const { store, insert, countSyncs } = await startWithFailedSync();
    await assert.rejects(insert('dan'));
    await store.close();
    assert.equal(countSyncs(), 1);
  });

  it('also stops if a checkpoint fails while a group is written', async () => {
    const disk = new SimulatedDisk();
    const { store, people, failures } = await startStore({ files: disk, spareBytes: 16 });
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    const groupBegun = deferred();
    const checkpointFailed = deferred();
    let bob: Promise<unknown> | undefined;
    let written = '';
    disk.fault = ({ operation, name }) => {
      if (operation === 'write') written = name;
      return operation === 'rename' && name.startsWith('people.json') ? { code: 'EIO' } : undefined;
    };
    disk.pause = (at) => {
      if (at === 'write') return undefined;
      if (bob !== undefined && written.startsWith('journal-')) {
        groupBegun.resolve();
        return checkpointFailed.promise;
      }
      if (!written.startsWith('people.json')) return undefined;
      bob ??= assert.rejects(
        store.write((tx) => tx.of(people).insert(createPerson('bob'))),
        { code: 'outcome_unknown' },
      );
      return groupBegun.promise;
    };
    await assert.rejects(store.checkpoint(), { code: 'EIO' });
    await bob;
    checkpointFailed.resolve();
    await store.close();
    assert.equal(failures.length, 1);
    assert.equal(people.size, 1);
  });
});

/** `Promise.withResolvers`, which Node.js 20 lacks. */
function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve: () => resolve() };
}

it('a failed start closes every file that it opened', async () => {
  const former = new SimulatedDisk();
  const { store, people } = await startStore({ files: former });
  await store.write((tx) => tx.of(people).insert(createPerson('ann')));
  const content = former.content();
  content.delete('lock');
  let failures = 0;
  for (let [n, isMet] = [1, true]; isMet; n += 1) {
    const disk = new SimulatedDisk(content);
    let [calls, where, opened] = [0, '', 0];
    disk.fault = ({ operation, name }) => {
      if (operation === 'close' || (calls += 1) !== n) return undefined;
      where = `${operation} ${name}`;
      return { code: 'EIO' };
    };
    const open = disk.open.bind(disk);
    disk.open = async (...wanted) => {
      const file = await open(...wanted);
      opened += 1;
      const close: OpenFile['close'] = async () => {
        opened -= 1;
      };
      return { ...file, close };
    };
    const hasFailed = await startStore({ files: disk }).then(() => false, () => true);
    if (hasFailed) assert.equal(opened, 0, `call ${n}: ${where}`);
    failures += Number(hasFailed);
    isMet = where !== '';
  }
  assert.ok(failures > 12, `${failures} failures`);
});
