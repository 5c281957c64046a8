import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { queryObjects } from 'node:v8';
import { InvariantError } from '../../src/base/errors.ts';
import { systemClock } from '../../src/base/system.ts';
import { limits } from '../../src/base/limits.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import { UniqueKeyError, type Transaction } from '../../src/store/store.ts';
import { sharedLog } from '../support/cluster/nodes.ts';
import { SmallEtcd } from '../support/cluster/small-etcd.ts';
import { deniedSyncNotices } from '../support/basics.ts';
import {
  listRecords,
  createMachine,
  createStore,
  notes,
  people,
  createPerson,
  seedRandom,
  SimulatedDisk,
  startStore,
  createSteppingClock,
  waitTurns,
} from '../support/store/fixtures.ts';

const root = mkdtempSync(join(tmpdir(), 'cairn-store-'));
after(() => {
  rmSync(root, { recursive: true, force: true });
});
let etcd: SmallEtcd | undefined;
before(async () => {
  etcd = await SmallEtcd.start();
});
after(() => etcd?.stop());
let directories = 0;
const newDirectory = (): string => join(root, String((directories += 1)));

/** The same contract, whatever the records are kept in. */
const kinds: [string, () => Partial<StoreOptions>][] = [
  ['in memory', () => ({})],
  ['in a directory', () => ({ files: new NodeFiles(newDirectory()) })],
  ['in a cluster', () => ({ log: sharedLog(etcd?.addresses ?? [], { prefix: `${newDirectory()}/` }) })],
];

