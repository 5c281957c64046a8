/** The manual's recipes for nginx and haproxy, run with the real ones if installed. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../src/base/limits.ts';
import { createLineLog } from '../../src/log/log.ts';
import { makeCertificate } from '../../test/support/http/raw.ts';
import { readHandbook } from '../../test/support/source.ts';
import { createApp, type App } from '../../test/support/inside.ts';
import { mountSmallDisk } from '../../test/support/small-disk.ts';
import { waitUntil } from '../../test/support/basics.ts';

const administrator = { email: 'ada@example.org', password: 'correct horse battery staple' };

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

interface Proxied {
  readonly app: App;
  readonly port: number;
  ask(method: string, path: string, headers?: Record<string, string>, body?: string): Promise<Answer>;
  lines(): Record<string, unknown>[];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Writes a recipe with other ports and files, and what the program needs around it. */
type Configure = (recipe: string, directory: string) => { readonly file: string; readonly args: readonly string[] };

const programs = {
  nginx(recipe, directory) {
    const file = join(directory, 'nginx.conf');
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) =>
      `${name}_temp_path ${join(directory, name)};`);
    // Its workers write large bodies below the directory of this user.
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    writeFileSync(file, `${user} daemon off; pid ${join(directory, 'pid')}; error_log stderr; events {}
      http { access_log off; ${temporary.join(' ')} ${recipe} }`);
    return { file, args: ['-p', directory, '-c', file] };
  },
  haproxy(recipe, directory) {
    const file = join(directory, 'haproxy.cfg');
    writeFileSync(file, recipe);
    return { file, args: ['-db', '-f', file] };
  },
} satisfies Readonly<Record<string, Configure>>;

