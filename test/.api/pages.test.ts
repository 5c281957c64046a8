import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../.support/app.ts';

test('the page is served to every caller, with its own policy and an entity tag', async (t) => {
  const { ask } = await openTestApp(t);
  const page = await ask('GET', '/', { fields: { authorization: 'Bearer stale' } });
  assert.equal(page.status, 200);
  assert.equal(page.field('content-type'), 'text/html; charset=utf-8');
  assert.match(page.field('content-security-policy') ?? '', /require-trusted-types-for 'script'/);
  assert.equal((await ask('GET', '/?utm_source=mail')).body, page.body);
  const again = await ask('GET', '/', { fields: { 'if-none-match': page.field('etag') ?? '' } });
  assert.deepEqual([again.status, again.body], [304, '']);
  const files = [...page.body.matchAll(/(?:src|href)="(page\/[^"]+)"/g)].map(([, path = '']) => `/${path}`);
  assert.ok(files.length >= 3);
  for (const file of files) assert.equal((await ask('GET', file)).status, 200, file);
});

test('the dashboard is a page for a signed-in browser, and JSON for other callers', async (t) => {
  const { ask, credentials } = await openTestApp(t);
  const login = await ask('POST', '/login', { json: credentials('admin') });
  const cookie = login.field('set-cookie')?.split(';')[0] ?? '';
  const page = await ask('GET', '/dashboard', { fields: { cookie, accept: 'text/html' } });
  assert.equal(page.field('content-type'), 'text/html; charset=utf-8');
  assert.equal(page.field('vary'), 'Accept, Accept-Encoding, Cookie');
  const changed = await ask('GET', '/dashboard', { fields: { cookie, accept: 'text/html', 'if-match': '"x"' } });
  assert.equal(changed.status, 412);
  for (const accept of ['', '*/*', 'application/json', 'application/json, text/html', 'image/png']) {
    const json = await ask('GET', '/dashboard', { fields: { cookie, accept } });
    assert.equal(json.field('content-type'), 'application/json', accept);
  }
  const usual = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  for (const accept of ['TEXT/HTML', usual]) {
    const html = await ask('GET', '/dashboard', { fields: { cookie, accept } });
    assert.equal(html.field('content-type'), 'text/html; charset=utf-8', accept);
  }
});

test('the page knows whether signing in is required', async (t) => {
  const [closed, open] = [await openTestApp(t), await openTestApp(t, { auth: 'none' })];
  assert.match((await closed.ask('GET', '/')).body, /^<!doctype html>\n<html lang="en">/);
  assert.match((await open.ask('GET', '/')).body, /^<!doctype html>\n<html data-auth="none" lang="en">/);
});

test('an app without a page has none, and its dashboard is JSON for browsers too', async (t) => {
  const { ask, cookie } = await openTestApp(t, { page: false });
  assert.equal((await ask('GET', '/')).status, 404);
  const browser = { accept: 'text/html' };
  assert.equal((await ask('GET', '/dashboard', { fields: browser })).status, 401);
  const dashboard = await ask('GET', '/dashboard', { fields: { ...browser, cookie: await cookie('admin') } });
  assert.deepEqual([dashboard.status, dashboard.field('content-type')], [200, 'application/json']);
  const description = await ask('GET', '/openapi.json');
  assert.doesNotMatch(description.body, /text\/html/);
});
