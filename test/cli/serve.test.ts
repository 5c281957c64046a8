import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { get } from 'node:https';
import {
  copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readGreeting, makeCertificate } from '../support/http/raw.ts';
import { parseExposition, sampleValue } from '../support/contract.ts';
import { isLockedRun, waitUntil } from '../support/basics.ts';
import {
  startCairn,
  testEnvironment,
  startProcess,
  sourceArguments,
  temporaryDirectory,
} from '../support/cli/spawn.ts';
import { startServer } from '../support/cli/terminal.ts';

const url = /Cairn serves (http:\/\/127\.0\.0\.1:\d+)/;

/** Runs a server that does not start. */
async function refused(t: TestContext, words: readonly string[], environment: NodeJS.ProcessEnv = testEnvironment) {
  const server = startServer(t, words, environment);
  return { code: await server.ended, err: server.err };
}

/** Reads a response over TLS with any certificate. */
async function readSecurely(address: string): Promise<string> {
  const [reply] = await once(get(address, { rejectUnauthorized: false, agent: false }), 'response');
  let text = '';
  for await (const chunk of reply) text += String(chunk);
  return text;
}

/** The port of something else that listens. */
async function takenPort(t: TestContext): Promise<string> {
  const listener = createServer().listen(0, '127.0.0.1');
  t.after(() => listener.close());
  await once(listener, 'listening');
  return String((listener.address() as AddressInfo).port);
}

test('a server: from its first line to its last, with figures for operators', async (t) => {
  const directory = temporaryDirectory(t);
  const data = join(directory, 'data');
  const server = startCairn(t, ['--data', data, '--port', '0', '--log', 'json']);
  const [, base = ''] = await server.find(url);

  assert.equal((await fetch(`${base}/readyz`)).status, 200);
  const login = await fetch(`${base}/tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email: 'admin@localhost.localdomain', password: 'correct horse battery' }),
  });
  assert.equal(login.status, 201);
  const { access_token: token } = await login.json() as { access_token: string };
  const made = await fetch(`${base}/items`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: '{"name":"Lamp","price":24.5}',
  });
  assert.equal(made.status, 201);
  assert.equal((await fetch(`${base}/metrics`)).status, 401);

  const page = await fetch(`${base}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(page.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const samples = parseExposition(await page.text());
  const value = (name: string, labels?: Record<string, string>) => sampleValue(samples, name, labels);
  assert.equal(value('cairn_http_requests_total', { method: 'POST', route: '/items', status: '201' }), 1);
  assert.equal(value('cairn_store_records', { collection: 'items' }), 1);
  assert.equal(value('cairn_store_state', { state: 'writable' }), 1);
  assert.ok((value('process_resident_memory_bytes') ?? 0) > 1e6);
  assert.ok((value('cairn_data_free_bytes') ?? 0) > 1e6);
  assert.equal(value('cairn_http_connections_refused_total'), 0);
  assert.equal(value('cairn_refusals_total', { cause: 'own_share' }), 0);
  assert.equal(value('cairn_tls_certificate_end_timestamp_seconds'), undefined);
  if (existsSync('/proc/self/fd') && !isLockedRun) assert.ok((value('process_open_fds') ?? 0) > 10);

  const second = await refused(t, ['--data', data, '--port', '0']);
  assert.equal(second.code, 75);
  assert.match(second.err, /^Cannot open the store: .* holds it/);

  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
  assert.equal(server.err, '');
  const lines = server.out.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  const [{ message, version, directory: loaded, records, loadMs } = {}] = lines;
  assert.deepEqual([message, loaded, records], ['Cairn is loaded', data, 0]);
  assert.ok(typeof version === 'string' && Number(loadMs) >= 0);
  assert.deepEqual(lines.filter(({ kind }) => kind === 'request').map(({ method, route, status, userId }) =>
    [method, route, status, userId]), [
    ['GET', '/readyz', 200, null], ['POST', '/tokens', 201, null], ['POST', '/items', 201, 1],
    ['GET', '/metrics', 401, null], ['GET', '/metrics', 200, 1],
  ]);
  assert.ok(!server.out.includes(token) && !server.out.includes('correct horse'), 'no secret in the log');
  assert.ok(readFileSync(join(data, 'items.json'), 'utf8').includes('Lamp'), 'a clean stop leaves plain files');
  const modes = ['.', ...readdirSync(data)].map((name) => statSync(join(data, name)).mode & 0o077);
  assert.deepEqual(modes.filter((mode) => mode !== 0), []);
});

test('the source runs as it stands', { skip: isLockedRun && 'there is only what was built' }, async (t) => {
  const running = startProcess(t, [...sourceArguments, '--version']);
  assert.equal(await running.ended, 0, running.err);
  assert.match(running.out, /^cairn \S+ on Node\.js v\d+/);
});

test('without a terminal, the generated password is in a file that only its owner reads', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  mkdirSync(data);
  const server = startCairn(t, ['--data', data, '--port', '0'], { CAIRN_SCRYPT_COST: '14', CAIRN_PROT: '80' });
  const [, base = ''] = await server.find(url);
  const file = join(data, 'admin-password');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const password = readFileSync(file, 'utf8').trim();
  assert.match(server.out, /CAIRN_PROT is not an option/);
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password });
  const headers = { 'Content-Type': 'application/json' };
  const signedIn = await fetch(`${base}/tokens`, { method: 'POST', headers, body });
  assert.equal(signedIn.status, 201);
  const { access_token: token } = await signedIn.json() as { access_token: string };
  const changed = await fetch(`${base}/users/1`, {
    method: 'PATCH',
    headers: { ...headers, Authorization: `Bearer ${token}` },
    body: JSON.stringify({ currentPassword: password, password: 'a password of my own' }),
  });
  assert.equal(changed.status, 200);
  await waitUntil(() => !existsSync(file), 'the file goes when the password is changed');
  server.child.kill('SIGINT');
  server.child.kill('SIGINT');
  assert.equal(await server.ended, 0, 'a signal that comes twice is one');
  assert.ok(server.err.includes(file) && !(server.err + server.out).includes(password));
});

