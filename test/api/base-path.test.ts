import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createApp, type PlainReply } from '../support/inside.ts';

const administrator = { email: 'ada@example.org', password: 'correct horse battery staple' };
const json = { 'Content-Type': 'application/json' };

/** Sends requests under `prefix` to an app that is shown under `/api`. */
async function openUnder(t: { after(close: () => Promise<void>): void }, prefix: string) {
  const app = await createApp({ basePath: '/api', administrator, scryptCost: 1 });
  t.after(() => app.close());
  const ask = (method: string, path: string, fields = {}, body?: string): Promise<PlainReply> =>
    app.inject({ method, target: prefix + path, fields, body });
  const signedIn = await ask('POST', '/login', json, JSON.stringify(administrator));
  const setCookie = signedIn.fields.get('set-cookie') ?? '';
  const cookie = { Cookie: setCookie.split(';')[0] ?? '' };
  return { app, ask, setCookie, cookie, writing: { ...json, ...cookie } };
}

for (const prefix of ['/api', '']) {
  const sent = prefix === '' ? 'taken off by a proxy' : 'as the caller sent it';
  test(`under a base path, ${sent}, every path in a reply begins with the base path`, async (t) => {
    const { ask, setCookie, cookie, writing } = await openUnder(t, prefix);
    assert.match(setCookie, /^sid=[\w-]+; Path=\/api; Max-Age=/);
    const made = await ask('POST', '/items', writing, '{"name":"Lamp","price":1}');
    assert.equal(made.fields.get('location'), '/api/items/1');
    assert.equal((await ask('POST', '/items', writing, '{"name":"</x>; Path=/;","price":2}')).status, 201);
    const page = await ask('GET', '/items?limit=1&name:ne=%3C/', cookie);
    assert.match(page.fields.get('link') ?? '', /^<\/api\/items\?limit=1&name:ne=%3C\/&cursor=[\w-]+>; rel="next"$/);
    assert.equal((await ask('GET', '/items/2', cookie)).body, '{"id":2,"name":"</x>; Path=/;","price":2}');
    const document: unknown = JSON.parse((await ask('GET', '/openapi.json')).body);
    assert.ok(document instanceof Object && 'servers' in document);
    assert.deepEqual(document.servers, [{ url: '/api' }]);
    for (const path of ['/nowhere', '/items/9', '/%zz']) {
      const problem: unknown = JSON.parse((await ask('GET', path, cookie)).body);
      assert.ok(problem instanceof Object && 'type' in problem);
      assert.match(String(problem.type), /^\/api\/openapi\.json#\/x-problems\/\w+$/, path);
    }
    const { body } = await ask('GET', '/');
    const files = [...body.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, file = '']) => file);
    assert.ok(files.length >= 3);
    for (const file of files) {
      const { pathname } = new URL(file, 'http://localhost/api/');
      assert.equal((await ask('GET', pathname.replace('/api', ''))).status, 200, file);
    }
  });
}

test('the base path without a slash redirects to the page', async (t) => {
  const { app } = await openUnder(t, '/api');
  const { status, fields } = await app.inject({ target: '/api' });
  assert.deepEqual([status, fields.get('location')], [303, '/api/']);
  assert.equal((await app.inject({ target: '/api/livez' })).status, 200);
  assert.equal((await app.inject({ target: '/apis/livez' })).status, 404);
  assert.equal((await app.inject({ target: '/api//livez' })).status, 404);
});

for (const auth of ['required', 'none'] as const) {
  test(`a page of a development server calls through its proxy, with --auth ${auth}`, async (t) => {
    const app = await createApp({ basePath: '/api', administrator, scryptCost: 1, auth });
    const port = await app.listen({ port: 0, host: '127.0.0.1' });
    // As the proxy of Vite does by default: each field as it came, and none added.
    const proxy = createServer((incoming, outgoing) => {
      const { method, url: path, rawHeaders: headers } = incoming;
      incoming.pipe(request({ host: '127.0.0.1', port, method, path, headers }, (reply) => {
        outgoing.writeHead(reply.statusCode ?? 0, reply.rawHeaders);
        reply.pipe(outgoing);
      }));
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const { port: pagePort } = proxy.address() as AddressInfo;
    t.after(async () => {
      proxy.close();
      proxy.closeAllConnections();
      await app.close();
    });
    /** Asks as a page at the port of the proxy does. */
    const ask = async (method: string, path: string, body?: string, cookie?: string): Promise<IncomingMessage> => {
      const host = `localhost:${pagePort}`;
      const own = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' };
      const headers = { ...own, ...(body && json), ...(cookie && { cookie }) };
      const [reply] = await once(
        request({ host: '127.0.0.1', port: pagePort, method, path, headers }).end(body), 'response',
      );
      return reply;
    };
    const signedIn = await ask('POST', '/api/login', JSON.stringify(administrator));
    // A browser keeps cookies by host and path, whatever the port.
    const [cookie = '', ...attributes] = signedIn.headers['set-cookie']?.[0]?.split('; ') ?? [];
    assert.deepEqual([signedIn.statusCode, attributes[0]], [200, 'Path=/api']);
    const made = await ask('POST', '/api/items', '{"name":"Lamp","price":1}', cookie);
    assert.deepEqual([made.statusCode, made.headers.location], [201, '/api/items/1']);
    assert.equal(await text(await ask('GET', '/api/items', undefined, cookie)), '[{"id":1,"name":"Lamp","price":1}]');
    const me = await ask('GET', '/api/me', undefined, cookie);
    assert.equal(me.statusCode, auth === 'none' ? 404 : 200);
    if (auth === 'none') assert.match(await text(me), /without authentication, nobody signs in/);
    const feed = await ask('GET', '/api/changes', undefined, cookie);
    assert.match(String(await once(feed, 'data')), /^retry: /);
    feed.destroy();
  });
}