/** Starts Cairn behind a proxy. The caller comes from 127.0.0.5, the proxy from 127.0.0.1. */
async function startProxied(
  t: TestContext, name: string, configure: Configure, data?: string,
): Promise<Proxied> {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-proxy-'));
  const logged: string[] = [];
  const sink = { write: (bytes: Uint8Array, done: () => void) => (logged.push(String(bytes)), done()) };
  const log = createLineLog({ level: 'info', sink });
  const notes = { name: 'notes', fields: { content: { kind: 'json', bytesMax: limits.recordBytesMax } } } as const;
  const own = { basePath: '/api', trustedProxies: ['127.0.0.1'], collections: [notes] };
  const options = { ...own, administrator, scryptCost: 1, log, ...(data !== undefined && { directory: data }) };
  const app = await createApp(options);
  const cairnPort = await app.listen({ port: 0, host: '127.0.0.1' });
  const port = await freePort();
  const tls = makeCertificate(directory, 'localhost');
  assert.ok(tls !== undefined, 'openssl makes the certificate');
  writeFileSync(join(directory, 'localhost.pem'), tls.cert + tls.key);
  // The cluster's proxies name other addresses.
  const blocks = readHandbook().matchAll(new RegExp(`\`\`\`${name}\n([^]*?)\`\`\``, 'g'));
  const block = Array.from(blocks, ([, found = '']) => found).find((one) => one.includes('127.0.0.1:3000')) ?? '';
  assert.notEqual(block, '', `there is a recipe for ${name}`);
  const recipe = block.replace('127.0.0.1:3000', `127.0.0.1:${cairnPort}`).replace('443', String(port))
    .replaceAll('/etc/ssl/cairn', join(directory, 'localhost'));
  const child = spawn(name, configure(recipe, directory).args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const complaints: string[] = [];
  child.stderr.on('data', (chunk) => complaints.push(String(chunk)));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(async () => {
    agent.destroy();
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
    await app.close();
    rmSync(directory, { recursive: true });
  });

  const from = { localAddress: '127.0.0.5', family: 4, rejectUnauthorized: false };
  const target = { ...from, agent, port, host: 'localhost' };
  const ask: Proxied['ask'] = (method, path, headers = {}, body = '') =>
    new Promise((resolve, reject) => {
      const asking = request({ ...target, method, path, headers }, (reply) => {
        const { statusCode: status = 0, headers: answered } = reply;
        text(reply).then((content) => resolve({ status, headers: answered, body: content }), reject);
      });
      asking.on('error', reject).end(body);
    });
  const isUp = (): Promise<boolean> => ask('GET', '/api/livez').then(({ status }) => status === 200, () => false);
  for (let tries = 0; !(await isUp()); tries += 1) {
    assert.ok(tries < 600 && child.exitCode === null, complaints.join(''));
    await delay(100);
  }
  const lines = (): Record<string, unknown>[] =>
    logged.join('').trimEnd().split('\n').map((line): Record<string, unknown> => JSON.parse(line));
  return { app, port, ask, lines };
}

for (const [name, configure] of Object.entries(programs)) {
  test(`the recipe for ${name} passes on the caller's address and request id`, async (t) => {
    if (spawnSync(name, ['-v']).error !== undefined) return t.skip(`${name} is not installed here`);
    const { port, ask, lines } = await startProxied(t, name, configure);
    const json = { 'Content-Type': 'application/json' };
    const origin = { Origin: `https://localhost:${port}` };

    const signedIn = await ask('POST', '/api/login', { ...json, ...origin }, JSON.stringify(administrator));
    assert.equal(signedIn.status, 200, 'the Host has its port, so a page may sign in');
    const [setCookie = ''] = signedIn.headers['set-cookie'] ?? [];
    assert.match(setCookie, /; Path=\/api; .*Secure/);
    const cookie = { Cookie: setCookie.split(';')[0] ?? '' };
    const foreign = { Origin: 'https://localhost' };
    const lamp = JSON.stringify({ name: 'Lamp', price: 1 });
    const refused = await ask('POST', '/api/items', { ...json, ...cookie, ...foreign }, lamp);
    assert.equal(refused.status, 403, 'another port is another site');
    for (const id of [1, 2, 3]) {
      const made = await ask('POST', '/api/items', { ...json, ...cookie, ...origin }, lamp);
      assert.deepEqual([made.status, made.headers['location']], [201, `/api/items/${id}`]);
    }

    // The record is stored with its id and its owner; white space makes the body as large as allowed.
    const large = JSON.stringify({ content: 'x'.repeat(limits.recordBytesMax - 100) }).padEnd(limits.recordBytesMax);
    assert.equal((await ask('POST', '/api/notes', { ...json, ...cookie, ...origin }, large)).status, 201);
    const larger = await ask('POST', '/api/notes', { ...json, ...cookie, ...origin }, `${large} `);
    assert.deepEqual([larger.status, larger.headers['content-type']], [413, 'application/problem+json']);
    const withoutSlash = await ask('GET', '/api');
    assert.ok([301, 303].includes(withoutSlash.status), String(withoutSlash.status));
    assert.match(String(withoutSlash.headers['location']), /\/api\/$/);

    const page = await ask('GET', '/api/items?limit=1', cookie);
    assert.match(String(page.headers['link']), /^<\/api\/items\?limit=1&cursor=/);
    const named = await ask('GET', '/api/livez', { Host: 'cairn.example' });
    assert.equal(named.headers['strict-transport-security'], 'max-age=31536000');
    const etag = String(page.headers['etag']);
    assert.match(etag, /^"/, 'entity tags stay strong');
    assert.equal((await ask('GET', '/api/items?limit=1', { ...cookie, 'If-None-Match': etag })).status, 304);
    assert.equal((await ask('GET', '/api/')).status, 200);

    const forged = {
      ...json,
      Host: 'cairn.example',
      'X-Forwarded-For': '6.6.6.6',
      'X-Request-Id': 'forged',
      'X-Forwarded-Proto': 'http',
      // Connection lists headers for the proxy only, which may then drop headers that it has just set.
      Connection: 'keep-alive, X-Forwarded-For, X-Request-Id, X-Forwarded-Proto',
    };
    const wrong = JSON.stringify({ ...administrator, password: 'another password' });
    const failed = await ask('POST', '/api/login', forged, wrong);
    assert.equal(failed.status, 401);
    assert.equal(failed.headers['strict-transport-security'], 'max-age=31536000');
    const id = failed.headers['x-request-id'];
    assert.match(String(id), name === 'nginx' ? /^[0-9a-f]{32}$/ : /^[0-9a-f]{8}-/);
    await waitUntil(() => lines().some((line) => line['id'] === id));
    assert.equal(lines().find(({ event }) => event === 'login_failed')?.['address'], '127.0.0.5');
    assert.ok(lines().some((line) => line['id'] === id && line['status'] === 401), 'the log has the id of the answer');
  });

  test(`behind ${name}, reads and removals work while the disk is full`, async (t) => {
    if (spawnSync(name, ['-v']).error !== undefined) return t.skip(`${name} is not installed here`);
    const disk = mountSmallDisk(t, '6m');
    if (disk === undefined) return t.skip('no file system can be mounted here');
    const { app, port, ask, lines } = await startProxied(t, name, configure, join(disk, 'data'));
    const json = { 'Content-Type': 'application/json', Origin: `https://localhost:${port}` };
    const { headers } = await ask('POST', '/api/login', json, JSON.stringify(administrator));
    const signedIn = { ...json, Cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
    const note = JSON.stringify({ content: 'x'.repeat(50_000) });
    const statuses: number[] = [];
    do statuses.push((await ask('POST', '/api/notes', signedIn, note)).status);
    while (statuses.at(-1) === 201 && statuses.length < 500);
    assert.deepEqual([statuses.at(-1), app.store.state], [507, 'full']);

    // haproxy takes a server away after three failed probes.
    const countProbes = () => lines().filter(({ route }) => route === '/readyz').length;
    const probes = countProbes();
    if (name === 'haproxy') await waitUntil(() => countProbes() > probes + 3);
    const ready = await ask('GET', '/api/readyz');
    assert.deepEqual([ready.status, JSON.parse(ready.body)], [200, { status: 'ready', writes: 'full' }]);
    assert.equal((await ask('GET', '/api/notes/1', signedIn)).status, 200);
    assert.equal((await ask('DELETE', '/api/notes/1', signedIn)).status, 204);
    await app.close();
  });
}

test("the manual's lines for nginx limit the rate of an address", async (t) => {
  if (spawnSync('nginx', ['-v']).error !== undefined) return t.skip('nginx is not installed here');
  const [, zone = '', rest = ''] = /```nginx\n(limit_req_zone .*\n)([^]*?)```/.exec(readHandbook()) ?? [];
  const limited: Configure = (recipe, directory) => {
    const limiting = zone + recipe.replace('location /api/ {', (line) => `${line}\n${rest}`);
    return programs.nginx(limiting, directory);
  };
  const { app, ask } = await startProxied(t, 'nginx', limited);
  let status = 200;
  for (let sent = 0; status === 200 && sent < 10_000; sent += 1) ({ status } = await ask('GET', '/api/livez'));
  assert.equal(status, 429);
  await app.close();
});