test('a password that cannot be kept is nobody\'s, and the next start makes another', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  mkdirSync(join(data, 'admin-password.tmp'), { recursive: true });
  const words = ['--data', data, '--port', '0', '--scrypt-cost', '14', '--password-min', '40'];
  assert.equal((await refused(t, words, {})).code, 74);
  rmSync(join(data, 'admin-password.tmp'), { recursive: true });
  const next = startServer(t, words, {});
  await next.find(url);
  assert.match(readFileSync(join(data, 'admin-password'), 'utf8'), /^[\w-]{40}\n$/);
  await next.stop();
});

test('a first start whose port is taken makes no administrator, so no password is lost', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const words = ['--data', data, '--scrypt-cost', '14', '--port'];
  const { code, err } = await refused(t, [...words, await takenPort(t)], {});
  assert.equal(code, 75);
  assert.match(err, /^Cannot go on: listen EADDRINUSE.*\n$/, 'and no password is shown');
  assert.ok(!existsSync(join(data, 'admin-password')));
  const next = startServer(t, [...words, '0'], {});
  await next.find(url);
  assert.ok(existsSync(join(data, 'admin-password')), 'the next start makes it');
  await next.stop();
});

test('where nobody signs in, no password is made before it is needed', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const words = ['--data', data, '--port', '0', '--scrypt-cost', '14'];
  const open = startServer(t, [...words, '--auth', 'none'], {});
  await open.find(url);
  assert.equal(await open.stop(), 0);
  assert.ok(!existsSync(join(data, 'admin-password')));
  const closed = startServer(t, words, {});
  await closed.find(url);
  assert.ok(existsSync(join(data, 'admin-password')));
  await closed.stop();
});

