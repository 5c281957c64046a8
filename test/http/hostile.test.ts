import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { Fields } from '../../src/http/fields.ts';
import { checkHead } from '../../src/http/head.ts';
import { createProxies } from '../../src/options/proxies/proxies.ts';
import { type Listener, RawClient, makeCertificate, startServer } from '../support/http/raw.ts';

const directory = mkdtempSync(join(tmpdir(), 'cairn-hostile-'));
const tls = makeCertificate(directory, 'localhost');
rmSync(directory, { recursive: true });

/** Every table runs in each of these, since none of them may change how a request is framed and read. */
const configurations = ['gathered', 'behind a proxy, beside a body'];
if (tls !== undefined) configurations.push('over TLS');
const listeners = new Map<string, Listener>();
let listener: Listener;
/** Its body is under way while the tables of its configuration run. */
let slow: RawClient;

before(async () => {
  const limits = { lingerTimeoutMs: 50, gatheringConnectionsMin: 100, requestTimeoutMs: 600_000 };
  listener = await startServer({ limits: { ...limits, gatheringConnectionsMin: 0 } });
  const proxied = await startServer({ limits, proxies: createProxies(['127.0.0.1']) });
  slow = new RawClient(proxied.port).send(`${post}Content-Length: 8\r\n\r\nhalf`);
  const encrypted = await startServer({ limits }, tls);
  [listener, proxied, encrypted].forEach((one, index) => listeners.set(configurations[index] ?? '', one));
});
after(async () => {
  assert.equal((await slow.send('done').reply()).body, 'halfdone', 'no byte of another request');
  slow.socket.destroy();
  for (const { server } of listeners.values()) assert.equal(await server.drain(2000), 0);
});

function connect(configuration: string): RawClient {
  const port = listeners.get(configuration)?.port ?? assert.fail(configuration);
  if (configuration !== 'over TLS') return new RawClient(port);
  return new RawClient(connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }));
}

/** The mistake, the bytes of the request, and the status that it must get, or several acceptable ones. */
type Row = readonly [what: string, bytes: string, ...statuses: number[]];

const get = 'GET /items/1 HTTP/1.1\r\nHost: a\r\n';
const post = 'POST /echo HTTP/1.1\r\nHost: a\r\n';
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;

/** After every row, another caller is served as if nothing had been. */
async function assertServes(configuration: string): Promise<void> {
  const client = connect(configuration).send(`${get}Connection: close\r\n\r\n`);
  const reply = await client.reply();
  assert.equal(reply.status, 200);
  assert.equal(reply.body, 'item /items/1');
  assert.equal(await client.rest(), '');
}

function assertProblem(reply: { fields: ReadonlyMap<string, string>; body: string; status: number }): void {
  assert.equal(reply.fields.get('content-type'), 'application/problem+json');
  assert.equal(reply.fields.get('cache-control'), 'no-store');
  assert.equal(reply.fields.get('x-content-type-options'), 'nosniff');
  const problem: unknown = JSON.parse(reply.body);
  assert.ok(typeof problem === 'object' && problem !== null && 'status' in problem && problem.status === reply.status);
}

/** Node's parser refuses it, so the response has no body. */
function assertRefusal(reply: Parameters<typeof assertProblem>[0]): void {
  if (reply.body !== '') assertProblem(reply);
  else assert.ok([400, 405, 408, 413, 431].includes(reply.status));
  assert.ok(Math.abs(Date.parse(reply.fields.get('date') ?? '') - Date.now()) < 60_000, 'RFC 9110 §6.6.1');
}

/** Returns each row with each configuration. */
function everywhere(rows: readonly Row[]): (readonly [configuration: string, row: Row])[] {
  return configurations.flatMap((configuration) => rows.map((row) => [configuration, row] as const));
}

/** Each row gets problem details or a bare reply, and the connection is closed without a second one. */
function refuses(name: string, rows: readonly Row[]): void {
  for (const [configuration, [what, bytes, ...statuses]] of everywhere(rows)) {
    test(`${name}: ${what} (${configuration})`, async () => {
      const client = connect(configuration).send(bytes);
      // The bytes after it must never be taken for another request.
      client.send(`\r\n${get}\r\n`);
      const reply = await client.reply();
      assert.ok(statuses.includes(reply.status), `${reply.status} instead of ${statuses.join(' or ')}`);
      assertRefusal(reply);
      assert.equal(reply.fields.get('connection'), 'close');
      assert.equal(await client.rest(), '');
      await assertServes(configuration);
    });
  }
}

