/**
 * The ten screens at the beginning of the reference, typed as they stand in the trouble that they are for. systemd is
 * played by three small programs: its units would need a machine of their own.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { freePorts } from '../.support/cluster/real-etcd.ts';
import { source, temporaryDirectory } from '../.support/cli/spawn.ts';
import { handbook, projectDirectory } from '../.support/source.ts';

const [, atNight = ''] = /^## At night\n(.*?)^## /ms.exec(handbook) ?? [];
const [head = '', ...screens] = atNight.split(/^### /m);
const blocksIn = (text: string): string[] =>
  Array.from(text.matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block);
const [wherever = ''] = blocksIn(head);

/** What a screen has to type, block by block. */
function blocksOf(title: string): string[] {
  const screen = screens.find((each) => each.startsWith(`${title}\n`));
  assert.ok(screen, title);
  return blocksIn(screen);
}

const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const json = { 'Content-Type': 'application/json' };
const program = [process.execPath, ...source.map((word) => (word === 'tsx' ? import.meta.resolve('tsx') : word))]
  .map((word) => `'${word}'`).join(' ');

interface Typed {
  readonly status: unknown;
  readonly out: string;
}

/** A machine with the unit of the reference, its data, and a shell of its administrator. */
class Machine {
  readonly root: string;
  readonly data: string;
  readonly #ports: readonly number[];

  private constructor(root: string, ports: readonly number[]) {
    this.root = root;
    this.data = join(root, 'var', 'lib', 'cairn');
    this.#ports = ports;
  }

  static async make(t: TestContext): Promise<Machine> {
    const machine = new Machine(temporaryDirectory(t), await freePorts(2));
    t.after(() => machine.type('systemctl stop cairn'));
    const { root, data } = machine;
    const folders = ['bin', 'etc', 'var/lib/cairn', 'var/lib/cairn-backup'];
    for (const path of folders) mkdirSync(join(root, path), { recursive: true });
    chmodSync(data, 0o700);
    const [port, opsPort] = machine.#ports;
    writeFileSync(join(root, 'etc', 'cairn.env'), 'CAIRN_SCRYPT_COST=14\n');
    const serve = `${program} serve --port ${port} --ops-port ${opsPort} --log json --data ${data}`;
    const first = `CAIRN_ADMIN_PASSWORD='${administrator.password}'`;
    machine.#program('systemctl', `
      stop() {
        [ -f pid ] || return 0
        kill $(cat pid); while kill -0 $(cat pid); do sleep 0.02; done; rm pid
      } 2> /dev/null
      start() {
        set -a; . etc/cairn.env; before=$(wc -c < log)
        ${first} setsid ${serve} >> log 2>&1 & echo $! > pid
        while kill -0 $! 2> /dev/null && ! tail -c +$before log | grep -q 'Cairn serves'; do sleep 0.02; done
      }
      touch log
      case $1 in stop) stop;; start) start;; restart) stop; start;; esac`);
    machine.#program('journalctl', 'case "$*" in *"-u cairn"*"-n "*) tail -n 5000 log;; esac');
    machine.#program('systemd-run', `
      set -a; . etc/cairn.env
      for word in "$@"; do
        case $word in --setenv=*) export "\${word#--setenv=}";; esac
        shift
        case $word in */main.js) exec ${program} "$@";; esac
      done`);
    await machine.type('systemctl start cairn');
    return machine;
  }

  #program(name: string, script: string): void {
    writeFileSync(join(this.root, 'bin', name), `#!/bin/bash\ncd ${this.root}\n${script}\n`, { mode: 0o755 });
  }

  /** Types lines of the reference, with the places of this machine, and what a person is asked for. */
  async type(lines: string, typed = ''): Promise<Typed> {
    const [, opsPort] = this.#ports;
    const here = (wherever + lines)
      .replaceAll(/(?<=[ =])\/(var|etc)\b/g, `${this.root}/$1`).replaceAll('localhost:3001', `localhost:${opsPort}`);
    const env = { PATH: `${join(this.root, 'bin')}:${process.env['PATH']}` };
    const words = ['--norc', '-c', here];
    const child = spawn('bash', words, { cwd: projectDirectory, env, stdio: ['pipe', 'pipe', 'pipe'] });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += String(chunk)));
    child.stdin.end(typed);
    const [status] = await once(child, 'close');
    assert.doesNotMatch(out, /command not found|No such file/, here);
    return { status, out };
  }

  request(method: string, path: string, body?: object, token = ''): Promise<Response> {
    const headers = { ...json, ...(token !== '' && { Authorization: `Bearer ${token}` }) };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return fetch(`http://127.0.0.1:${this.#ports[0]}${path}`, sent);
  }

  async signIn(password = administrator.password): Promise<string> {
    const answer = await this.request('POST', '/tokens', { ...administrator, password });
    assert.equal(answer.status, 201);
    return Object(await answer.json()).access_token;
  }

  /** Signs in, and makes an item. */
  async use(): Promise<string> {
    const token = await this.signIn();
    assert.equal((await this.request('POST', '/items', { name: 'Lamp', price: 1 }, token)).status, 201);
    return token;
  }

  async itemNames(token: string): Promise<string[]> {
    const items: { name: string }[] = Object(await (await this.request('GET', '/items', undefined, token)).json());
    return items.map(({ name }) => name);
  }

  logged(): string {
    return readFileSync(join(this.root, 'log'), 'utf8');
  }
}