test('SIGHUP: a new certificate is taken up, and one that does not fit its key is not', async (t) => {
  const directory = temporaryDirectory(t);
  if (makeCertificate(directory, 'first') === undefined) return t.skip('there is no openssl here');
  for (const name of ['second', 'third']) makeCertificate(directory, name);
  const [certFile, keyFile] = [join(directory, 'first.crt'), join(directory, 'first.key')];
  const words = ['--data', join(directory, 'data'), '--port', '0', '--log', 'pretty'];
  const server = startCairn(t, [...words, '--tls-cert', certFile, '--tls-key', keyFile, '--auth', 'none']);
  const [, port = ''] = await server.find(/Cairn serves https:\/\/127\.0\.0\.1:(\d+)/);
  const certificateEnd = async (): Promise<number> => {
    const samples = parseExposition(await readSecurely(`https://127.0.0.1:${port}/metrics`));
    return (sampleValue(samples, 'cairn_tls_certificate_end_timestamp_seconds') ?? NaN) * 1000;
  };
  const endOf = (file: string): number => Date.parse(new X509Certificate(readFileSync(file)).validTo);
  assert.equal(await readGreeting(Number(port)), 'first');
  assert.equal(await certificateEnd(), endOf(join(directory, 'first.crt')));
  copyFileSync(join(directory, 'second.crt'), certFile);
  server.child.kill('SIGHUP');
  await server.find(/ERROR The previous certificate and keys stay in use: /);
  assert.equal(await readGreeting(Number(port)), 'first');
  copyFileSync(join(directory, 'second.key'), keyFile);
  server.child.kill('SIGHUP');
  await server.find(/Certificate and keys were read again/);
  assert.equal(await readGreeting(Number(port)), 'second');
  assert.equal(await certificateEnd(), endOf(join(directory, 'second.crt')));

  for (const end of ['crt', 'key']) copyFileSync(join(directory, `third.${end}`), join(directory, `first.${end}`));
  writeFileSync(join(directory, 'data', 'keys.json'), '{}');
  server.child.kill('SIGHUP');
  await server.find(/ERROR The previous certificate and keys stay in use: Cannot read the key ring/);
  assert.equal(await readGreeting(Number(port)), 'second', 'both or none');
});

test('SIGHUP: what comes during the start waits for its end, and a secret of the environment stays', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const CAIRN_SECRET = 'a secret of the tests, 32 bytes long';
  const secrets = { CAIRN_ADMIN_PASSWORD: 'correct horse battery', CAIRN_SECRET };
  const server = startCairn(t, ['--data', data, '--port', '0', '--log', 'pretty', '--scrypt-cost', '16'], secrets);
  while (!existsSync(join(data, 'lock'))) await sleep(5);
  server.child.kill('SIGHUP');
  await server.find(/Cairn serves [^]*Nothing was read again; CAIRN_SECRET is read only at the start/);
});

test('SIGUSR1 opens no inspector', async (t) => {
  const server = startCairn(t, ['--data', join(temporaryDirectory(t), 'data'), '--port', '0', '--log', 'pretty']);
  await server.find(/Cairn serves/);
  server.child.kill('SIGUSR1');
  server.child.kill('SIGHUP');
  await server.find(/Keys were read again/);
  assert.doesNotMatch(server.err, /Debugger/);
});