refuses('framing (RFC 9112 §6, §7)', [
  ['Transfer-Encoding with Content-Length', `${post}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n`, 400],
  ['Content-Length with Transfer-Encoding', `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ['two different Content-Lengths', `${post}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`, 400],
  ['two equal Content-Lengths', `${post}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, 400],
  ...['3, 3', '+3', '-1', '0x3', '', '18446744073709551616', '3 4', '3;', '٣', '1e1', '3.0'].map(
    (length): Row => [`Content-Length "${length}"`, `${post}Content-Length: ${length}\r\n\r\nabc`, 400],
  ),
  ...['xchunked', 'chunked, identity', 'identity', '', 'chunked;a=b', '"chunked"', 'chunked, chunked,', 'gzip'].map(
    (coding): Row => [`Transfer-Encoding "${coding}"`, `${post}Transfer-Encoding: ${coding}\r\n\r\n`, 400],
  ),
  ['two Transfer-Encodings', `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ['two other Transfer-Encodings', `${post}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ['Transfer-Encoding in HTTP/1.0', 'POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
  ['Transfer-Encoding "gzip, chunked"', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 501],
  ...['zz', '0x3', '-1', '+3', '3 3', '11111111111111111', 'fffffffffffffffff', '', ' 3'].map(
    (size): Row => [`chunk size "${size}"`, `${chunked}${size}\r\nabc\r\n0\r\n\r\n`, 400],
  ),
  ['LF-only chunk lines', `${chunked}3\nabc\n0\n\n`, 400],
  ['no CRLF after a chunk', `${chunked}3\r\nabc0\r\n\r\n`, 400],
  ['a longer chunk than announced', `${chunked}3\r\nabcd\r\n0\r\n\r\n`, 400],
  ['a 20 KB chunk extension', `${chunked}3;${'x'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n`, 413],
  ['Content-Length in the trailers', `${chunked}3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n`, 400],
  ['space before the colon', `${get}Content-Length : 0\r\n\r\n`, 400],
  ['space before the first field', 'GET /items/1 HTTP/1.1\r\n Host: a\r\n\r\n', 400],
  ['obs-fold', `${get}X: a\r\n b\r\n\r\n`, 400],
  ['bare LF after the request line', 'GET /items/1 HTTP/1.1\nHost: a\r\n\r\n', 400],
  ['bare LF after a field', `${get}X: a\nY: b\r\n\r\n`, 400],
  ['bare CR in a field', `${get}X: a\rY: b\r\n\r\n`, 400],
  ['NUL in a field', `${get}X: a\0b\r\n\r\n`, 400],
  ['a control character in a field', `${get}X: a\x01b\r\n\r\n`, 400],
  ['a field name with a space', `${get}X Y: a\r\n\r\n`, 400],
  ['a field without a name', `${get}: a\r\n\r\n`, 400],
  ['a field without a colon', `${get}Xa\r\n\r\n`, 400],
]);

refuses('expectations (RFC 9110 §10.1.1)', [
  ['another expectation', `${post}Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc`, 417],
  ['another expectation with Upgrade', `${get}Expect: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n`, 417],
  ['another expectation, twenty times', `${get}Expect: x\r\n\r\n`.repeat(20), 417],
]);

refuses('request line and Host (RFC 9112 §2, §3)', [
  ['HTTP/0.9 without a version', 'GET /items/1\r\n\r\n', 400, 505],
  ...['0.9', '1.2', '2.0', '1', '1.10', 'x'].map(
    (version): Row => [`HTTP/${version}`, `GET /items/1 HTTP/${version}\r\nHost: a\r\n\r\n`, 400, 505],
  ),
  ['no Host', 'GET /items/1 HTTP/1.1\r\n\r\n', 400],
  ['two Hosts', `${get}Host: b\r\n\r\n`, 400],
  ['two idempotency keys', `${get}Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n`, 400],
  ['two equal Hosts', `${get}Host: a\r\n\r\n`, 400],
  ...['', 'a/b', 'a b', 'a, b', 'a:x', 'a@b', '[::1', 'a?b', 'http://a', '\xe4', 'a:1:2'].map(
    (host): Row => [`Host "${host}"`, `GET /items/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 400],
  ),
  ['absolute-form of another authority', `GET http://b/items/1 HTTP/1.1\r\nHost: a\r\n\r\n`, 421],
  ['absolute-form with a user', `GET http://u@a/items/1 HTTP/1.1\r\nHost: a\r\n\r\n`, 421],
  ['absolute-form of another port', `GET http://a:81/items/1 HTTP/1.1\r\nHost: a\r\n\r\n`, 421],
  ['absolute-form of another scheme', `GET ftp://a/items/1 HTTP/1.1\r\nHost: a\r\n\r\n`, 400],
  ...['*', 'items/1', '/items/1#x', '/items/\xc3\xa4', '/items/\0', '/items/1 2', '/items/%', '/items/%4', '/%zz', '?']
    .map((target): Row => [`target "${target}"`, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`, 400]),
  ['a 17 KB target', `GET /items/${'1'.repeat(17_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
  ['a 17 KB field', `${get}X: ${'1'.repeat(17_000)}\r\n\r\n`, 431],
  ['over 100 fields', `${get}${'X: 1\r\n'.repeat(100)}\r\n`, 431],
  ['over 1,100 fields', `${get}${'X: 1\r\n'.repeat(1100)}Authorization: Bearer a\r\n\r\n`, 431],
  ['a method that is none', 'FOO /items/1 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['a method in lower case', 'get /items/1 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n', 405],
  ['two Authorizations', `${get}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n`, 400],
  ['two Content-Types', `${post}Content-Type: a/b\r\ncontent-type: a/b\r\nContent-Length: 0\r\n\r\n`, 400],
  ['GET with content', `${get}Content-Length: 3\r\n\r\nabc`, 400],
  ['GET with chunked content', `${get}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`, 400],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 505],
  ['line noise', '\x00\xff\xfe\r\n\r\n', 400],
]);

/** Each row gets a reply of its own, and the connection stays open. */
function answers(name: string, rows: readonly Row[]): void {
  for (const [configuration, [what, bytes, ...statuses]] of everywhere(rows)) {
    test(`${name}: ${what} (${configuration})`, async () => {
      const method = bytes.slice(0, bytes.indexOf(' '));
      const client = connect(configuration).send(bytes);
      for (const status of statuses) {
        const reply = await client.reply(method);
        assert.equal(reply.status, status, reply.body);
        if (status >= 400 && method !== 'HEAD') assertProblem(reply);
      }
      client.send(`${get}Connection: close\r\n\r\n`);
      assert.equal((await client.reply()).status, 200);
      assert.equal(await client.rest(), '');
    });
  }
}

const host = 'HTTP/1.1\r\nHost: a\r\n';
answers('odd but legitimate', [
  ['absolute-form of the same authority', `GET http://A/items/1 ${host}\r\n`, 200],
  ['absolute-form with the default port', `GET http://a:80/items/1 ${host}\r\n`, 200],
  ['Host with the default port', 'GET http://a/items/1 HTTP/1.1\r\nHost: a:80\r\n\r\n', 200],
  ['HTTP/1.0 that stays', 'GET /items/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 200],
  ['an empty line before the request', `\r\n${get}\r\n`, 200],
  ['an IPv6 Host', 'GET /items/1 HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n', 200],
  ['Content-Length 0 with GET', `${get}Content-Length: 0\r\n\r\n`, 200],
  ['content in chunks', `${chunked}3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n`, 200],
  ['trailers', `${chunked}3\r\nabc\r\n0\r\nX: y\r\n\r\n`, 200],
  ['a method override', `${get}X-HTTP-Method-Override: DELETE\r\n\r\n`, 200],
  ['a field called __proto__', `${get}__proto__: x\r\nconstructor: y\r\n\r\n`, 200],
  ['two Cookie lines', `${get}Cookie: sid=a\r\nCookie: b=c\r\n\r\n`, 200],
  ['GET with an empty chunked body', `${get}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 200],
  ['HEAD with an empty chunked body', `HEAD /items/1 ${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 200],
  ['100-continue', `${post}Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc`, 100, 200],
  ['content that nobody reads', `POST /ignore ${host}Content-Length: 3\r\n\r\nabc`, 200],
  ['100 fields', `${get}${'X: 1\r\n'.repeat(98)}\r\n`, 200],
]);
/** Node's parser drops the rest of the packet behind such a request, and takes what follows for requests. */
const upgrades: readonly Row[] = [
  ['h2c', `${get}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`],
  ['websocket', `${get}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
  ['something behind content', `${post}Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nabc`],
  ['something behind chunks', `${chunked.slice(0, -2)}Connection: upgrade\r\nUpgrade: x\r\n\r\n0\r\n\r\n`],
  ['nothing in particular', `${get}Upgrade: x\r\n\r\n`],
];
for (const gatheringConnectionsMin of [0, 100]) {
  for (const [what, bytes] of upgrades) {
    const name = `Upgrade to ${what} is ignored and ends the connection: content behind it is no request`;
    test(`${name} (${gatheringConnectionsMin})`, async () => {
      const { server, port } = await startServer({ limits: { gatheringConnectionsMin } });
      const client = new RawClient(port).send(`${bytes}POST /echo ${host}Content-Length: ${get.length + 2}\r\n\r\n`);
      const reply = await client.reply();
      assert.deepEqual([reply.status, reply.fields.get('connection')], [200, 'close']);
      client.send(`${get}\r\n`);
      assert.equal(await client.rest(), '');
      await server.drain();
    });
  }
}

answers('known, but not here', [
  ['TRACE', `TRACE /items/1 ${host}\r\n`, 405],
  ['DELETE', `DELETE /items/1 ${host}\r\n`, 405],
  ['PROPFIND', `PROPFIND /items/1 ${host}\r\n`, 405],
  ['HEAD elsewhere', `HEAD /echo ${host}\r\n`, 405],
  ...['//evil/x', '/items/1%2f2/x', '/users/../items', '/items/1/', '/%00', '/items%5c1', '/./items/1', '/'].map(
    (target): Row => [`the target ${target}`, `GET ${target} ${host}\r\n`, 404],
  ),
]);

test("the head is checked again after Node's parser", () => {
  type Head = Parameters<typeof checkHead>[0] & { readonly version: string };
  const check = (raw: readonly string[], { version = '1.1', ...other }: Partial<Head> = {}) =>
    checkHead(
      { method: 'POST', target: '/', basePath: '', fields: new Fields(['Host', 'a', ...raw]), ...other }, version,
    );
  type HeadRow = [raw: readonly string[], other?: Partial<Head>, code?: string];
  const refused: readonly HeadRow[] = [
    [['Transfer-Encoding', 'chunked', 'Content-Length', '3']],
    [['Content-Length', '3', 'Content-Length', '3']],
    ...['', '+3', '-1', '0x3', '3, 3', '3 ', '1e1', '9'.repeat(16)].map((one): HeadRow => [['Content-Length', one]]),
    ...['', 'identity', 'xchunked', 'chunked, gzip'].map((coding): HeadRow => [['Transfer-Encoding', coding]]),
    [['Transfer-Encoding', 'gzip, chunked'], {}, 'not_implemented'],
    [['Transfer-Encoding', 'chunked'], { version: '1.0' }],
    [['Content-Length', '3'], { method: 'GET' }],
    [['Host', 'a']],
    [[], { fields: new Fields([]) }],
    [[], { version: '2.0' }, 'http_version_not_supported'],
    [[], { target: 'http://b/' }, 'misdirected_request'],
    [[], { target: '*' }],
  ];
  for (const [raw, other, code = 'malformed_request'] of refused) {
    assert.throws(() => check(raw, other), { code }, JSON.stringify([raw, other]));
  }
  assert.deepEqual(check(['Content-Length', '3']), { target: '/', contentLength: 3 });
  assert.equal(check(['Transfer-Encoding', 'Chunked']).contentLength, undefined);
});

test('HEAD is GET without its content', async () => {
  const client = new RawClient(listener.port).send(`HEAD /items/1 ${host}\r\n`);
  const reply = await client.reply('HEAD');
  assert.equal(reply.fields.get('content-length'), String('item /items/1'.length));
  client.send(`${get}Connection: close\r\n\r\n`);
  assert.equal((await client.reply()).body, 'item /items/1');
  assert.equal(await client.rest(), '');
});

test('a handler gets the target exactly as sent, and each request has an id', async () => {
  listener.answered.length = 0;
  const client = new RawClient(listener.port).send(`GET /items/1%0d%0aX ${host}X: a\tb\r\nConnection: close\r\n\r\n`);
  assert.equal((await client.reply()).status, 200);
  await client.rest();
  const [one] = listener.answered;
  assert.equal(one?.route, '/items/1%0d%0aX');
  assert.match(one?.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('a problem has the id of the request in the log', async () => {
  listener.answered.length = 0;
  const client = new RawClient(listener.port).send('GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const { status, fields, body } = await client.reply();
  const problem: unknown = JSON.parse(body);
  await client.rest();
  assert.equal(fields.get('x-request-id'), listener.answered[0]?.id);
  assert.ok(typeof problem === 'object' && problem !== null && 'instance' in problem);
  const told = listener.answered.map((one) => [`urn:uuid:${one.id}`, one.status, one.bytes]);
  assert.deepEqual(told, [[problem.instance, status, body.length]]);
});

test('bytes that are not a request get a bare response and one line in the log', async () => {
  for (const head of ['GET / HTTP/1.1\r\nX : y', 'CONNECT a:1 HTTP/1.1', 'nonsense']) {
    listener.answered.length = 0;
    const client = new RawClient(listener.port).send(`${head}\r\nHost: a\r\n\r\n`);
    const { status, body } = await client.reply();
    await client.rest();
    assert.equal(body, '');
    const told = listener.answered.map((one) => [one.method, one.status, one.address]);
    assert.deepEqual(told, [['', status, '127.0.0.1']], head);
  }
});
