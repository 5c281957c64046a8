import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { OpenFile, OpenMode } from '../../src/store/disk/files.ts';
import { systemMachine, type ProcessIdentity } from '../../src/store/disk/lock.ts';
import { LockedError } from '../../src/store/disk/lock.ts';
import { isLockedRun } from '../support/basics.ts';
import {
  listRecords,
  createMachine,
  createStore,
  type Opened,
  createPerson,
  seedNumbers,
  seedRandom,
  SimulatedDisk,
  startStore,
  type TestMachine,
  thisProcess,
  waitTurns,
} from '../support/store/fixtures.ts';

const options = { spareBytes: 4000 };

const other: ProcessIdentity = { ...thisProcess, pid: 8 };

/** A disk on which `holder` has a store open. */
async function heldBy(holder: ProcessIdentity): Promise<Opened & { disk: SimulatedDisk; machine: TestMachine }> {
  const disk = new SimulatedDisk();
  const machine = createMachine(holder);
  const opened = await startStore({ ...options, files: disk, machine });
  await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('ann')));
  return { ...opened, disk, machine };
}

const gone = createMachine(thisProcess, [7]);
const alive = createMachine(thisProcess, [7, 8]);

describe('the lock', () => {
  it('is taken over at once from a process that has ended', async () => {
    const { disk } = await heldBy(other);
    const machine = createMachine(thisProcess, [7]);
    const { store, people, notices } = await startStore({ ...options, files: disk, machine });
    assert.deepEqual([people.size, machine.waitedMs], [1, 0]);
    assert.ok(!notices.join().includes('waiting'));
    await store.close();
    assert.ok(!disk.content().has('lock'));
  });

  it('is taken over at once from an earlier process with the same number, as in a container', async () => {
    const lock = Buffer.from(`${JSON.stringify({ ...thisProcess, since: '', token: 'an earlier one' })}\n`);
    const machine = createMachine();
    await startStore({ ...options, files: new SimulatedDisk(new Map([['lock', lock]])), machine });
    assert.equal(machine.waitedMs, 0);
  });

  it('is not taken over from a store in the same process', async () => {
    const first = await heldBy(thisProcess);
    const { store } = createStore({ ...options, files: first.disk, machine: alive, random: seedRandom(2) });
    const message = /^Cannot open the store: process 7 on box since 2025-\S+ holds it: stop/;
    await assert.rejects(store.start(), (error) => error instanceof LockedError && message.test(error.message));
    assert.equal(alive.waitedMs, 0);
    await first.store.write((tx) => tx.of(first.people).insert(createPerson('bob')));
    await first.store.close();
    await startStore({ ...options, files: first.disk, machine: alive });
  });

  const unknown: readonly [string, ProcessIdentity, TestMachine][] = [
    ['in another container, or on another machine', { ...other, host: 'far', place: 'b2 n2' }, alive],
    ['with our number, in another container of that name', { ...thisProcess, place: 'b1 n2' }, gone],
    ['that could not tell where it is', { ...other, place: null }, gone],
    ['that we cannot look up', other, createMachine({ ...thisProcess, place: null }, [])],
    ['whose number a process has', other, alive],
    ['in another thread of our process', { ...thisProcess, place: 'b1 n1 2' }, gone],
  ];
  for (const [what, holder, { self, isRunning }] of unknown) {
    const machine = (): TestMachine => ({ ...createMachine(), self, isRunning });

    it(`is taken over from a process ${what} after 20 seconds without renewal`, async () => {
      const first = await heldBy(holder);
      first.machine.renew();
      const second = machine();
      const { people, notices } = await startStore({ ...options, files: first.disk, machine: second });
      assert.equal(people.size, 1);
      assert.equal(second.waitedMs, 20_000);
      assert.match(notices[0] ?? '', /^process \d on \w+ since \S+ holds simulated: waiting up to 20 seconds/);
      const late = first.store.write((tx) => tx.of(first.people).insert(createPerson('bob')));
      await assert.rejects(late, { code: 'outcome_unknown' });
    });

    it(`is kept by a process ${what} that renews it`, async () => {
      const first = await heldBy(holder);
      const second = machine();
      second.whileWaiting = () => second.waitedMs === 5000 && first.machine.renew();
      const { store } = createStore({ ...options, files: first.disk, machine: second });
      await assert.rejects(store.start(), LockedError);
      assert.ok(second.waitedMs < 8000);
      await first.store.write((tx) => tx.of(first.people).insert(createPerson('bob')));
    });
  }

  it('goes to a waiting start when the holder releases it', async () => {
    const first = await heldBy({ ...other, place: 'b2' });
    const machine = createMachine();
    machine.whileWaiting = () => machine.waitedMs === 3000 && void first.store.close();
    const { people } = await startStore({ ...options, files: first.disk, machine });
    assert.equal(people.size, 1);
    assert.ok(machine.waitedMs < 20_000);
  });

  it('goes to one of two waiting starts', async () => {
    const { disk } = await heldBy({ ...other, place: 'b2' });
    const later = createMachine();
    let first: Opened | undefined;
    later.whileWaiting = () => {
      if (later.waitedMs < 20_000) return undefined;
      first = createStore({ ...options, files: disk, machine: createMachine({ ...thisProcess, place: 'b3' }) });
      return first.store.start();
    };
    const { store } = createStore({ ...options, files: disk, machine: later, random: seedRandom(2) });
    await assert.rejects(store.start(), /process 7 on box since \S+ holds it/);
    await first?.store.write((tx) => first !== undefined && tx.of(first.people).insert(createPerson('bob')));
    assert.deepEqual(first?.failures, []);
  });

  it('that is incomplete is taken over after the same time', async () => {
    const machine = createMachine();
    const disk = new SimulatedDisk(new Map([['lock', Buffer.from('{"host":"bo')]]));
    await startStore({ ...options, files: disk, machine });
    assert.equal(machine.waitedMs, 20_000);
  });

  it('is durable before anything else is written', async () => {
    const { disk } = await heldBy(other);
    const operations = disk.operations.slice(disk.operations.findIndex((each) => each.kind === 'create'));
    assert.deepEqual(operations.slice(0, 3).map(({ kind }) => kind), ['create', 'write', 'sync']);
  });

  it('is removed again if it cannot be written', async () => {
    const disk = new SimulatedDisk();
    disk.fault = ({ operation }) => (operation === 'write' ? { code: 'ENOSPC', written: 9 } : undefined);
    await assert.rejects(startStore({ ...options, files: disk }), { code: 'storage_full' });
    assert.deepEqual([...disk.content()], []);
  });

  it('is taken over by one of several starts', async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const next = seedNumbers(seed);
      const { disk } = await heldBy(other);
      disk.pause = () => waitTurns(Math.floor(next() * 4));
      const holders: TestMachine[] = [];
      const starts = [1, 2, 3].map(async (pid) => {
        const machine = createMachine({ ...thisProcess, pid }, [1, 2, 3]);
        machine.whileWaiting = () => holders.forEach((each) => each.renew());
        holders.push(machine);
        await waitTurns(Math.floor(next() * 9));
        return startStore({ ...options, files: disk, machine, random: seedRandom(seed * 10 + pid) });
      });
      const outcomes = await Promise.allSettled(starts);
      const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      assert.equal(refusals.length, 2, `seed ${seed}: ${refusals.join()}`);
      for (const error of refusals) assert.ok(error instanceof LockedError, `seed ${seed}: ${String(error)}`);
      const left = [...disk.content().keys()].filter((name) => name.startsWith('lock'));
      assert.deepEqual(left, ['lock'], `seed ${seed}`);
    }
  });

  it('is not taken over by the slower of two starts that found it stale', async () => {
    class Disk extends SimulatedDisk {
      override async open(name: string, mode: OpenMode): Promise<OpenFile> {
        if (name.startsWith('lock.') && faster === undefined) {
          const machine = createMachine({ ...thisProcess, pid: 9 }, [9]);
          holder = machine;
          faster = createStore({ ...options, files: this, machine, random: seedRandom(2) });
          await faster.store.start();
        }
        return super.open(name, mode);
      }
    }
    let faster: Opened | undefined;
    let holder: TestMachine | undefined;
    const disk = new Disk(new Map([['lock', Buffer.from(JSON.stringify(other))]]));
    const machine = createMachine(thisProcess, [7, 9]);
    machine.whileWaiting = () => holder?.renew();
    await assert.rejects(startStore({ ...options, files: disk, machine }), /process 9 on box since \S+ holds it/);
    assert.ok(!disk.content().has('lock.1'));
    await faster?.store.write((tx) => faster !== undefined && tx.of(faster.people).insert(createPerson('ann')));
    assert.deepEqual(faster?.failures, []);
  });

  it('is taken over even if another process died during a takeover', async () => {
    const stale = Buffer.from(JSON.stringify(other));
    const disk = new SimulatedDisk(new Map([['lock', stale], ['lock.1', stale]]));
    assert.equal(disk.identity('lock'), '1');
    await startStore({ ...options, files: disk, machine: gone });
    assert.deepEqual([...disk.content().keys()].filter((name) => name.startsWith('lock')), ['lock']);
  });

  it('that another process took over is noticed at the next renewal, even without writes', async () => {
    const first = await heldBy(other);
    await startStore({ ...options, files: first.disk, machine: gone });
    assert.deepEqual(first.failures, []);
    first.machine.renew();
    assert.match(String(first.failures), /the lock file is no longer ours/);
    assert.equal(first.store.status().state, 'failed');
  });
});

