import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../support/app.ts';

test('the page is served to every caller, with its own policy and an entity tag', async (t) => {
  const { ask } = await openTestApp(t);
  const page = await ask('GET', '/', { fields: { authorization: 'Bearer stale' } });
  assert.equal(page.status, 200);
  assert.equal(page.field('content-type'), 'text/html; charset=utf-8');
  assert.match(page.field('content-security-policy') ?? '', /require-trusted-types-for 'script'/);
  assert.equal((await ask('GET', '/?utm_source=mail')).body, page.body);
  const again = await ask('GET', '/', { fields: { 'if-none-match': page.field('etag') ?? '' } });
  assert.deepEqual([again.status, again.body], [304, '']);
  const files = [...page.body.matchAll(/(?:src|href)="(-\/page\/[^"]+)"/g)].map(([, path = '']) => `/${path}`);
  assert.ok(files.length >= 3);
  for (const file of files) assert.equal((await ask('GET', file)).status, 200, file);
});

test('the page knows whether signing in is required', async (t) => {
  const [closed, open] = [await openTestApp(t), await openTestApp(t, { auth: 'none' })];
  assert.match((await closed.ask('GET', '/')).body, /^<!doctype html>\n<html lang="en">/);
  assert.match((await open.ask('GET', '/')).body, /^<!doctype html>\n<html data-auth="none" lang="en">/);
});

test('an app without a page has none', async (t) => {
  const { ask } = await openTestApp(t, { page: false });
  assert.equal((await ask('GET', '/')).status, 404);
});
