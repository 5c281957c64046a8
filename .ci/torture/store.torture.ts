/**
 * The store's proofs, with their counts, which the variables below set. `CAIRN_TEST_SEED` replays.
 *
 *   CAIRN_CRASH_STATES=1000000 CAIRN_KILL_CYCLES=2000 CAIRN_LOCK_RACES=10000 CAIRN_HISTORIES=1000 npm run test:torture
 */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemClock } from '../../src/base/system.ts';
import { systemMachine } from '../../src/store/disk/lock.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { startProcess } from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';
import {
  type Opened, listRecords, damageAfterCrash, damageAfterStop, seedNumbers, startStore,
} from '../../test/support/store/fixtures.ts';
import {
  blogsWithModel, crashWhileFull, deletingBlog, failEveryCall, faults, peopleAndNotes, writingPeople,
} from '../../test/support/store/crashes.ts';
import { checkBlogHistory, checkHistory } from '../../test/support/store/histories.ts';

const count = (name: string, standard: number): number => Number(process.env[name] ?? standard);
const seed = count('CAIRN_TEST_SEED', 1);
const crashStates = count('CAIRN_CRASH_STATES', 20_000);
const killCycles = count('CAIRN_KILL_CYCLES', 40);
const races = count('CAIRN_LOCK_RACES', 300);
const histories = count('CAIRN_HISTORIES', 50);

const root = mkdtempSync(join(tmpdir(), 'cairn-torture-'));
after(() => {
  rmSync(root, { recursive: true, force: true });
});

test(`(a) a store recovers from ${crashStates} crash states (CAIRN_TEST_SEED=${seed})`, async (t) => {
  const script = join(import.meta.dirname, 'crash-states.ts');
  // Two processes, because most machines have at least two cores; their seeds are far apart.
  const explore = async (first: number): Promise<void> => {
    const words = ['--import', 'tsx', script, String(first), String(Math.ceil(crashStates / 2))];
    const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: projectDirectory });
    t.diagnostic(`lost = 0; ${JSON.stringify(JSON.parse(stdout))}`);
  };
  await Promise.all([explore(seed), explore(seed + 1_000_000)]);
});

test('(b) a store survives each error of each file operation, once and permanently', async (t) => {
  const seen = { runs: 0, written: 0, refused: 0, unknown: 0 };
  for (const [name, fault] of Object.entries(faults)) {
    for (const code of ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'EIO', 'EACCES', 'EROFS']) {
      for (const trial of [writingPeople, deletingBlog]) {
        const title = `${name} with ${code} while ${trial.name}`;
        const { runs, written, refused, unknown } = await failEveryCall(trial, fault(code), title);
        seen.runs += runs;
        seen.written += written;
        seen.refused += refused;
        seen.unknown += unknown;
      }
    }
  }
  t.diagnostic(`lost = 0; ${JSON.stringify(seen)}`);
});

test('(b) a store recovers from crashes on a disk that is sometimes full', async (t) => {
  const seen = { refused: 0, states: 0 };
  for (let n = 0; seen.states < crashStates / 10; n += 1) {
    const { refused, states } = await crashWhileFull(seed + n, 40, n % 2 === 0 ? blogsWithModel() : peopleAndNotes);
    seen.refused += refused;
    seen.states += states;
  }
  t.diagnostic(`lost = 0; ${JSON.stringify(seen)}`);
});

test('(c) a store notices every flipped bit and every truncated file', async (t) => {
  const refusals = await damageAfterStop(1);
  const { refused, prefixes } = await damageAfterCrash(1);
  t.diagnostic(`after a stop: all ${refusals} refused; after a crash: ${refused} refused, ${prefixes} prefixes`);
});