describe('the processes of this machine', { skip: isLockedRun }, () => {
  it('are running until they end', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    const { pid = NaN } = child;
    assert.ok(systemMachine.isRunning(pid) && systemMachine.isRunning(process.pid));
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(systemMachine.isRunning(pid), false);
  });
});

describe('the fence', () => {
  it('fails if the system cannot tell who holds the lock', async () => {
    class Disk extends SimulatedDisk {
      isDead = false;
      override identity(name: string): string | undefined {
        if (this.isDead) throw Object.assign(new Error('EIO: simulated'), { code: 'EIO' });
        return super.identity(name);
      }
    }
    const works: ((opened: Opened, machine: TestMachine) => unknown)[] = [
      (_, machine) => machine.renew(),
      ({ store, people }) =>
        assert.rejects(store.write((tx) => tx.of(people).insert(createPerson('ann'))), { code: 'outcome_unknown' }),
      ({ store }) => assert.rejects(store.checkpoint(), { code: 'EIO' }),
    ];
    for (const work of works) {
      const [disk, machine] = [new Disk(), createMachine(other)];
      const opened = await startStore({ ...options, files: disk, machine });
      await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('bob')));
      disk.isDead = true;
      await work(opened, machine);
      assert.equal(opened.store.status().state, 'failed');
      assert.match(String(opened.failures), /EIO/);
      await opened.store.close();
      assert.ok(disk.content().has('lock'));
    }
  });

  /** `first` is frozen at some call while another process takes its directory over; then it wakes. */
  async function replaced(
    at: (call: string) => boolean,
  ): Promise<{ outcome: PromiseSettledResult<unknown>; found: string[] }> {
    const first = await heldBy(other);
    let second: Opened | undefined;
    const { disk } = first;
    let waking: Promise<void> = Promise.resolve();
    disk.pause = (call) => {
      if (second !== undefined || !at(call)) return undefined;
      second = createStore({ ...options, files: disk, machine: gone });
      waking = second.store.start();
      return waking;
    };
    const [outcome] = await Promise.allSettled([
      first.store.write((tx) => tx.of(first.people).insert(createPerson('bob'))),
    ]);
    await waking;
    assert.ok(second !== undefined && outcome !== undefined);
    const late = first.store.write((tx) => tx.of(first.people).insert(createPerson('cat')));
    await assert.rejects(late, { code: 'store_failed' });
    assert.equal(first.failures.length, 1);
    await first.store.close();
    await second.store.write((tx) => second?.people !== undefined && tx.of(second.people).insert(createPerson('dan')));
    await second.store.close();
    const third = await startStore({ ...options, files: disk });
    const found = third.people.view().blocks.flat().map(({ name }) => name);
    await third.store.close();
    return { outcome, found };
  }

  it('stops a process that was frozen before it wrote', async () => {
    const { outcome, found } = await replaced((call) => call === 'write');
    assert.equal(outcome.status, 'rejected');
    assert.deepEqual(found, ['ann', 'dan']);
  });

  it('keeps a process that was frozen during a sync from responding', async () => {
    const { outcome, found } = await replaced((call) => call === 'written');
    // The process that replaced it has read the write, but the caller cannot know that.
    assert.equal(outcome.status, 'rejected');
    assert.deepEqual(found, ['ann', 'bob', 'dan']);
  });

  it('keeps a waking process from replacing its successor\'s journal', async () => {
    let second: Opened | undefined;
    let begun = false;
    class Disk extends SimulatedDisk {
      override async open(name: string, mode: OpenMode): Promise<OpenFile> {
        if (name === 'journal-2.jsonl' && mode === 'journal' && !begun) {
          begun = true;
          second = createStore({ ...options, files: this, machine: gone, random: seedRandom(2) });
          await second.store.start();
        }
        return super.open(name, mode);
      }
    }
    const disk = new Disk();
    const first = await startStore({ ...options, files: disk, machine: createMachine(other) });
    await first.store.write((tx) => tx.of(first.people).insert(createPerson('ann')));
    await assert.rejects(first.store.checkpoint());
    assert.ok(second !== undefined);
    const { store, people } = second;
    await store.write((tx) => tx.of(people).insert(createPerson('bob')));
    const late = first.store.write((tx) => tx.of(first.people).insert(createPerson('cat')));
    await assert.rejects(late, { code: 'store_failed' });
    await store.write((tx) => tx.of(people).insert(createPerson('dan')));
    await disk.remove('lock');
    const third = await startStore({ ...options, files: disk });
    assert.deepEqual(listRecords(third.people).map(({ name }) => name), ['ann', 'bob', 'dan']);
  });

  const works: [string, (opened: Opened) => Promise<unknown>][] = [
    ['writes', ({ store, people }) => store.write((tx) => tx.of(people).insert(createPerson('bob')))],
    ['checkpoints', ({ store }) => store.checkpoint()],
  ];
  for (const [what, work] of works) {
    it(`stops a process that ${what} once the lock belongs to another`, async () => {
      const { disk, ...opened } = await heldBy(other);
      await disk.remove('lock');
      await (await disk.open('lock', 'exclusive')).close();
      const names = [...disk.content().keys()];
      await assert.rejects(work(opened));
      assert.equal(opened.store.status().state, 'failed');
      assert.deepEqual([...disk.content().keys()], names);
    });
  }

  it('keeps a process that lost the directory from publishing snapshots', async () => {
    const { disk, store } = await heldBy(other);
    disk.pause = (_, name) =>
      /^people\.json\.\w+\.tmp$/.test(name) && disk.content().has('lock') ? disk.remove('lock') : undefined;
    await assert.rejects(store.checkpoint(), /the lock file is no longer ours/);
    assert.deepEqual([...disk.content().keys()].filter((name) => /^\w+\.json$/.test(name)), []);
  });
});