for (const [kind, options] of kinds) {
  describe(`a store ${kind}`, () => {
    it('shows a record once its write resolves', async () => {
      const { store, people } = await startStore(options());
      const writing = store.write((tx) => tx.of(people).insert(createPerson('ann')));
      assert.equal(people.get(1), undefined);
      const ann = await writing;
      assert.equal(JSON.stringify(ann), JSON.stringify({ id: 1, revision: 1, ...createPerson('ann') }));
      assert.equal(people.get(1), ann);
      assert.equal(people.find('email', 'ann@example.org'), ann);
      assert.equal(people.revision, 1);
      await store.close();
    });

    it('decides uniqueness by the pending state of the transaction', async () => {
      const { store, people } = await startStore(options());
      const first = store.write((tx) => tx.of(people).insert(createPerson('ann')));
      const second = store.write((tx) => {
        assert.equal(tx.of(people).find('email', 'ann@example.org')?.id, 1);
        assert.deepEqual([...tx.of(people).referring('role', 'member')].map(({ id }) => id), [1]);
        tx.of(people).insert({ ...createPerson('bob'), email: 'ANN@example.org' });
      });
      await assert.rejects(second, UniqueKeyError);
      await first;
      assert.equal(people.size, 1);
      const freed = store.write((tx) => tx.of(people).replace(1, createPerson('eve')));
      const taken = store.write((tx) => tx.of(people).insert(createPerson('ann')));
      const again = store.write((tx) => tx.of(people).replace(2, createPerson('abe')));
      const third = store.write((tx) => tx.of(people).insert(createPerson('ann')));
      await Promise.all([freed, taken, again, third]);
      assert.deepEqual(listRecords(people).map(({ name }) => name), ['eve', 'abe', 'ann']);
      assert.equal(people.find('email', 'ann@example.org')?.id, 3);
      await store.close();
    });

    it('starts only once', async () => {
      const { store } = await startStore(options());
      await assert.rejects(store.start(), InvariantError);
      assert.throws(() => store.collection({ ...notes, name: 'late' }), InvariantError);
      await store.close();
    });

    it('undoes every change if the work throws', async () => {
      const { store, people, notes } = await startStore(options());
      await store.write((tx) => tx.of(people).insert(createPerson('ann')));
      const failing = store.write((tx) => {
        tx.of(people).replace(1, createPerson('bob'));
        tx.of(people).insert(createPerson('cat'));
        tx.of(notes).insert({ person: 1, text: 'x' });
        tx.of(people).remove(1);
        throw new TypeError('no');
      });
      await assert.rejects(failing, TypeError);
      const next = await store.write((tx) => {
        assert.equal(tx.of(people).get(1)?.name, 'ann');
        assert.equal(tx.of(people).find('email', 'cat@example.org'), undefined);
        assert.deepEqual([...tx.of(people).referring('role', 'member')].map(({ id }) => id), [1]);
        assert.deepEqual([...tx.of(notes).referring('person', 1)], []);
        return tx.of(people).insert(createPerson('dan'));
      });
      assert.equal(next.id, 2);
      assert.equal(next.revision, 2);
      await store.close();
    });

    it('changes several collections in one transaction', async () => {
      const { store, people, notes } = await startStore(options());
      await store.write((tx) => {
        const { id } = tx.of(people).insert(createPerson('ann', 'admin'));
        for (const text of ['a', 'b', 'c']) tx.of(notes).insert({ person: id, text });
      });
      const removing = store.write((tx) => {
        tx.of(notes).remove(2);
        tx.of(notes).insert({ person: 1, text: 'd' });
        tx.of(notes).replace(1, { person: 9, text: 'a' });
        return [...tx.of(notes).referring('person', 1)].map(({ id }) => id);
      });
      const members = await store.write((tx) => [...tx.of(notes).referring('person', 1)].map(({ id }) => id));
      assert.deepEqual(await removing, [3, 4]);
      assert.deepEqual(members, [3, 4]);
      assert.deepEqual(notes.members('person', 1).map(({ id }) => id), [3, 4]);
      assert.deepEqual(notes.members('person', 9).map(({ id }) => id), [1]);
      await store.close();
    });

    it('keeps a view unchanged, and then releases it', async () => {
      const { store, notes } = await startStore(options());
      await store.write((tx) => {
        for (let n = 1; n <= 3000; n += 1) tx.of(notes).insert({ person: 1, text: String(n) });
      });
      const view = notes.view();
      await store.write((tx) => {
        tx.of(notes).replace(5, { person: 1, text: 'changed' });
        tx.of(notes).remove(2000);
        tx.of(notes).insert({ person: 1, text: 'new' });
      });
      const later = notes.view();
      await store.write((tx) => tx.of(notes).replace(5, { person: 1, text: 'again' }));
      const seen = view.blocks;
      assert.deepEqual(notes.latest(3).map(({ id }) => id), [3001, 3000, 2999]);
      assert.deepEqual(notes.latest(2000).map(({ id }) => id).slice(1001, 1003), [1999, 1998]);
      assert.equal(notes.latest(9000).length, 3000);
      assert.deepEqual([view.size, view.revision], [3000, 1]);
      assert.deepEqual(seen.map((block) => block.length), [1023, 1024, 953]);
      assert.deepEqual(seen.flat().map(({ text }) => text), Array.from({ length: 3000 }, (_, n) => String(n + 1)));
      assert.equal(later.blocks.flat()[4]?.text, 'changed');
      assert.equal(notes.get(5)?.text, 'again');
      assert.equal(notes.size, 3000);
      await store.close();
    });

    it('refuses misuse', async () => {
      const { store, people } = await startStore(options());
      let kept: Transaction | undefined;
      await store.write((tx) => {
        kept = tx;
      });
      assert.throws(() => kept?.of(people).get(1), InvariantError);
      const asynchronous = store.write(async (tx) => Promise.resolve(tx.of(people).insert(createPerson('x'))));
      await assert.rejects(asynchronous, InvariantError);
      await assert.rejects(store.write((tx) => tx.of(people).replace(1, createPerson('x'))), InvariantError);
      assert.throws(() => store.collection(notes), InvariantError);
      await store.close();
      await assert.rejects(store.write((tx) => tx.of(people).insert(createPerson('x'))), { code: 'draining' });
    });

    it("refuses a write inside another one's work, which continues", async () => {
      const { store, people } = await startStore(options());
      let inner: Promise<unknown> | undefined;
      await store.write((tx) => {
        inner = assert.rejects(store.write((nested) => nested.of(people).insert(createPerson('bob'))), InvariantError);
        tx.of(people).insert(createPerson('ann'));
      });
      await inner;
      await assert.rejects(store.write(() => assert.fail('no')), /no/);
      await store.write((tx) => tx.of(people).insert(createPerson('cat')));
      const found = listRecords(people).map(({ id, revision, name }) => `${id} ${revision} ${name}`);
      assert.deepEqual(found, ['1 1 ann', '2 2 cat']);
      await store.close();
    });

    it('settles waiting writes before it closes', async () => {
      const { store, people } = await startStore(options());
      const writes = Array.from({ length: 50 }, (_, n) =>
        store.write((tx) => tx.of(people).insert(createPerson(`p${n}`))),
      );
      const closing = store.close();
      assert.equal((await Promise.all(writes)).length, 50);
      await closing;
    });
  });
}

