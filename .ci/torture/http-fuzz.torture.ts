/**
 * Mutated requests on raw sockets: whatever arrives, every response is well-formed HTTP, every refusal is problem
 * details or bare, no connection hangs, nothing is thrown, and the memory comes back.
 *
 *   CAIRN_TEST_SEED=2 CAIRN_FUZZ_REQUESTS=100000 npm run test:torture
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { problems } from '../../src/base/errors.ts';
import { systemClock } from '../../src/base/system.ts';
import { parseReply, RawClient } from '../../test/support/http/raw.ts';
import { type Generator, createGenerator, waitUntil } from '../../test/support/basics.ts';
import { createApp } from '../../test/support/inside.ts';

const requestsCount = Number(process.env['CAIRN_FUZZ_REQUESTS'] ?? 25_000);
const workersCount = 32;
const statuses = new Set([100, 417, 200, 201, 204, 303, 304, ...Object.values(problems).map(([status]) => status)]);

/** Requests worth mutating, with `{token}` for a token of an administrator. */
const host = 'HTTP/1.1\r\nHost: a\r\n';
const bearer = 'Authorization: Bearer {token}\r\n';
const json = 'Content-Type: application/json\r\n';
const item = '{"name":"thing","price":12.5}';
const chunked = `1d;x=y\r\n${item}\r\n0\r\nX: y\r\n\r\n`;
const corpus = [
  `GET /items/1 ${host}${bearer}\r\n`,
  `GET /items?limit=2&sort=-price,name&price:gte=1&fields=id,name ${host}${bearer}Prefer: count=exact\r\n\r\n`,
  `GET /items ${host}${bearer}If-None-Match: W/"a", "b"\r\nAccept: application/json;q=0.5, */*\r\n\r\n`,
  `GET http://a/users/1 ${host}${bearer}Connection: keep-alive\r\n\r\n`,
  `GET / ${host}Accept: text/html\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n`,
  `GET /openapi.json ${host}Accept-Encoding: gzip\r\n\r\n`,
  `OPTIONS * ${host}\r\n`,
  `OPTIONS /items ${host}Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n`,
  `POST /items ${host}${bearer}${json}Content-Length: ${item.length}\r\n\r\n${item}`,
  `POST /items ${host}${bearer}${json}Transfer-Encoding: chunked\r\n\r\n${chunked}`,
  `POST /items ${host}${bearer}${json}Expect: 100-continue\r\nContent-Length: ${item.length}\r\n\r\n${item}`,
  `PUT /items/1 ${host}${bearer}${json}If-Match: *\r\nContent-Length: ${item.length}\r\n\r\n${item}`,
  `PATCH /items/1 ${host}${bearer}${json}Content-Length: 11\r\n\r\n{"price":2}`,
  `DELETE /items/2 ${host}${bearer}\r\n`,
  `POST /tokens ${host}${json}Content-Length: 32\r\n\r\n{"refresh_token":"abcdefghijkl"}`,
  `POST /logout ${host}Cookie: sid=abc; a=b\r\nOrigin: http://a\r\nContent-Length: 0\r\n\r\n`,
  `GET /dashboard ${host}Cookie: sid=abc\r\nSec-Fetch-Site: same-origin\r\n\r\n`,
  'GET /livez HTTP/1.0\r\n\r\n',
  'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n',
];
const tokens = [
  '\r\n', '\n', '\r', '\0', ' ', '\t', ':', ',', ';', '"', '%', '%00', '%2f', '#', '?', '*', '//', '..',
  '\xff', '\xc3\xa4',
  'chunked', 'gzip, ', 'identity', '0', '-1', '+', '0x', '99999999999999999999', '1e400', '__proto__', 'constructor',
  'Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n', 'Host: b\r\n', 'Host:\r\n',
  'Connection: close\r\n', 'Connection: upgrade\r\n', 'Expect: 100-continue\r\n', 'Cookie: sid=1; sid=2\r\n',
  'X-Forwarded-For: 1.1.1.1\r\n', 'Authorization: Basic YTpi\r\n', 'If-Match: "\r\n', ' \r\n folded\r\n', 'HTTP/2.0',
  '{"a":', '[[[[', '\\ud800', '\ufeff', 'x'.repeat(5000), 'X: y\r\n'.repeat(60), '0\r\n\r\n', '7fffffff\r\n',
  'ffffffffff',
];

function mutate(bytes: string, random: Generator): string {
  const at = random.below(bytes.length + 1);
  const to = Math.min(bytes.length, at + 1 + random.below(random.pick([1, 4, 40])));
  switch (random.below(9)) {
    case 0:
      return bytes.slice(0, at) + String.fromCharCode(random.below(256)) + bytes.slice(at + 1);
    case 1:
    case 2:
      return bytes.slice(0, at) + random.pick(tokens) + bytes.slice(at);
    case 3:
      return bytes.slice(0, at) + random.pick(tokens) + bytes.slice(to);
    case 4:
      return bytes.slice(0, at) + bytes.slice(to);
    case 5:
      return bytes.slice(0, to) + bytes.slice(at, to) + bytes.slice(to);
    case 6:
      return bytes.slice(0, at);
    case 7: {
      const lines = bytes.split('\r\n');
      lines.splice(random.below(lines.length), 0, random.pick(lines));
      return lines.join('\r\n');
    }
    default:
      return bytes.slice(0, at) + random.pick(corpus).slice(random.below(60));
  }
}