test('does not start, and damaged: "cairn check" says what the last line says, and a repair serves', async (t) => {
  const machine = await Machine.make(t);
  await machine.use();
  await machine.type('systemctl stop cairn');
  const file = join(machine.data, 'items.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"Lamp"', '"Damp"'));
  await machine.type('systemctl start cairn');
  const [why = ''] = blocksOf('Does not start');
  const told = await machine.type(why);
  assert.equal(told.status, 78);
  const [, problem = ''] = /Cannot open the store: (.*? \[S2\]).*\(see src\/README\.md#damaged\)"/.exec(told.out) ?? [];
  assert.ok(told.out.includes(`failure  ${problem}\n`), `${told.out} says ${problem} twice`);

  const [look = '', replace = ''] = blocksOf('Damaged');
  assert.equal((await machine.type(look)).status, 0, 'an edit by hand loses nothing');
  assert.equal((await machine.type(replace)).status, 0);
  assert.deepEqual(await machine.itemNames(await machine.signIn()), ['Damp']);
  assert.ok(existsSync(join(machine.root, 'var/lib/cairn-backup/damaged/items.json')), 'what was damaged is kept');
});

test('507 and slow: the figures, more memory, and the slowest routes', async (t) => {
  const machine = await Machine.make(t);
  await machine.use();
  const [memory = ''] = blocksOf('507');
  const { status, out } = await machine.type(memory);
  assert.equal(status, 0, out);
  for (const figure of ['store_state{state="writable"} 1', 'store_records', 'heap_used_bytes', 'data_free_bytes']) {
    assert.ok(out.includes(`cairn_${figure}`), figure);
  }
  const pid = readFileSync(join(machine.root, 'pid'), 'utf8').trim();
  assert.match(readFileSync(`/proc/${pid}/environ`, 'utf8'), /NODE_OPTIONS=--max-old-space-size=1024/);
  await machine.use();
  const [look = ''] = blocksOf('Slow');
  const slow = await machine.type(look);
  for (const figure of ['event_loop_delay', 'store_append_seconds', 'store_groups_total', 'heap_used_bytes']) {
    assert.ok(slow.out.includes(`cairn_${figure}`), `${figure}: ${slow.out}`);
  }
  const last = slow.out.trim().split('\n').at(-1) ?? '';
  assert.match(last, /"route":"\/tokens".*"durationMs":\d/, 'the slowest');
});

test('503 and 429: who asks, and the counts are forgotten', async (t) => {
  const machine = await Machine.make(t);
  const wrong = { ...administrator, password: 'not the right password' };
  const statuses: number[] = [];
  for (let tries = 0; tries < 6; tries += 1) {
    statuses.push((await machine.request('POST', '/tokens', wrong)).status);
  }
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429]);
  const [throttled = ''] = blocksOf('429');
  assert.match((await machine.type(throttled)).out, /^ +6 "address":"127\.0\.0\.1"$/m);
  assert.equal((await machine.request('POST', '/tokens', wrong)).status, 401, 'after the restart');

  const line = machine.logged().split('\n').find((each) => each.includes('"status":429')) ?? '';
  writeFileSync(join(machine.root, 'log'), `${line.replace('"status":429', '"status":503')}\n`);
  const [busy = ''] = blocksOf('503');
  assert.match((await machine.type(busy)).out, /^ready\n +1 "address":"127\.0\.0\.1"$/m);
});

test('disk is full: what there is, and what grew', async (t) => {
  const machine = await Machine.make(t);
  const [look = ''] = blocksOf('Disk is full');
  const { status, out } = await machine.type(look);
  assert.equal(status, 0, out);
  assert.match(out, /%[^]*var\/lib\/cairn|var\/lib[^]*ready/);
});

test('lost password, and leaked key', async (t) => {
  const machine = await Machine.make(t);
  const [reset = ''] = blocksOf('Lost password');
  const { out } = await machine.type(reset, 'a password that is new\n');
  assert.match(out, /^1\tadmin\tadmin@localhost\.localdomain\t.*\nadmin@localhost\.localdomain has a new password/m);
  const token = await machine.signIn('a password that is new');
  assert.deepEqual(await machine.itemNames(token), []);

  const [renew = ''] = blocksOf('Leaked key');
  assert.equal((await machine.type(renew)).status, 0);
  assert.equal((await machine.request('GET', '/items', undefined, token)).status, 401);
  await machine.signIn('a password that is new');
});

test('moved to another machine: the records are there, and everybody signs in again', async (t) => {
  const [former, next] = await Promise.all([Machine.make(t), Machine.make(t)]);
  const token = await former.use();
  const [away = '', there = ''] = blocksOf('Moved to another machine');
  assert.equal((await former.type(away)).status, 0);
  await next.type('systemctl stop cairn');
  await next.type('rm /var/lib/cairn/*');
  const moved = 'var/lib/cairn-backup/moved';
  cpSync(join(former.root, moved), join(next.root, moved), { recursive: true });
  const { status, out } = await next.type(there);
  assert.equal(status, 0, out);
  assert.ok(!readdirSync(next.data).includes('admin-password'));
  assert.equal((await next.request('GET', '/items', undefined, token)).status, 401);
  assert.deepEqual(await next.itemNames(await next.signIn()), ['Lamp']);
});