describe('a store under load', () => {
  it('limits the bytes of a group', async () => {
    const { store, notes } = await startStore();
    // Three bytes each.
    const text = '€'.repeat(limits.groupBytesMax / 6);
    await Promise.all([1, 2, 3].map((n) => store.write((tx) => tx.of(notes).insert({ person: n, text }))));
    assert.equal(store.status().groups, 3);
  });

  it('limits the number of waiting writes', async () => {
    const { store, people } = await startStore();
    const insert = (n: number): Promise<unknown> => store.write((tx) => tx.of(people).insert(createPerson(`p${n}`)));
    const writes = Array.from({ length: limits.waitingTransactionsMax }, (_, n) => insert(n));
    await assert.rejects(insert(-1), { code: 'overloaded', retryAfterSeconds: 1 });
    await Promise.all(writes);
    assert.equal(store.status().groups, limits.waitingTransactionsMax / limits.groupTransactionsMax);
    await insert(-1);
  });

  it('forgets pending writes', async () => {
    const { store, people } = await startStore();
    const insertAndRemove = async (n: number): Promise<void> => {
      const { id } = await store.write((tx) => tx.of(people).insert(createPerson(`p${n}`)));
      await store.write((tx) => tx.of(people).remove(id));
    };
    const leftAfter = async (rounds: number): Promise<[objects: number, bytes: number]> => {
      for (let round = 0; round < rounds; round += 1) {
        await Promise.all(Array.from({ length: 500 }, (_, n) => insertAndRemove(round * 500 + n)));
      }
      // This collects what is garbage, too.
      return [queryObjects(Object, { format: 'count' }), process.memoryUsage().heapUsed];
    };
    const [objectsBefore, bytesBefore] = await leftAfter(4);
    const [objects, bytes] = await leftAfter(30);
    const left = { objects: objects - objectsBefore, bytes: bytes - bytesBefore };
    const told = `15,000 records came and went, and left ${left.objects} objects, ${left.bytes} bytes`;
    assert.ok(left.objects < 100, told);
    // Keys are none. A MiB or so comes and goes with the test runner's own map of what is under way.
    assert.ok(left.bytes < 2_500_000, told);
  });
});

describe('a store at rest', () => {
  it('updates small JSON files 5 s after the last write, at most once in 30 s', async () => {
    const disk = new SimulatedDisk();
    const { store, people, notes, clock, tick } = await startStore({ files: disk });
    const rest = async (ms: number): Promise<number> => {
      clock.advance(ms);
      await tick();
      await waitTurns(100);
      return store.status().checkpoints;
    };
    const names = (): unknown => JSON.parse(String(disk.content().get('people.json'))).records;
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    assert.equal(await rest(4000), 0);
    assert.equal(await rest(2000), 1);
    assert.deepEqual(names(), listRecords(people));
    await store.write((tx) => tx.of(people).insert(createPerson('bob')));
    assert.equal(await rest(20_000), 1);
    assert.equal(await rest(10_000), 2);
    assert.deepEqual(names(), listRecords(people));
    assert.equal(await rest(60_000), 2, 'nothing was written since');
    await store.write((tx) => tx.of(notes).insert({ person: 1, text: 'x'.repeat(256 * 1024) }));
    assert.equal(await rest(60_000), 3, 'the files were small');
    await store.write((tx) => tx.of(people).insert(createPerson('cat')));
    assert.equal(await rest(60_000), 3, 'the files take over 256 KiB');
    await store.write((tx) => tx.of(notes).remove(1));
    await store.checkpoint();
    await store.write((tx) => tx.of(people).insert(createPerson('dan')));
    assert.equal(await rest(60_000), 5, 'and now they do not');
  });

  it('preallocates more as the journal grows', async () => {
    const disk = new SimulatedDisk();
    const { store, people, notes } = await startStore({ files: disk, spareBytes: 1024 * 1024 });
    const length = (): number => disk.content().get('journal-1.jsonl')?.length ?? 0;
    await store.write((tx) => tx.of(people).insert(createPerson('ann')));
    assert.ok(length() > 16 * 1024 && length() < 17 * 1024, `${length()} bytes`);
    const text = 'x'.repeat(1000);
    for (let n = 0; n < 300; n += 1) await store.write((tx) => tx.of(notes).insert({ person: 1, text }));
    const ahead = length() - store.status().journalBytes;
    assert.ok(ahead > 100_000, `${ahead} bytes`);
    await store.close();
  });
});