test(`(d) a store loses no acknowledged write in ${killCycles} times kill -9 under 16 writers`, async (t) => {
  const next = seedNumbers(seed);
  const directory = join(root, 'killed');
  const acknowledged = new Map<number, string>();
  let lost = 0;
  for (let cycle = 1; cycle <= killCycles; cycle += 1) {
    const server = await serve(t, directory);
    // Everything acknowledged before the last kill is there. Sometimes all records are compared.
    const expected = [...acknowledged].slice(cycle % 50 === 0 ? 0 : -2000);
    // Responses overtake each other, so the first one need not have the lowest id.
    const lowest = expected.reduce((least, [id]) => Math.min(least, id), Infinity);
    const found = await itemsAt(server.url, expected.length === 0 ? 0 : lowest);
    for (const [id, name] of expected) if (found.get(id) !== name) lost += 1;
    assert.equal(lost, 0, `cycle ${cycle}`);
    const writers = Array.from({ length: 16 }, (_, n) => writeUntilKilled(server.url, `c${cycle}w${n}`, acknowledged));
    for (const before = acknowledged.size; acknowledged.size === before; ) await delay(5);
    await delay(next() * 200);
    server.kill();
    await Promise.all([...writers, server.ended]);
  }
  t.diagnostic(`lost = ${lost} of ${acknowledged.size} acknowledged creates in ${killCycles} cycles`);
  assert.ok(acknowledged.size > killCycles);
});

test('(e) a store resumes after a file system of 16 MiB was full', async (t) => {
  const directory = join(root, 'small');
  mkdirSync(directory);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', directory]).status !== 0) {
    t.skip('no tmpfs can be mounted here');
    return;
  }
  try {
    writeFileSync(join(directory, 'ballast'), Buffer.alloc(2 * 1024 * 1024));
    const start = (): Promise<Opened> => {
      const files = new NodeFiles(join(directory, 'data'));
      return startStore({ files, clock: systemClock, machine: systemMachine, spareBytes: 1024 * 1024 });
    };
    const first = await start();
    const insert = (): Promise<unknown> =>
      first.store.write((tx) => {
        for (let n = 0; n < 10; n += 1) tx.of(first.notes).insert({ person: n, text: 'x'.repeat(400) });
      });
    const fill = async (): Promise<number> => {
      let refused: unknown;
      while (refused === undefined) await insert().catch((error: unknown) => (refused = error));
      assert.ok(refused instanceof Error && 'code' in refused && refused.code === 'storage_full', String(refused));
      return first.notes.size;
    };
    const filled = await fill();
    for (let id = 1; id <= 200; id += 1) await first.store.write((tx) => tx.of(first.notes).remove(id));
    assert.equal(first.notes.size, filled - 200);
    // A checkpoint may have made room by now.
    const left = await fill();
    // As if it were killed: it starts without more room, and continues once there is some.
    rmSync(join(directory, 'data', 'lock'));
    const late = first.store.write((tx) => tx.of(first.notes).remove(201));
    await assert.rejects(late, { code: 'outcome_unknown' });
    await first.store.close();
    rmSync(join(directory, 'data', 'lock'), { force: true });
    const second = await start();
    const found = second.notes.size;
    assert.ok(found === left || found === left - 1, `${found} of ${left}`);
    rmSync(join(directory, 'ballast'));
    await second.store.write((tx) => tx.of(second.notes).insert({ person: 1, text: 'x' }));
    assert.equal(second.store.status().state, 'writable');
    await second.store.close();
    const third = await start();
    assert.deepEqual(listRecords(third.notes).length, found + 1);
    await third.store.close();
    t.diagnostic(`full at ${filled} records; removals taken, started, writes resumed, nothing lost`);
  } finally {
    // Reports the earlier failure, rather than that the file system is in use.
    spawnSync('umount', ['-l', directory]);
  }
});

test(`(f) one process wins each of ${races} races for a directory`, async (t) => {
  const directory = join(root, 'raced');
  const racers = [await racer(t, [directory]), await racer(t, [directory])];
  let kills = 0;
  for (let race = 1; race <= races; race += 1) {
    const outcomes = await Promise.all(racers.map((each) => each.ask('open')));
    assert.deepEqual(outcomes.toSorted(), ['locked', 'opened'], `race ${race}`);
    const winner = racers[outcomes.indexOf('opened')];
    assert.equal(await winner?.ask('write'), String(race));
    if (race % 50 > 0) {
      assert.equal(await winner?.ask('close'), 'closed');
    } else {
      // It leaves its lock behind.
      kills += 1;
      await winner?.kill();
      racers[outcomes.indexOf('opened')] = await racer(t, [directory]);
    }
  }
  t.diagnostic(`one winner in each of ${races} races, ${kills} stale locks taken over, no record lost`);
});