/** Strictly parses all responses of an ended connection. The corpus has no HEAD requests. */
function check(received: string, sent: string): number {
  let rest = received;
  let count = 0;
  while (rest !== '') {
    const found = parseReply(rest, 'GET', true);
    assert.ok(typeof found !== 'number', `an incomplete reply: ${JSON.stringify({ received, sent })}`);
    const { status, fields, body } = found.reply;
    assert.ok(statuses.has(status), `status ${status}: ${JSON.stringify({ body, sent })}`);
    assert.notEqual(status, 500, JSON.stringify({ body, sent }));
    // Requests that Node's parser refuses, and expectations, get no body.
    if (status >= 400 && body === '') assert.ok([400, 405, 408, 413, 417, 431].includes(status));
    else if (status >= 400) {
      assert.equal(fields.get('content-type'), 'application/problem+json');
      const problem: unknown = JSON.parse(body);
      assert.ok(typeof problem === 'object' && problem !== null && 'status' in problem && 'code' in problem);
      assert.equal(problem.status, status);
    }
    rest = rest.slice(found.length);
    count += 1;
  }
  return count;
}

function heapMiB(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  return process.memoryUsage().heapUsed / 1024 ** 2;
}

test('mutated requests get well-formed responses and leak nothing', async (context) => {
  const random = createGenerator('http fuzz');
  const app = await createApp({ scryptCost: 1, clock: systemClock });
  context.after(() => app.close());
  const credentials = { email: 'admin@example.org', password: 'administrator of the tests' };
  await app.program.users.create({ name: 'Ada', role: 'admin', ...credentials });
  const signIn = { method: 'POST', target: '/tokens', fields: { 'Content-Type': 'application/json' } };
  const { body } = await app.inject({ ...signIn, body: JSON.stringify(credentials) });
  const token = /"access_token":"([^"]+)/.exec(body)?.[1] ?? '';
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const good = `GET /livez ${host}Connection: close\r\n\r\n`;

  let [sent, replies] = [0, 0];
  const worker = async (): Promise<void> => {
    while (sent < requestsCount) {
      let bytes = '';
      const together = 1 + random.below(4);
      for (let count = 0; count < together; count += 1) {
        let request = random.pick(corpus).replace('{token}', token);
        for (let mutations = random.below(5); mutations > 0; mutations -= 1) request = mutate(request, random);
        bytes += request;
      }
      sent += together;
      const client = new RawClient(port);
      for (let at = 0; at < bytes.length; ) {
        const size = random.pick([bytes.length, bytes.length, 1 + random.below(bytes.length)]);
        client.send(bytes.slice(at, at + size));
        at += size;
        if (at < bytes.length) await new Promise((resolve) => setImmediate(resolve));
      }
      if (random.below(20) === 0) {
        client.socket.resetAndDestroy();
        continue;
      }
      client.socket.end();
      const received = await client.rest().catch((error: unknown) => {
        throw new Error(`no end of the connection after ${JSON.stringify({ sent: bytes, got: client.unread })}`, {
          cause: error,
        });
      });
      replies += check(received, bytes);
    }
  };
  const run = async (): Promise<void> => {
    await Promise.all(Array.from({ length: workersCount }, worker));
    assert.equal(check(await new RawClient(port).send(good).rest(), good), 1);
    await waitUntil(() => app.load().connections + app.load().inFlight === 0, 'connections stay open');
    const refusals = { ownShare: 0, usedUp: 0, brokenOff: 0, memoryFull: 0, diskFull: 0 };
    assert.deepEqual(app.load(), { inFlight: 0, connections: 0, refused: 0, refusals, listeners: 0, dropped: 0 });
  };

  const wanted = requestsCount;
  sent = wanted - Math.min(wanted, 2000);
  await run();
  const [recordsBefore, heapBefore] = [app.store.status().commits, heapMiB()];
  [sent, replies] = [0, 0];
  const startedMs = performance.now();
  await run();
  const [commits, heapAfter] = [app.store.status().commits - recordsBefore, heapMiB()];
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(
    `# ${sent} requests, ${replies} replies, ${commits} commits in ${seconds.toFixed(0)} s; ` +
      `heap ${heapBefore.toFixed(1)} MiB before, ${heapAfter.toFixed(1)} MiB after`,
  );
  // Each commit may have left a record of some hundred bytes.
  assert.ok(heapAfter - heapBefore < 5 + (commits * 1000) / 1024 ** 2, 'the memory comes back');
});