test('what keeps a server from starting is one line and an exit code of its own', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'file'), '');
  const port = await takenPort(t);
  const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END ENCRYPTED PRIVATE KEY-----\n';
  writeFileSync(join(directory, 'encrypted'), encrypted);
  const damaged = join(directory, 'damaged');
  // Node.js is built with its own OpenSSL, so another one may refuse to make this key.
  const hasWeakKey = makeCertificate(directory, 'weak', ['rsa:512']) !== undefined;
  const weak = hasWeakKey ? ['weak.crt', 'weak.key'] : ['encrypted', 'encrypted'];
  const [weakCert = '', weakKey = ''] = weak.map((name) => join(directory, name));
  const file = join(directory, 'file');
  const certificate = (cert: string, key: string): string[] => ['--tls-cert', cert, '--tls-key', key];
  const on = (name: string, ...words: string[]): string[] => ['--data', join(directory, name), '--port', '0', ...words];
  const portTaken = /^Cannot go on: listen EADDRINUSE.*:\d+; use another --port/m;
  const keyRefused = hasWeakKey ? /^Cannot use --tls-cert and --tls-key: .*key too small/ : /key is encrypted/;
  const waysToMend =
    /; put the right file back; or restore .*, or keep the readable part with "cairn repair .*#damaged\)\n$/;
  const short = { CAIRN_ADMIN_PASSWORD: 'short' };

  interface Refusal {
    readonly words: readonly string[];
    readonly environment?: Readonly<Record<string, string>>;
    readonly code: number;
    readonly message: RegExp;
  }
  const refusals: readonly Refusal[] = [
    { words: ['--port', 'x'], code: 64, message: /^Cannot use --port/ },
    { words: ['--data', join(directory, 'b'), '--port', port], code: 75, message: portTaken },
    { words: on('d', '--ops-port', port), code: 64, message: /no option --ops-port; read \/metrics.*at the port/ },
    { words: on('d', '--ops-host', '::1'), code: 64, message: /no option --ops-host; read \/metrics.*at the port/ },
    { words: on('d', '--at-rest', 'off'), code: 64, message: /no option --at-rest; leave it out: an idle server/ },
    { words: on('e', '--host', '203.0.113.1'), code: 74,
      message: /^Cannot go on: listen EADDRNOTAVAIL.*203\.0\.113\.1; use a --host of this machine \(see /m },
    { words: on('file'), code: 74, message: /^Cannot go on: ENOTDIR.*; it has to be a directory \(see /m },
    { words: ['--data', damagedStore(damaged), '--port', '0'], code: 78, message: waysToMend },
    { words: certificate(file, file), code: 64, message: /^Cannot use --tls-cert and --tls-key: / },
    { words: [...certificate('absent.pem', 'absent.pem'), '--data', join(directory, 'c')], code: 64,
      message: /^Cannot / },
    { words: certificate(file, join(directory, 'encrypted')), code: 64,
      message: /^Cannot use --tls-cert and --tls-key: the key is encrypted/ },
    { words: certificate(weakCert, weakKey), code: 64, message: keyRefused },
    { words: on('f'), environment: short, code: 64,
      message: /^Cannot make the administrator: password must be at least 15 characters long\n$/ },
  ];
  await Promise.all(refusals.map(async ({ words, environment, code, message }) => {
    const outcome = await refused(t, words, environment);
    assert.match(outcome.err, message);
    assert.match(outcome.err, /^(The password of .*\n)?Cannot .*\n$/, 'one line');
    assert.equal(outcome.code, code, outcome.err);
    assert.equal(/ \(see src\/docs\/[a-z]+\.md#[a-z-]+\)\n$/.test(outcome.err), code >= 70, outcome.err);
  }));
  assert.ok(!existsSync(join(directory, 'f', 'keys.json')), 'and nothing was done');
});

test('a file of collections: a mistake is one line with its place, and a misfit says what to do', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'collections.json');
  const data = join(directory, 'data');
  const words = ['--data', data, '--port', '0', '--collections', file];
  const declare = (fields: object | undefined): void => {
    const declarations = { collections: [{ name: 'notes', singular: 'note', fields }] };
    writeFileSync(file, fields === undefined ? '{"collections":' : JSON.stringify(declarations));
  };
  declare({ line: { kind: 'txt' } });
  const mistake = await refused(t, words);
  assert.equal(mistake.code, 64);
  const told = /^Cannot use --collections ".*": \/collections\/0\/fields\/line\/kind must be one of text, .*\n$/;
  assert.match(mistake.err, told);
  declare(undefined);
  const noJson = await refused(t, words);
  assert.equal(noJson.code, 64);
  assert.match(noJson.err, /^Cannot use --collections ".*": Cannot read the JSON: .* line 1, column 16\n$/);
  assert.ok(!existsSync(data), 'nothing was done');

  declare({ line: { kind: 'text' } });
  const first = startServer(t, words);
  const [, base = ''] = await first.find(/^Cairn serves (.*)\n$/);
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password: 'correct horse battery' });
  const signedIn = await fetch(`${base}/tokens`, { method: 'POST', headers, body });
  const { access_token: token } = await signedIn.json() as { access_token: string };
  const made = await fetch(`${base}/notes`, {
    method: 'POST',
    headers: { ...headers, Authorization: `Bearer ${token}` },
    body: '{"line":"a"}',
  });
  assert.equal(made.status, 201);
  await first.stop();
  declare({ line: { kind: 'text' }, more: { kind: 'text' } });
  const misfit = await refused(t, words);
  assert.equal(misfit.code, 78);
  assert.match(misfit.err, /record 1 has no "more".* \[D1\]; go back to the earlier declaration, and correct the/);
  declare({ line: { kind: 'text' }, more: { kind: 'text', default: '' } });
  const last = startServer(t, words);
  await last.find(/^Cairn serves/);
  await last.stop();
});