test('(f) a process that is frozen and replaced responds to no request when it wakes', async (t) => {
  const directory = join(root, 'frozen');
  const first = await racer(t, [directory]);
  assert.equal(await first.ask('open'), 'opened');
  assert.equal(await first.ask('write'), '1');
  const second = await racer(t, [directory, 'another machine']);
  assert.equal(await second.ask('open'), 'locked', 'the first one renews its lock');
  first.signal('SIGSTOP');
  assert.equal(await second.ask('open'), 'opened');
  assert.equal(await second.ask('write'), '2');
  first.signal('SIGCONT');
  assert.match(await first.ask('write'), /^(outcome_unknown|store_failed)$/);
  assert.equal(await first.ask('write'), 'store_failed');
  assert.equal(await first.ask('close'), 'closed');
  assert.equal(await second.ask('write'), '3');
  assert.equal(await second.ask('close'), 'closed');
  assert.equal(await second.ask('open'), 'opened');
  assert.equal(await second.ask('write'), '4');
});

test(`(g) ${histories} histories of concurrent transactions are serializable`, async (t) => {
  const seen = { done: 0, failed: 0 };
  for (let n = 0; n < histories; n += 1) {
    const next = seedNumbers(seed + n);
    const size = { callers: 24, calls: 25, faults: n % 2 === 0 };
    const { done, failed } = await (n % 4 < 2 ? checkHistory : checkBlogHistory)(next, size);
    seen.done += done;
    seen.failed += failed;
  }
  t.diagnostic(`all in one order: ${JSON.stringify(seen)}`);
});

interface Server {
  readonly url: string;
  kill(): void;
  readonly ended: Promise<unknown>;
}

async function serve(t: TestContext, directory: string): Promise<Server> {
  const main = join(projectDirectory, 'dist', 'main.js');
  const options = ['--port', '0', '--data', directory, '--auth', 'none', '--log', 'json'];
  const server = startProcess(t, [main, 'serve', ...options], { CAIRN_SCRYPT_COST: '14' });
  const [, url = ''] = await server.find(/ serves (http:\/\/127\.0\.0\.1:\d+)/);
  return { url, kill: () => server.child.kill('SIGKILL'), ended: server.ended };
}

async function itemsAt(url: string, from: number): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  const reply = await fetch(`${url}/items?id:gte=${from}`);
  assert.equal(reply.status, 200, await reply.clone().text());
  const items: { id: number; name: string }[] = JSON.parse(await reply.text());
  for (const { id, name } of items) found.set(id, name);
  return found;
}

/** Creates items in sequence, and notes the acknowledged ones, until the server is gone. */
async function writeUntilKilled(url: string, prefix: string, acknowledged: Map<number, string>): Promise<void> {
  for (let n = 1; ; n += 1) {
    try {
      const name = `${prefix}n${n}`;
      const body = JSON.stringify({ name, price: n });
      const headers = { 'Content-Type': 'application/json' };
      const reply = await fetch(`${url}/items`, { method: 'POST', headers, body });
      const { id }: { id: number } = JSON.parse(await reply.text());
      assert.equal(reply.status, 201);
      acknowledged.set(id, name);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return;
    }
  }
}

interface Racer {
  /** Writes a line and resolves with the next line of output. */
  ask(line: string): Promise<string>;
  signal(name: NodeJS.Signals): void;
  kill(): Promise<unknown>;
}

async function racer(t: TestContext, words: readonly string[]): Promise<Racer> {
  const script = ['--import', 'tsx', join(import.meta.dirname, 'racer.ts')];
  const child = spawn(process.execPath, [...script, ...words], {
    cwd: projectDirectory,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const kill = async (): Promise<unknown> => child.kill('SIGKILL') && once(child, 'close');
  t.after(kill);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  assert.equal(await line(), 'ready');
  return {
    ask: (words) => {
      child.stdin.write(`${words}\n`);
      return line();
    },
    signal: (name) => child.kill(name),
    kill,
  };
}
