/** The manual's line for a small device: its memory, a start, power cuts, and writes to the flash. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fillItems } from '../bench/fill.ts';
import { measureWear } from '../bench/wear.ts';
import { startProcess, type Running } from '../../test/support/cli/spawn.ts';
import { readHandbook } from '../../test/support/source.ts';
import { clone, run as runToEnd } from './clone.ts';

const [, section = ''] = /^## Devices\n(.*?)^## /ms.exec(readHandbook()) ?? [];
const [, line = ''] = /^```sh\nnode (.*)\n```$/m.exec(section) ?? [];
const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const environment = { CAIRN_ADMIN_PASSWORD: administrator.password };
const memoryMax = 256 * 1024 ** 2;

const work = mkdtempSync(join(tmpdir(), 'cairn-device-'));
after(() => rmSync(work, { recursive: true }));
const project = clone(join(work, 'clone'));
runToEnd(project, process.execPath, '.ci/build.js', 'dist');
const main = join(project, 'dist', 'main.js');

/** This Node.js, and the ones named by CI, separated by colons. */
const nodes = [process.execPath, ...(process.env['CAIRN_NODES'] ?? '').split(':').filter((path) => path !== '')];

/** A group of processes limited to the device's memory; undefined if it cannot be created. */
function memoryGroup(t: TestContext): string | undefined {
  const isFirst = existsSync('/sys/fs/cgroup/memory');
  const group = join(isFirst ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `cairn-${process.pid}`);
  const limit = isFirst ? 'memory.limit_in_bytes' : 'memory.max';
  try {
    mkdirSync(group, { recursive: true });
    t.after(() => rmdirSync(group));
    writeFileSync(join(group, limit), String(memoryMax));
    return join(group, 'cgroup.procs');
  } catch {
    return undefined;
  }
}

class Device {
  readonly #server: Running;
  readonly origin: string;
  readonly loadMs: number;

  private constructor(server: Running, origin: string, loadMs: number) {
    this.#server = server;
    this.origin = origin;
    this.loadMs = loadMs;
  }

