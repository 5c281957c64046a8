import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { systemProcesses, type ProcessIdentity, type ProcessTable } from '../../src/store/lock.ts';
import type { OpenFile, OpenMode } from '../../src/store/files.ts';
import { LockedError } from '../../src/store/store.ts';
import { all, makeStore, person, processTable, startStore, thisProcess, type Opened } from './fixtures.ts';
import { temporaryDirectory } from '../cli/spawn.ts';
import { isLockedRun } from '../support/locked.ts';
import { SimulatedDisk } from './simulated-disk.ts';

const options = { reserveBytes: 4000 };

const other: ProcessIdentity = { ...thisProcess, pid: 8, started: '80' };

/** A disk on which `holder` has a store open. */
async function heldBy(holder: ProcessIdentity): Promise<Opened & { disk: SimulatedDisk }> {
  const disk = new SimulatedDisk();
  const opened = await startStore({ ...options, files: disk, processes: processTable(holder) });
  await opened.store.write((tx) => tx.insert(opened.people, person('ann')));
  return { ...opened, disk };
}

const gone = processTable(thisProcess, new Map([[7, '70']]));
const alive = processTable(thisProcess, new Map([[7, '70'], [8, '80']]));
const unknown = processTable({ ...thisProcess, machine: null });
const claiming = (granted: boolean, table: ProcessTable): ProcessTable => ({
  ...table,
  claim: () => Promise.resolve(granted && (() => Promise.resolve())),
});

describe('the lock', () => {
  const taken: [string, ProcessIdentity, ProcessTable][] = [
    ['a process that is gone', other, gone],
    ['a process whose number another one has now', other, processTable(thisProcess, new Map([[8, '81']]))],
    ['a process from before the machine was started anew', { ...other, boot: 'b0' }, alive],
    ['the same, in a container of that time', { ...other, boot: 'b0', namespace: 'n0' }, alive],
    ['a process without /proc that is gone, the claim being ours', { ...other, boot: null }, claiming(true, gone)],
  ];
  for (const [what, holder, processes] of taken) {
    it(`is taken over from ${what}`, async () => {
      const { disk } = await heldBy(holder);
      const { store, people } = await startStore({ ...options, files: disk, processes });
      assert.equal(people.size, 1);
      await store.close();
      assert.ok(!disk.content().has('lock'));
    });
  }

  const kept: [string, ProcessIdentity, ProcessTable, RegExp][] = [
    ['a process that runs', other, alive, /process 8 on box since 2025-\S+ holds it \(it is running\)/],
    ['this very process', thisProcess, gone, /process 7 on box .* \(it is running\)/],
    ['a process of that number, perhaps', { ...other, started: null }, alive, /a process has its number/],
    ['another machine', { ...other, host: 'far' }, gone, /process 8 on far .* another machine/],
    ['another machine of the same name', { ...other, boot: 'b0', machine: 'm2' }, gone, /on this machine/],
    ['a machine that cannot be told', { ...other, boot: 'b0', machine: null }, unknown, /on this machine/],
    ['another container', { ...other, namespace: 'n2' }, gone, /another container/],
    ['a process that cannot be looked up', { ...other, boot: null }, gone, /without reading \/proc/],
    ['a process that we cannot look up', other, processTable({ ...thisProcess, boot: null }), /without reading/],
    ['the holder of the claim', { ...other, boot: 'b0' }, claiming(false, gone), /running on this machine/],
  ];
  for (const [what, holder, processes, message] of kept) {
    it(`is not taken over from ${what}, and the holder is named`, async () => {
      const first = await heldBy(holder);
      const { store } = makeStore({ ...options, files: first.disk, processes });
      await assert.rejects(store.start(), (error) => {
        assert.ok(error instanceof LockedError, String(error));
        assert.match(error.message, message);
        const remedy = /running/.test(message.source)
          ? /^Cannot open the store: .*\(it is running[^)]*\): stop it first$/
          : /^Cannot open the store: .*\. If that process is gone, remove the file "lock" in simulated$/;
        assert.match(error.message, remedy);
        return true;
      });
      await first.store.write((tx) => tx.insert(first.people, person('bob')));
      await first.store.close();
    });
  }

  it('is not to be had while somebody else has its name alone, and the message says how to find them', async () => {
    const { store } = makeStore({ ...options, files: new SimulatedDisk(), processes: claiming(false, gone) });
    await assert.rejects(store.start(), /another process holds it .*No lock file is there: .*"ss -xlp" shows who/);
  });

  it('is durable before anything else is written', async () => {
    const { disk } = await heldBy(other);
    const operations = disk.operations.slice(disk.operations.findIndex((each) => each.kind === 'create'));
    assert.deepEqual(operations.slice(0, 3).map(({ kind }) => kind), ['create', 'write', 'sync']);
  });

  it('of another one, made when the last one had just gone, is not removed', async () => {
    const disk = new SimulatedDisk(new Map([['lock', Buffer.from('{}')]]));
    let opened = 0;
    disk.fault = ({ operation, name }) => {
      if (operation !== 'open' || name !== 'lock' || (opened += 1) !== 2) return undefined;
      void disk.rename('lock', 'next').then(() => disk.rename('next', 'lock'));
      return undefined;
    };
    const { store } = makeStore({ ...options, files: disk, processes: gone });
    await assert.rejects(store.start(), /others are taking it at this moment/);
    assert.equal(disk.content().get('lock')?.toString(), '{}');
  });

  it('that was cut short is taken over only where the claim is ours', async () => {
    const content = new Map([['lock', Buffer.from('{"host":"bo')]]);
    const refused = makeStore({ ...options, files: new SimulatedDisk(content), processes: gone });
    await assert.rejects(refused.store.start(), /another process holds it \(the lock file is cut short\)/);
    await startStore({ ...options, files: new SimulatedDisk(content), processes: claiming(true, gone) });
  });
});

