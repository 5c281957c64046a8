import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { after, before, test } from 'node:test';

import { limits } from '../../src/base/limits.ts';
import { systemClock } from '../../src/base/system.ts';
import { createLineLog } from '../../src/log/log.ts';
import { RawClient, type RawReply } from '../support/http/raw.ts';
import { createApp, type App } from '../support/inside.ts';

const email = 'admin@example.org';
const password = 'administrator of the tests';
const { bodyBytesMax } = limits;
const lines: string[] = [];

/** A server, and an administrator's credentials for it. */
interface Served {
  readonly app: App;
  readonly port: number;
  readonly basePath: string;
  /** Fields that a proxy adds. */
  readonly added: string;
  token: string;
  cookie: string;
}
const proxy = 'X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n';
/** Every table runs in each of these. */
const configurations = {
  alone: { options: {}, added: '' },
  'below /api, behind a proxy': { options: { basePath: '/api', trustedProxies: ['127.0.0.1'] }, added: proxy },
};
const configurationNames = Object.keys(configurations);
const servers = new Map<string, Served>();
let alone: Served;

before(async () => {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const log = createLineLog({ level: 'info', clock: systemClock, sink });
  for (const [name, { options, added }] of Object.entries(configurations)) {
    const app = await createApp({ ...options, scryptCost: 1, clock: systemClock, log });
    await app.program.users.create({ name: 'Ada', role: 'admin', email, password });
    const port = await app.listen({ port: 0, host: '127.0.0.1' });
    const basePath = 'basePath' in options ? options.basePath : '';
    const server: Served = { app, port, basePath, added, token: '', cookie: '' };
    const { body } = await ask(`POST /tokens ${host}${json}`, JSON.stringify({ email, password }), server);
    server.token = /"access_token":"([^"]+)/.exec(body)?.[1] ?? '';
    const { fields } = await ask(`POST /login ${host}${json}`, JSON.stringify({ email, password }), server);
    server.cookie = /sid=([^;]+)/.exec(fields.get('set-cookie') ?? '')?.[1] ?? '';
    assert.equal((await createItem('{"name":"a","price":1}', json, server)).status, 201);
    servers.set(name, server);
  }
  alone = served('alone');
});
after(() => Promise.all([...servers.values()].map(({ app }) => app.close())));

function served(name: string): Served {
  return servers.get(name) ?? assert.fail(name);
}

const host = 'HTTP/1.1\r\nHost: a\r\n';
const json = 'Content-Type: application/json\r\n';

/** Sends a head without its end, and a body with its length, on a connection of its own. */
async function ask(head: string, body?: string | Buffer, { port, basePath, added } = alone): Promise<RawReply> {
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const length = bytes === undefined ? '' : `Content-Length: ${bytes.length}\r\n`;
  const sent = head.replace(' /', ` ${basePath}/`);
  const client = new RawClient(port).send(`${sent}${added}${length}\r\n`);
  if (bytes !== undefined) client.send(bytes);
  const reply = await client.reply(head.slice(0, head.indexOf(' ')));
  client.socket.destroy();
  return reply;
}

function bearer({ token } = alone): string {
  return `Authorization: Bearer ${token}\r\n`;
}

function createItem(body: string | Buffer, fields = json, server = alone): Promise<RawReply> {
  return ask(`POST /items ${host}${bearer(server)}${fields}`, body, server);
}

/** Returns each row with the name of each configuration. */
function everywhere<Row>(rows: readonly Row[]): (readonly [configuration: string, row: Row])[] {
  return configurationNames.flatMap((name) => rows.map((row) => [name, row] as const));
}

function codeOf({ status, fields, body }: RawReply): string {
  if (status < 400) return String(status);
  assert.equal(fields.get('content-type'), 'application/problem+json');
  assert.equal(fields.get('cache-control'), 'no-store');
  const problem: unknown = JSON.parse(body);
  assert.ok(typeof problem === 'object' && problem !== null && 'code' in problem && 'instance' in problem);
  assert.match(String(problem.instance), /^urn:uuid:[0-9a-f-]{36}$/);
  return `${status} ${String(problem.code)}`;
}

