import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findFreePorts } from '../torture/real-etcd.ts';
import { sourceArguments, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { readHandbook, projectDirectory } from '../../test/support/source.ts';

/** The shell blocks of a section of the manual, by the line of its heading. */
export function readBlocks(heading: string): string[] {
  const [, section = ''] = new RegExp(`^${heading}\n(.*?)(?=^##|$(?![^]))`, 'ms').exec(readHandbook()) ?? [];
  const blocks = Array.from(section.matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block);
  assert.ok(blocks.length > 0, heading);
  return blocks;
}

/** The function `cairn`, which is typed first. */
const [wherever = ''] = readBlocks('## At night');

export const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const json = { 'Content-Type': 'application/json' };
export const program = [
  process.execPath,
  ...sourceArguments.map((word) => (word === 'tsx' ? import.meta.resolve('tsx') : word)),
]
  .map((word) => `'${word}'`)
  .join(' ');

export interface Typed {
  readonly status: unknown;
  readonly out: string;
}

/** A machine with the manual's unit, its data, and a shell of its administrator. */
export class Machine {
  readonly root: string;
  readonly data: string;
  readonly #port: number;

  private constructor(root: string, port: number) {
    this.root = root;
    this.data = join(root, 'var', 'lib', 'cairn');
    this.#port = port;
  }

  static async make(t: TestContext): Promise<Machine> {
    const [freePort = 0] = await findFreePorts(1);
    const machine = new Machine(temporaryDirectory(t), freePort);
    t.after(() => machine.type('systemctl stop cairn'));
    const { root, data } = machine;
    for (const path of ['bin', 'etc/cairn', 'opt/cairn']) mkdirSync(join(root, path), { recursive: true });
    // As systemd creates them for a dynamic user.
    for (const name of ['cairn', 'cairn-backup']) {
      mkdirSync(join(root, 'var/lib/private', name), { recursive: true });
      symlinkSync(`private/${name}`, join(root, 'var/lib', name));
    }
    chmodSync(data, 0o700);
    writeFileSync(join(root, 'etc', 'cairn', 'env'), 'CAIRN_SCRYPT_COST=14\n');
    const serve = `${program} serve --port ${freePort} --log json --data ${data}`;
    const first = `CAIRN_ADMIN_PASSWORD='${administrator.password}'`;
    machine.#program('systemctl', `
      stop() {
        [ -f pid ] || return 0
        kill $(cat pid); while kill -0 $(cat pid); do sleep 0.02; done; rm pid
      } 2> /dev/null
      start() {
        set -a; . etc/cairn/env; before=$(wc -c < log)
        ${first} setsid ${serve} >> log 2>&1 & echo $! > pid
        while kill -0 $! 2> /dev/null && ! tail -c +$before log | grep -q 'Cairn serves'; do sleep 0.02; done
      }
      touch log
      case $1 in stop) stop;; start) start;; restart) stop; start;; esac`);
    machine.#program('journalctl', 'case "$*" in *"-u cairn"*"-n "*) tail -n 5000 log;; esac');
    machine.#program('systemd-run', `
      set -a; . etc/cairn/env
      for word in "$@"; do
        case $word in --setenv=*) export "\${word#--setenv=}";; esac
        shift
        case $word in */main.js) exec ${program} "$@";; esac
      done`);
    await machine.type('systemctl start cairn');
    const sent = { name: 'Figures', readOnly: true, currentPassword: administrator.password };
    const made = await machine.request('POST', '/keys', sent, await machine.signIn());
    assert.equal(made.status, 201);
    const line = `Authorization: Bearer ${Object(await made.json()).key}\n`;
    writeFileSync(join(root, 'etc', 'cairn', 'metrics'), line, { mode: 0o600 });
    return machine;
  }

  #program(name: string, script: string): void {
    writeFileSync(join(this.root, 'bin', name), `#!/bin/bash\ncd ${this.root}\n${script}\n`, { mode: 0o755 });
  }

  /** Types lines of the manual with this machine's places, and the input that they ask for. */
  async type(lines: string, typed = ''): Promise<Typed> {
    const here = (wherever + lines)
      .replaceAll(/(?<=[ =@])\/(var|etc|opt)\b/g, `${this.root}/$1`)
      .replaceAll('localhost:3000', `localhost:${this.#port}`);
    const env = { PATH: `${join(this.root, 'bin')}:${process.env['PATH']}` };
    const words = ['--norc', '-c', here];
    const child = spawn('bash', words, { cwd: projectDirectory, env, stdio: ['pipe', 'pipe', 'pipe'] });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += String(chunk)));
    // It may have ended without reading any of it.
    child.stdin.on('error', () => undefined).end(typed);
    const [status] = await once(child, 'close');
    assert.doesNotMatch(out, /command not found|No such file/, here);
    return { status, out };
  }

  request(method: string, path: string, body?: object, token = ''): Promise<Response> {
    const headers = { ...json, ...(token !== '' && { Authorization: `Bearer ${token}` }) };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return fetch(`http://127.0.0.1:${this.#port}${path}`, sent);
  }

  async signIn(password = administrator.password): Promise<string> {
    const answer = await this.request('POST', '/tokens', { ...administrator, password });
    assert.equal(answer.status, 201);
    return Object(await answer.json()).access_token;
  }

  /** Signs in, and creates an item. */
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