test('several mistakes of a declaration have a line each in the pretty log, and one line in JSON', async (t) => {
  const file = join(temporaryDirectory(t), 'collections.json');
  writeFileSync(file, '{"items":0,"users":0}');
  const words = ['--data', temporaryDirectory(t), '--collections', file, '--log'];
  const [pretty, json] = await Promise.all(['pretty', 'json'].map((log) => refused(t, [...words, log])));
  assert.deepEqual(pretty?.err.replaceAll(/^\S+ /gm, '').replace(file, 'FILE').split('\n'), [
    'ERROR Cannot use --collections "FILE": 2 mistakes exitCode=64',
    'ERROR   /items must be true or false',
    'ERROR   /users must be true or false',
    '',
  ]);
  const { message } = JSON.parse(json?.err ?? '') as { message: string };
  assert.match(message, /: 2 mistakes\n {2}\/items .*\n {2}\/users .*$/);
});

test('a file of collections that is not there is a wrong option', async (t) => {
  const { code, err } = await refused(t, ['--collections', 'absent.json', '--data', temporaryDirectory(t)]);
  assert.equal(code, 64);
  assert.equal(err, 'Cannot use --collections "absent.json": the file cannot be read (ENOENT)\n');
});

test('the last line says in the form of the log why the start failed', async (t) => {
  const words = ['--data', damagedStore(join(temporaryDirectory(t), 'data')), '--port', '0', '--log'];
  const { level, kind, exitCode, message } = JSON.parse((await refused(t, [...words, 'json'])).err);
  assert.deepEqual([level, kind, exitCode], ['error', 'message', 78]);
  assert.match(message, /^Cannot open the store: /);
  const pretty = await refused(t, [...words, 'pretty']);
  assert.match(pretty.err, /^[\d:.]{12} ERROR Cannot open the store: .* exitCode=78\n$/);
});

test('a signal ends a start that waits for a lock', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  mkdirSync(data);
  writeFileSync(join(data, 'lock'), '{"host":"elsewhere","place":null,"pid":1,"started":null,"since":"then"}\n');
  const server = startCairn(t, ['--data', data, '--port', '0', '--log', 'json']);
  await server.find(/waiting up to 20 seconds/);
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0, server.err);
  assert.match(server.out, /"message":"Cairn stops: SIGTERM"/);
});

const hasProc = existsSync('/proc/self') && !isLockedRun;
test('a directory that cannot be made is told, and nothing spins', { skip: !hasProc && 'no /proc' }, async (t) => {
  const { code, err } = await refused(t, ['--data', '/proc/nope', '--port', '0']);
  assert.equal(code, 74);
  assert.match(err, /^Cannot go on: ENOENT: .*\/proc\/nope' \(see .*\n$/);
});

test('what is there and no directory is told so', { skip: isLockedRun && 'Node.js refuses it first' }, async (t) => {
  const { code, err } = await refused(t, ['--data', '/dev/null', '--port', '0']);
  assert.equal(code, 74);
  assert.match(err, /^Cannot go on: ENOTDIR: .*'\/dev\/null'; it has to be a directory \(see .*\n$/);
});

/** A directory whose snapshot says something that it cannot mean. */
function damagedStore(directory: string): string {
  mkdirSync(directory);
  writeFileSync(join(directory, 'users.json'), '{"format":');
  return directory;
}
