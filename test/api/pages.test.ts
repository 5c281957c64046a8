import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startApp } from '../support/app.ts';

test('the page is served to every caller, with its own policy and an entity tag', async (t) => {
  const { client } = await startApp(t);
  const page = await client.get('/', { headers: { authorization: 'Bearer stale' } });
  assert.equal(page.status, 200);
  assert.equal(page.header('content-type'), 'text/html; charset=utf-8');
  assert.match(page.header('content-security-policy') ?? '', /require-trusted-types-for 'script'/);
  assert.equal((await client.get('/?utm_source=mail')).body, page.body);
  const again = await client.get('/', { headers: { 'if-none-match': page.header('etag') ?? '' } });
  assert.deepEqual([again.status, again.body], [304, '']);
  const files = [...page.body.matchAll(/(?:src|href)="(-\/page\/[^"]+)"/g)].map(([, path = '']) => `/${path}`);
  assert.ok(files.length >= 3);
  for (const file of files) assert.equal((await client.get(file)).status, 200, file);
});

test('the page knows whether signing in is required', async (t) => {
  const [closed, open] = [await startApp(t), await startApp(t, { auth: 'none' })];
  assert.match((await closed.client.get('/')).body, /^<!doctype html>\n<html lang="en">/);
  assert.match((await open.client.get('/')).body, /^<!doctype html>\n<html data-auth="none" lang="en">/);
});

test('an app without a page has none', async (t) => {
  const { client } = await startApp(t, { page: false });
  assert.equal((await client.get('/')).status, 404);
});
