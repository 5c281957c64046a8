/** The manual's recipes for load balancers in front of several nodes, each while a node is killed. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../src/base/limits.ts';
import { findFreePorts, noEtcd, RealEtcd } from '../torture/real-etcd.ts';
import { readHandbook, projectDirectory } from '../../test/support/source.ts';

const callers = 24;
const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const json = { 'Content-Type': 'application/json' };
const lamp = JSON.stringify({ name: 'Lamp', price: 1 });

interface Answer {
  readonly method: string;
  /** 0 if the connection broke. */
  readonly status: number;
  readonly tookMs: number;
}

/** Adds what the program needs to a recipe, writes it, and returns the program's arguments. */
const programs: Readonly<Record<string, (recipe: string, directory: string) => readonly string[]>> = {
  nginx(recipe, directory) {
    const file = join(directory, 'nginx.conf');
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) =>
      `${name}_temp_path ${join(directory, name)};`);
    // Its workers write large bodies below the directory of this user.
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    writeFileSync(file, `${user} daemon off; pid ${join(directory, 'pid')}; error_log stderr crit; events {}
      http { access_log off; ${temporary.join(' ')} ${recipe} }`);
    return ['-p', directory, '-c', file];
  },
  haproxy(recipe, directory) {
    const file = join(directory, 'haproxy.cfg');
    writeFileSync(file, recipe);
    return ['-db', '-f', file];
  },
};

for (const [name, configure] of Object.entries(programs)) {
  test(`behind ${name}, a killed node costs no caller a second`, async (t) => {
    if (noEtcd !== undefined) return t.skip(noEtcd);
    if (spawnSync(name, ['-v']).error !== undefined) return t.skip(`${name} is not installed here`);
    const etcd = await RealEtcd.start();
    const ports = await findFreePorts(4);
    const [port = 0, ...nodePorts] = ports;
    const nodes = nodePorts.map((nodePort) => startNode(etcd, nodePort));
    t.after(async () => {
      await Promise.all(nodes.map(end));
      await etcd.stop();
    });
    for (const nodePort of nodePorts) await until(() => statusOf(nodePort, '/readyz'), 200);
    startProgram(t, name, configure, recipeOf(name, port, nodePorts));
    await until(() => statusOf(port, '/readyz'), 200);

    const credentials = { method: 'POST', headers: json, body: JSON.stringify(administrator) };
    const { access_token } = Object(await (await fetch(`http://127.0.0.1:${port}/tokens`, credentials)).json());
    const authorization = { Authorization: `Bearer ${access_token}` };
    const answers: Answer[] = [];
    let isOver = false;
    const work = Array.from({ length: callers }, async (_, caller) => {
      // Each caller has its own address, since the recipes keep a caller at one node.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const from = { agent, host: '127.0.0.1', port, localAddress: `127.0.0.${10 + caller}`, family: 4 };
      for (let turn = 0; !isOver; turn += 1) {
        const isWrite = turn % 4 === 0;
        const key = { ...json, ...authorization, 'Idempotency-Key': `"${caller}-${turn}"` };
        const asked = isWrite
          ? ask(from, 'POST', '/items', key, lamp)
          : ask(from, 'GET', '/items?limit=5', authorization);
        answers.push(await asked);
      }
      agent.destroy();
    });
    await until(async () => answers.length > 500, true);
    const before = answers.splice(0);
    nodes[1]?.kill('SIGKILL');
    await until(async () => answers.length > 500, true);
    isOver = true;
    await Promise.all(work);

    const forged = { ...authorization, 'X-Request-Id': 'forged' };
    const { headers } = await fetch(`http://127.0.0.1:${port}/items?limit=1`, { headers: forged });
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{32,36}$/, 'the balancer makes the id');
    const largest = lamp.padEnd(limits.bodyBytesMax);
    for (const [body, status] of [[largest, 201], [`${largest} `, 413]] as const) {
      const large = await fetch(`http://127.0.0.1:${port}/items`, {
        method: 'POST', headers: { ...json, ...authorization }, body,
      });
      const isOwn = /^application\/(?:problem\+)?json$/.test(large.headers.get('content-type') ?? '');
      assert.deepEqual([large.status, isOwn], [status, true], 'Cairn, and not the balancer, says what is too large');
    }

    assert.deepEqual(before.filter(({ status }) => status >= 300 || status === 0), []);
    // A machine that is slow without a kill is slow with it.
    const boundMs = Math.max(1000, 3 * Math.max(...before.map(({ tookMs }) => tookMs)));
    const slowest = Math.max(...answers.map(({ tookMs }) => tookMs));
    assert.ok(slowest < boundMs, `the slowest answer took ${slowest} ms`);
    const failed = answers.filter(({ status }) => status >= 300 || status === 0);
    assert.deepEqual(failed.filter(({ method }) => method === 'GET'), [], 'reads are sent to another node');
    assert.ok(failed.length <= callers, `${failed.length} writes failed, which a caller sends again with its key`);
    t.diagnostic(`${name}: ${answers.length} answers after the kill, slowest ${Math.round(slowest)} ms ` +
      `(before: ${Math.round(boundMs / 3)} or less), ${failed.length} writes answered ${failed[0]?.status ?? '-'}`);
  });
}

function recipeOf(name: string, port: number, nodePorts: readonly number[]): string {
  const [, section = ''] = /\n### Load balancers\n([^]*?)\n##+ /.exec(readHandbook()) ?? [];
  const [, block = ''] = new RegExp(`\`\`\`${name}\n([^]*?)\`\`\``).exec(section) ?? [];
  assert.match(block, /10\.0\.0\.3:3000/, `there is a recipe for ${name}`);
  return nodePorts
    .reduce((recipe, nodePort, index) => recipe.replace(`10.0.0.${index + 1}:3000`, `127.0.0.1:${nodePort}`), block)
    .replace(/(listen |bind :)80\b/, `$1${port}`);
}

function startNode(etcd: RealEtcd, port: number): ChildProcess {
  const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
  const data = join(etcd.directory, `node-${port}`);
  const options = ['--cluster', etcd.addresses.join(','), '--port', String(port)];
  const main = join(projectDirectory, 'src', 'main.ts');
  return spawn(process.execPath, [...typescript, main, 'serve', ...options, '--trust-proxy', '127.0.0.1'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, CAIRN_DATA: data, CAIRN_ADMIN_PASSWORD: administrator.password },
  });
}

function startProgram(
  t: TestContext, name: string, configure: (recipe: string, directory: string) => readonly string[], recipe: string,
): void {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-balancer-'));
  const program = spawn(name, configure(recipe, directory), { stdio: ['ignore', 'ignore', 'inherit'] });
  t.after(async () => {
    await end(program);
    rmSync(directory, { recursive: true });
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

function ask(
  from: object, method: string, path: string, headers: Record<string, string> = {}, body = '',
): Promise<Answer> {
  const begunAt = performance.now();
  return new Promise((resolve) => {
    const done = (status: number) => resolve({ method, status, tookMs: performance.now() - begunAt });
    const asking = request({ ...from, method, path, headers }, (reply) => {
      text(reply).then(() => done(reply.statusCode ?? 0), () => done(0));
    });
    asking.on('error', () => done(0)).end(body);
  });
}

function statusOf(port: number, path: string): Promise<number> {
  return ask({ host: '127.0.0.1', port }, 'GET', path).then(({ status }) => status);
}

async function until<T>(look: () => Promise<T>, expected: T): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const seen = await look();
    if (seen === expected) return;
    assert.ok(tries < 600, `waited for ${String(expected)}, and saw ${String(seen)}`);
    await delay(50);
  }
}