const good = '{"name":"a","price":1}';
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const bodies = [
  ['no Content-Type', good, '', '415 unsupported_media_type'],
  ['another Content-Type', good, 'Content-Type: text/plain\r\n', '415 unsupported_media_type'],
  ['a form', 'name=a&price=1', 'Content-Type: application/x-www-form-urlencoded\r\n', '415 unsupported_media_type'],
  ['merge patch to create', good, 'Content-Type: application/merge-patch+json\r\n', '415 unsupported_media_type'],
  ['another charset', good, 'Content-Type: application/json; charset=latin1\r\n', '415 unsupported_media_type'],
  ['two Content-Types', good, `${json}${json}`, '400 malformed_request'],
  ['utf8 as the charset', '[]', 'Content-Type: application/json; charset=utf8\r\n', '422 validation_failed'],
  ['a Content-Encoding', good, `${json}Content-Encoding: gzip\r\n`, '415 unsupported_media_type'],
  ['the identity encoding', good, `${json}Content-Encoding: identity\r\n`, '415 unsupported_media_type'],
  ['too large', `"${'x'.repeat(bodyBytesMax - 1)}"`, json, '413 content_too_large'],
  ['just not too large', `"${'x'.repeat(bodyBytesMax - 2)}"`, json, '422 validation_failed'],
  ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), json, '400 malformed_json'],
  ['an overlong form', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), json, '400 malformed_json'],
  ['a UTF-16 body', Buffer.from(good, 'utf16le'), json, '400 malformed_json'],
  ['a byte order mark', `\ufeff${good}`, json, '400 malformed_json'],
  ['bad JSON', '{"name":"a",}', json, '400 malformed_json'],
  ['two values', `${good}${good}`, json, '400 malformed_json'],
  ['32 levels', nested(32), json, '422 validation_failed'],
  ['33 levels', nested(33), json, '400 malformed_json'],
  ['1,900 levels', '['.repeat(1900), json, '400 malformed_json'],
  ['duplicate keys', '{"name":"a","price":1,"price":2}', json, '400 malformed_json'],
  ['duplicate keys by an escape', '{"name":"a","price":1,"p\\u0072ice":2}', json, '400 malformed_json'],
  ['nothing', '', json, '400 malformed_json'],
  ['white space', ' \n', json, '400 malformed_json'],
  ['__proto__ as a key', '{"name":"a","price":1,"__proto__":{"admin":true}}', json, '422 validation_failed'],
  ['constructor as a key', '{"name":"a","price":1,"constructor":{"x":1}}', json, '422 validation_failed'],
  ['an array', '[]', json, '422 validation_failed'],
  ['null', 'null', json, '422 validation_failed'],
  ['a number', '1', json, '422 validation_failed'],
  ['1e400 as a price', '{"name":"a","price":1e400}', json, '422 validation_failed'],
  ['a string as a price', '{"name":"a","price":"1"}', json, '422 validation_failed'],
  ['null as a price', '{"name":"a","price":null}', json, '422 validation_failed'],
  ['-1 as a price', '{"name":"a","price":-1}', json, '422 validation_failed'],
  ['1e13 as a price', '{"name":"a","price":1e13}', json, '422 validation_failed'],
  ['a lone surrogate', '{"name":"\\ud800","price":1}', json, '422 validation_failed'],
  ['a control character', '{"name":"a\\u0007","price":1}', json, '422 validation_failed'],
  ['a bidi override', '{"name":"a\u202eb","price":1}', json, '422 validation_failed'],
] as const;
for (const [name, [what, body, fields, expected]] of everywhere(bodies)) {
  test(`body: ${what} (${name})`, async () => {
    const server = served(name);
    const countItems = () =>
      server.app.store.status().collections.find(({ name: collection }) => collection === 'items')?.records;
    const count = countItems();
    assert.equal(codeOf(await createItem(body, fields, server)), expected);
    assert.equal(countItems(), count);
    assert.equal((await ask(`GET /items/1 ${host}${bearer(server)}`, undefined, server)).status, 200);
  });
}

const targets = [
  ['/items/1', '200'],
  ...['1e3', '0x1', '+1', '01', '-1', '0', '1.0', '%EF%BC%91', '9007199254740992', '%00', '%2f', '%5c', '1%20', '..']
    .map((id) => [`/items/${id}`, '404 not_found'] as const),
  ['/users/../items', '404 not_found'],
  ['//evil/x', '404 not_found'],
  ['/items/', '404 not_found'],
  ['/items/1?x=1', '400 invalid_query'],
  ['/items?limit=1&limit=2', '400 invalid_query'],
  ['/items?limit=%zz', '400 invalid_query'],
  ['/items?limit=1e2', '400 invalid_query'],
  ['/items?limit=-1', '400 invalid_query'],
  ['/items?sort=__proto__', '400 invalid_query'],
  ['/items?__proto__=1', '400 invalid_query'],
  ['/items?cursor=AAAA', '400 invalid_query'],
  ['/items/%', '400 malformed_request'],
] as const;
for (const [name, [target, expected]] of everywhere(targets)) {
  test(`target: ${target} (${name})`, async () => {
    const server = served(name);
    assert.equal(codeOf(await ask(`GET ${target} ${host}${bearer(server)}`, undefined, server)), expected);
  });
}