  /** Starts the manual's line; `group` limits its memory. */
  static async start(t: TestContext, node: string, data: string, group?: string): Promise<Device> {
    const words = line.replace('dist/main.js', main).replace('/var/lib/cairn', data).split(' ');
    const script = `${group === undefined ? '' : `echo $$ > ${group}; `}exec "$0" "$@"`;
    const server = startProcess(t, ['-c', script, node, ...words, '--port', '0', '--log', 'json'], environment, 'sh');
    const [, loadMs = ''] = await server.find(/"loadMs":(\d+)/);
    const [, origin = ''] = await server.find(/Cairn serves (http:[^"]+)/);
    return new Device(server, origin, Number(loadMs));
  }

  async ask(method: string, path: string, body?: object, token = ''): Promise<{ status: number; text: string }> {
    const headers = { 'Content-Type': 'application/json', ...(token !== '' && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(this.origin + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, text: await answer.text() };
  }

  async signIn(): Promise<string> {
    return JSON.parse((await this.ask('POST', '/tokens', administrator)).text).access_token;
  }

  /** Its largest memory so far, in MB. */
  get peakMegabytes(): number {
    const status = readFileSync(`/proc/${this.#server.child.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024 / 1e6;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#server.child.kill(signal);
    assert.equal(await this.#server.ended, signal === 'SIGTERM' ? 0 : null, this.#server.err);
    assert.doesNotMatch(this.#server.out, /"kind":"request"/, 'the log is short');
  }
}

/** The cost of a write after a pause. It begins first, since it waits long, and other tests do not affect its bytes. */
const isLinux = process.platform === 'linux';
const seldom = isLinux
  ? measureWear({ main, textLength: 100, records: 100_000, words: [], pauseMs: 40_000, writes: 1 })
  : Promise.resolve(0);
seldom.catch(() => undefined);

const lamp = { name: 'Lamp', price: 1 };

for (const records of [0, 10_000, 100_000]) {
  const filled = join(work, `filled-${records}`);
  for (const node of nodes) {
    const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
    test(`Node.js ${stdout.trim()}: ${records} records in 256 MB, also after a power cut`, async (t) => {
      if (!existsSync(filled)) await fillItems(filled, records);
      const data = join(work, `data-${records}-${stdout.trim()}`);
      cpSync(filled, data, { recursive: true });
      const group = memoryGroup(t);
      const device = await Device.start(t, node, data, group);
      const token = await device.signIn();
      for (let written = 0; written < 200; written += 1) {
        assert.equal((await device.ask('POST', '/items', lamp, token)).status, 201);
      }
      const all = await Promise.all(Array.from({ length: 3 }, () => device.ask('GET', '/items', undefined, token)));
      for (const { status, text } of all) assert.deepEqual([status, JSON.parse(text).length], [200, records + 200]);
      assert.equal((await device.ask('GET', '/items?sort=-price&limit=20&q=lamp', undefined, token)).status, 200);
      const peak = device.peakMegabytes;
      assert.ok(peak < 256, `${peak} MB`);
      await device.end('SIGKILL');

      const again = await Device.start(t, node, data, group);
      const { text } = await again.ask('GET', '/items', undefined, await again.signIn());
      assert.equal(JSON.parse(text).length, records + 200, 'what was acknowledged is there');
      await again.end('SIGTERM');
      t.diagnostic(`${Math.round(peak)} MB${group === undefined ? '' : ' (limited to 256)'}; ` +
        `loaded in ${device.loadMs} ms, after a power cut in ${again.loadMs}`);
    });
  }
}

test('a device without a clock starts in 1970 and continues once its clock is set', async (t) => {
  const data = join(work, 'no-clock');
  const shifted = join(work, 'clock.mjs');
  writeFileSync(shifted, 'const { now } = Date; const begun = now(); Date.now = () => now() - begun;');
  const words = ['--import', shifted, ...line.replace('dist/main.js', main).replace('/var/lib/cairn', data).split(' ')];
  const server = startProcess(t, [...words, '--port', '0', '--log', 'json'], environment);
  const [, origin = ''] = await server.find(/Cairn serves (http:[^"]+)/);
  const headers = { 'Content-Type': 'application/json' };
  const signIn = { method: 'POST', headers, body: JSON.stringify(administrator) };
  assert.equal((await fetch(`${origin}/tokens`, signIn)).status, 201);
  server.child.kill('SIGKILL');
  await server.ended;
  const later = await Device.start(t, process.execPath, data);
  assert.equal((await later.ask('POST', '/items', lamp, await later.signIn())).status, 201);
  await later.end('SIGTERM');
});

test('100,000 records imported at 96 MiB leave room for writes', async (t) => {
  for (const [index, node] of nodes.entries()) await importAndWrite(t, node, join(work, `imported-${index}`));
});

async function importAndWrite(t: TestContext, node: string, data: string): Promise<void> {
  const file = join(work, 'db.json');
  const items = Array.from({ length: 100_000 }, (_, index) => ({ id: index + 1, name: `Item ${index}`, price: index }));
  writeFileSync(file, JSON.stringify({ items }));
  const [flags = ''] = line.split(' dist/main.js');
  runToEnd(work, node, ...flags.split(' '), main, 'import', file, '--data', data);
  const device = await Device.start(t, node, data);
  const token = await device.signIn();
  const statuses = new Map<number, number>();
  for (let written = 0; written < 300; written += 1) {
    const { status } = await device.ask('POST', '/items', lamp, token);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    await delay(5);
  }
  assert.deepEqual([...statuses], [[201, 300]]);
  assert.ok(device.peakMegabytes < 256, `${device.peakMegabytes} MB`);
  await device.end('SIGTERM');
}

test('a write costs a few pages of flash, whatever the size of the store', {
  skip: !isLinux && 'only Linux tells what was written',
}, async (t) => {
  const cost = (records: number) => measureWear({ main, textLength: 100, records, words: [], pauseMs: 0, writes: 200 });
  const [none, many] = await Promise.all([cost(0), cost(100_000)]);
  t.diagnostic(`${Math.round(none)} bytes a record, ${Math.round(many)} beside 100,000 others`);
  assert.ok(many < 1.5 * none + 65_536, `${many} is much more than ${none}`);
  const written = await seldom;
  assert.ok(written < 65_536, `a write each 40 s writes ${written} bytes`);
});