describe('a store in a directory', () => {
  it('reads its files back after a clean stop', async () => {
    const directory = newDirectory();
    const first = await startStore({ files: new NodeFiles(directory) });
    await first.store.write((tx) => {
      tx.of(first.people).insert(createPerson('ann'));
      tx.of(first.people).insert(createPerson('bob'));
      tx.of(first.notes).insert({ person: 1, text: 'käse\n' });
    });
    await first.store.write((tx) => tx.of(first.people).remove(2));
    await first.store.close();
    const barrier = deniedSyncNotices.length > 0 ? ['.sync'] : [];
    const files = [...barrier, 'journal-3.jsonl', 'notes.json', 'people.json'];
    assert.deepEqual(readdirSync(directory).sort(), files);
    const file = readFileSync(join(directory, 'people.json'), 'utf8');
    const members = 'format collection epoch through revision nextId records count sha256';
    assert.equal(Object.keys(JSON.parse(file)).join(' '), members);
    assert.equal(file.split('\n')[1], '{"id":1,"revision":1,"name":"ann","email":"ann@example.org","role":"member"}');
    for (const name of readdirSync(directory)) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);

    const second = await startStore({ files: new NodeFiles(directory), clock: systemClock });
    assert.equal(second.store.epoch, first.store.epoch);
    assert.deepEqual(second.notices, deniedSyncNotices);
    assert.deepEqual(listRecords(second.people), listRecords(first.people));
    assert.deepEqual(listRecords(second.notes), listRecords(first.notes));
    assert.equal(second.people.revision, 2);
    assert.equal(second.people.find('email', 'ann@example.org')?.id, 1);
    const cat = await second.store.write((tx) => tx.of(second.people).insert(createPerson('cat')));
    assert.deepEqual([cat.id, cat.revision], [3, 3]);
    await second.store.close();
  });

  it('accepts a new collection, and keeps one that is not registered', async () => {
    const directory = newDirectory();
    const only = async (definition: 'people' | 'notes'): Promise<void> => {
      const clock = createSteppingClock();
      const files = new NodeFiles(directory);
      const store = openStore({ files, clock, random: seedRandom(2), machine: createMachine() });
      if (definition === 'people') {
        const collection = store.collection(people);
        await store.start();
        await store.write((tx) => tx.of(collection).insert(createPerson(`p${collection.size}`)));
      } else {
        const collection = store.collection(notes);
        await store.start();
        await store.write((tx) => tx.of(collection).insert({ person: 1, text: 't' }));
      }
      await store.close();
    };
    await only('people');
    await only('notes');
    await only('people');
    const both = createStore({ files: new NodeFiles(directory) });
    await both.store.start();
    assert.equal(both.people.size, 2);
    assert.equal(both.notes.size, 1);
    await both.store.close();
  });

  it('continues from a journal that was not closed', async () => {
    const directory = newDirectory();
    const first = await startStore({ files: new NodeFiles(directory) });
    await first.store.write((tx) => tx.of(first.people).insert(createPerson('ann')));
    rmSync(join(directory, 'lock'));
    const second = await startStore({ files: new NodeFiles(directory), clock: systemClock });
    assert.deepEqual(second.notices, [...deniedSyncNotices, 'the last stop was not clean: 1 commits were replayed']);
    assert.deepEqual(listRecords(second.people), listRecords(first.people));
    const late = (): Promise<unknown> => first.store.write((tx) => tx.of(first.people).insert(createPerson('bob')));
    await assert.rejects(late(), { code: 'outcome_unknown' });
    await assert.rejects(late(), { code: 'store_failed' });
    assert.equal(first.failures.length, 1);
    assert.equal(first.store.status().state, 'failed');
    await first.store.close();
    await second.store.close();
  });

  for (const when of ['after', 'during'] as const) {
    it(`keeps both halves of a transaction if a listener throws between them (checkpoint ${when} it)`, async () => {
      const directory = newDirectory();
      const first = await startStore({ files: new NodeFiles(directory) });
      const { store, people } = first;
      await store.write((tx) => tx.of(people).insert(createPerson('zoe')));
      let isFirst = true;
      people.follow(() => {
        if (!isFirst) return;
        isFirst = false;
        throw new Error('the listener failed');
      });
      let checkpoint = Promise.resolve();
      const both = store.write((tx) => {
        // As the log does by itself when a checkpoint is due.
        if (when === 'during') queueMicrotask(() => (checkpoint = store.checkpoint()));
        return ['ann', 'bob'].map((name) => tx.of(people).insert(createPerson(name)));
      });
      await assert.rejects(both, { code: 'outcome_unknown' });
      await (when === 'after' ? store.checkpoint() : checkpoint);
      await store.close();
      const second = await startStore({ files: new NodeFiles(directory) });
      assert.deepEqual(listRecords(second.people).map(({ name }) => name), ['zoe', 'ann', 'bob']);
      await second.store.close();
    });
  }
});