const credentials = [
  ['none', () => '', '401 authentication_required'],
  ['the token', bearer, '200'],
  ['another case of the scheme', ({ token }: Served) => `Authorization: bEaReR ${token}\r\n`, '200'],
  ['the token twice', (server: Served) => bearer(server) + bearer(server), '400 malformed_request'],
  ['two spaces', ({ token }: Served) => `Authorization: Bearer  ${token}\r\n`, '200'],
  ['a comma', ({ token }: Served) => `Authorization: Bearer ${token}, Bearer ${token}\r\n`, '401 invalid_token'],
  ['Basic', () => 'Authorization: Basic YTpi\r\n', '401 invalid_token'],
  ['an empty field', () => 'Authorization:\r\n', '401 invalid_token'],
  ['a bad token, a good cookie', ({ cookie }: Served) => `Authorization: Bearer x\r\nCookie: sid=${cookie}\r\n`,
    '401 invalid_token'],
  ['the cookie', ({ cookie }: Served) => `Cookie: a=b; sid=${cookie}\r\n`, '200'],
  ['the cookie twice', ({ cookie }: Served) => `Cookie: sid=${cookie}; sid=${cookie}\r\n`, '200'],
  ['two Cookie fields', ({ cookie }: Served) => `Cookie: sid=${cookie}\r\nCookie: a=b\r\n`, '200'],
  ['an unknown cookie', () => 'Cookie: sid=x\r\n', '401 invalid_session'],
  ['a cookie of 8 KB', () => `Cookie: sid=${'x'.repeat(8000)}\r\n`, '401 invalid_session'],
] as const;
for (const [name, [what, fields, expected]] of everywhere(credentials)) {
  test(`credentials: ${what} (${name})`, async () => {
    const server = served(name);
    assert.equal(codeOf(await ask(`GET /items/1 ${host}${fields(server)}`, undefined, server)), expected);
  });
}

test('a token in the query is ignored', async () => {
  assert.equal(codeOf(await ask(`GET /items/1?access_token=${alone.token} ${host}`)), '401 authentication_required');
});

test('an optional body may be absent, empty, or chunked and empty', async () => {
  for (const fields of ['', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n']) {
    const client = new RawClient(alone.port).send(`POST /logout ${host}${fields}\r\n`);
    if (fields.startsWith('T')) client.send('0\r\n\r\n');
    assert.equal((await client.reply()).status, 204, fields);
    client.socket.destroy();
  }
  assert.equal(codeOf(await ask(`POST /logout ${host}`, 'x')), '415 unsupported_media_type');
});

test('methods: HEAD is GET without content, unsupported ones get 405 with Allow', async () => {
  const head = await ask(`HEAD /items/1 ${host}${bearer()}`);
  const get = await ask(`GET /items/1 ${host}${bearer()}`);
  const same = ({ fields }: RawReply): unknown[] =>
    [...fields].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  assert.deepEqual(same(head), same(get));
  for (const method of ['TRACE', 'POST', 'PROPFIND']) {
    const reply = await ask(`${method} /items/1 ${host}`);
    assert.equal(codeOf(reply), '405 method_not_allowed');
    assert.equal(reply.fields.get('allow'), 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT');
  }
  const options = await ask(`OPTIONS /items/1 ${host}`);
  assert.equal(options.status, 204);
  assert.equal(options.fields.get('allow'), 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT');
});

test('every reply of the API has the fields that protect it in browsers', async () => {
  const replies = [
    await ask(`GET /items/1 ${host}${bearer()}`),
    await ask(`GET /items/1 ${host}`),
    await ask(`OPTIONS /items ${host}`),
    await ask(`GET /nowhere ${host}`),
    await createItem('{'),
    await ask(`GET /openapi.json ${host}`),
    await ask(`GET /livez ${host}`),
  ];
  for (const { fields } of replies) {
    assert.equal(fields.get('x-content-type-options'), 'nosniff');
    assert.equal(fields.get('cross-origin-resource-policy'), 'same-origin');
    assert.match(fields.get('content-security-policy') ?? '', /^default-src 'none'/);
    assert.equal(fields.get('strict-transport-security'), undefined);
    assert.equal(fields.get('server'), undefined);
    assert.equal(fields.get('x-powered-by'), undefined);
  }
});

test('a caller that leaves in the middle of a body changes nothing', async () => {
  const before = alone.app.store.status().commits;
  const head = `POST /items ${host}${bearer()}${json}Content-Length: 23\r\n\r\n`;
  const client = new RawClient(alone.port).send(head + good);
  client.socket.end();
  assert.equal((await client.reply()).status, 400);
  assert.equal(alone.app.store.status().commits, before);
});

test('the log has one JSON object per line, and neither tokens nor cookies', async () => {
  await ask(`GET /items/1%0d%0a%7b?a=%0d%0a\t ${host}${bearer()}`);
  await ask(`GET /items/1%0a ${host}Cookie: sid=${alone.cookie}\r\nUser-Agent: a\tb\xff\r\n`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const all = lines.join('').trimEnd().split('\n');
  assert.ok(all.length > 50);
  for (const line of all) assert.equal(typeof JSON.parse(line), 'object');
  for (const hidden of [alone.token, alone.cookie, password]) assert.ok(!lines.join('').includes(hidden));
});
