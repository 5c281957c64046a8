import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../../src/app/app.ts';
import type { PlainReply } from '../../src/http/inject.ts';

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
    const browser = await ask('GET', '/dashboard', { Accept: 'text/html' });
    assert.deepEqual([browser.status, browser.fields.get('location')], [303, '/api/']);
    const { body } = await ask('GET', '/');
    const files = [...body.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, file = '']) => file);
    assert.ok(files.length >= 3);
    for (const file of files) {
      const { pathname } = new URL(file, 'http://localhost/api/dashboard');
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