describe('the processes of this machine', { skip: isLockedRun || process.platform !== 'linux' }, () => {
  it('are gone where they are dead and nobody has fetched them', async () => {
    // The shell is replaced by a process that never asks what became of its child.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [line] = await once(parent.stdout, 'data');
      const pid = Number(String(line));
      const state = (): string => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0] ?? '';
      while (state() !== 'Z') await delay(5);
      assert.equal(systemProcesses.started(pid), undefined);
      assert.equal(typeof systemProcesses.started(process.pid), 'string');
    } finally {
      parent.kill();
    }
  });

  it('claim a directory by a name that every version of Node.js takes for the same', async (t) => {
    const directory = temporaryDirectory(t);
    const claim = await systemProcesses.claim(directory);
    t.after(async () => (claim === false ? undefined : claim?.()));
    const { dev, ino } = statSync(directory, { bigint: true });
    const name = `@cairn-${dev}-${ino}`.padEnd(108, '@');
    const names = readFileSync('/proc/net/unix', 'latin1').split('\n').map((line) => line.split(' ').at(-1));
    assert.ok(names.includes(name), `there is no socket ${name}`);
  });
});

describe('the fence', () => {
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
      second = makeStore({ ...options, files: disk, processes: gone });
      waking = second.store.start();
      return waking;
    };
    const [outcome] = await Promise.allSettled([first.store.write((tx) => tx.insert(first.people, person('bob')))]);
    await waking;
    assert.ok(second !== undefined && outcome !== undefined);
    await assert.rejects(first.store.write((tx) => tx.insert(first.people, person('cat'))), { code: 'store_failed' });
    assert.equal(first.failures.length, 1);
    await first.store.close();
    await second.store.write((tx) => second?.people !== undefined && tx.insert(second.people, person('dan')));
    await second.store.close();
    const third = await startStore({ ...options, files: disk });
    const found = third.people.view().blocks.flat().map(({ name }) => name);
    await third.store.close();
    return { outcome, found };
  }

  it('stops a process that was frozen before it wrote, and nothing it writes counts', async () => {
    const { outcome, found } = await replaced((call) => call === 'write');
    assert.equal(outcome.status, 'rejected');
    assert.deepEqual(found, ['ann', 'dan']);
  });

  it('keeps a process from answering that was frozen while it synced', async () => {
    const { outcome, found } = await replaced((call) => call === 'written');
    // What it wrote was read by the process that replaced it; whether it was is not known to the caller.
    assert.equal(outcome.status, 'rejected');
    assert.deepEqual(found, ['ann', 'bob', 'dan']);
  });

  it('keeps a process that wakes from putting its journal in the place of its successor\'s', async () => {
    let second: Opened | undefined;
    class Disk extends SimulatedDisk {
      override async open(name: string, mode: OpenMode): Promise<OpenFile> {
        if (name === 'journal-2.jsonl.tmp' && second === undefined) {
          second = makeStore({ ...options, files: this, processes: gone });
          await second.store.start();
        }
        return super.open(name, mode);
      }
    }
    const disk = new Disk();
    const first = await startStore({ ...options, files: disk, processes: processTable(other) });
    await first.store.write((tx) => tx.insert(first.people, person('ann')));
    await first.store.checkpoint();
    assert.ok(second !== undefined);
    const { store, people } = second;
    await store.write((tx) => tx.insert(people, person('bob')));
    const late = first.store.write((tx) => tx.insert(first.people, person('cat')));
    await assert.rejects(late, { code: 'outcome_unknown' });
    await store.write((tx) => tx.insert(people, person('dan')));
    await disk.remove('lock');
    const third = await startStore({ ...options, files: disk });
    assert.deepEqual(all(third.people).map(({ name }) => name), ['ann', 'bob', 'dan']);
  });

  const works: [string, (opened: Opened) => Promise<unknown>][] = [
    ['writes', ({ store, people }) => store.write((tx) => tx.insert(people, person('bob')))],
    ['checkpoints', ({ store }) => store.checkpoint()],
  ];
  for (const [what, work] of works) {
    it(`stops a process that ${what} when its successor has begun a journal`, async () => {
      const { disk, ...opened } = await heldBy(other);
      await (await disk.open('journal-2.jsonl', 'replace')).close();
      const { length } = disk.operations;
      await assert.rejects(work(opened));
      assert.equal(opened.store.status().state, 'failed');
      assert.equal(disk.operations.length, length, 'it wrote, although it had lost the directory');
    });
  }

  it('keeps a process from renaming snapshots that lost the directory while it wrote them', async () => {
    const { disk, store } = await heldBy(other);
    disk.pause = (_, name) =>
      name === 'people.json.2.tmp' && disk.content().has('lock') ? disk.remove('lock') : undefined;
    await assert.rejects(store.checkpoint(), /the lock file is not ours any more/);
    assert.deepEqual([...disk.content().keys()].filter((name) => /^\w+\.json$/.test(name)), []);
  });
});
