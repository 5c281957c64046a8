import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { TestClock } from '../auth/helpers.ts';
import { openTestApp, type TestAppOptions } from '../support/app.ts';

async function setUp(t: TestContext, options: TestAppOptions = {}) {
  const clock = new TestClock();
  const opened = await openTestApp(t, { clock, ...options });
  const { ask, credentials } = opened;
  const login = (password: string, address = '192.0.2.1', email = credentials('member').email, path = '/login') =>
    ask('POST', path, { json: { email, password }, address });
  return { ...opened, clock, login, right: credentials('member').password };
}

test('after 5 wrong passwords even the right one has to wait; elsewhere, and later, it is good', async (t) => {
  const { clock, login, right } = await setUp(t);
  for (let index = 0; index < 5; index += 1) {
    assert.equal((await login(`guess ${index}`)).code, 'invalid_credentials');
  }
  const throttled = await login(right);
  assert.deepEqual([throttled.status, throttled.code], [429, 'too_many_requests']);
  assert.equal(throttled.field('retry-after'), '60');
  assert.equal((await login(right, '192.0.2.1', 'MEMBER@example.org', '/tokens')).status, 429, 'by any way in');
  assert.equal((await login(right, '192.0.2.2')).status, 200);
  clock.advance(60);
  assert.equal((await login(right)).status, 200);
});

test('of six right passwords at the same time none has to wait for longer than a second', async (t) => {
  const { login, right } = await setUp(t, { scryptCost: 12, withoutPort: true });
  const answers = await Promise.all(Array.from({ length: 6 }, () => login(right)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 429]);
  assert.equal(answers.find(({ status }) => status === 429)?.field('retry-after'), '1');
  assert.equal((await login(right)).status, 200);
});

test('an unknown account is throttled like a known one', async (t) => {
  const { login } = await setUp(t);
  const codes = [];
  for (let index = 0; index < 6; index += 1) codes.push((await login('x', '192.0.2.1', 'nobody@example.org')).code);
  assert.deepEqual(codes, [...new Array<string>(5).fill('invalid_credentials'), 'too_many_requests']);
});

test('passwords that are wrong from many addresses do not lock out the address that signed in before', async (t) => {
  const { login, right } = await setUp(t);
  assert.equal((await login(right, '192.0.2.1')).status, 200);
  for (let index = 0; index < 40; index += 1) await login('guess', `198.51.100.${index}`);
  assert.equal((await login(right, '203.0.113.1')).status, 429);
  assert.equal((await login(right, '192.0.2.1')).status, 200);
});

test('an app that hashes as much as it may says when to come back, and forgets the attempt', async (t) => {
  const { login, right } = await setUp(t, { scryptCost: 12, withoutPort: true });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => login('guess', `198.51.100.${index}`, `${index}@example.org`)),
  );
  const refused = answers.filter(({ status }) => status === 503);
  assert.equal(refused.length, 6);
  for (const answer of refused) assert.deepEqual([answer.code, answer.field('retry-after')], ['overloaded', '5']);
  assert.equal((await login(right)).status, 200);
});

/** RFC 6750 §2.1 and HOSTILE "Transport": what stands in `Authorization`, and what it gets. `T` is a good token. */
const transports: readonly [title: string, value: string, status: number][] = [
  ['Bearer', 'Bearer T', 200],
  ['bearer', 'bearer T', 200],
  ['BEARER', 'BEARER T', 200],
  ['no scheme', 'T', 401],
  ['Basic', 'Basic YWRtaW46YWRtaW4=', 401],
  ['two spaces', 'Bearer  T', 401],
  ['a tab', 'Bearer\tT', 401],
  ['a comma', 'Bearer T, Bearer T', 401],
  ['nothing', 'Bearer', 401],
  ['an empty field', '', 401],
  ['a parameter', 'Bearer token=T', 401],
];
for (const [title, value, status] of transports) {
  test(`Authorization with ${title}: ${status}, also beside a good cookie`, async (t) => {
    const { ask, token, cookie } = await setUp(t);
    const authorization = value.replaceAll('T', await token('member'));
    for (const more of [{}, { cookie: await cookie('member') }]) {
      const answer = await ask('GET', '/items', { fields: { authorization, ...more } });
      assert.equal(answer.status, status);
      if (status === 401) {
        const problem = /^bearer /i.test(value) ? 'it is not valid, or has expired' : '"Bearer" has to stand before it';
        assert.equal(Object(answer.json).detail, `Cannot accept the access token: ${problem}`);
        assert.equal(answer.field('www-authenticate'), 'Bearer error="invalid_token"');
      }
    }
  });
}

test('a token in the query is no credential', async (t) => {
  const { ask, token } = await setUp(t);
  const answer = await ask('GET', `/items?access_token=${await token('member')}`);
  assert.deepEqual([answer.status, answer.code], [401, 'authentication_required']);
  assert.equal(answer.field('www-authenticate'), 'Bearer');
});

test('a refresh token is no access token', async (t) => {
  const { ask, credentials } = await setUp(t);
  const { refresh_token } = Object((await ask('POST', '/tokens', { json: credentials('member') })).json);
  const answer = await ask('GET', '/items', { fields: { authorization: `Bearer ${String(refresh_token)}` } });
  assert.equal(answer.code, 'invalid_token');
});

test('a public route does not look at credentials, an optional one does', async (t) => {
  const { ask, credentials } = await setUp(t, { registration: 'open' });
  const stale = { authorization: 'Bearer stale', cookie: 'sid=stale' };
  assert.equal((await ask('GET', '/livez', { fields: stale })).status, 200);
  assert.equal((await ask('POST', '/login', { fields: stale, json: credentials('member') })).status, 200);
  assert.equal((await ask('POST', '/tokens', { fields: stale, json: credentials('member') })).status, 201);
  const json = { name: 'New', email: 'new@example.org' };
  assert.equal((await ask('POST', '/users', { fields: stale, json })).code, 'invalid_token');
  assert.equal((await ask('POST', '/users', { fields: { cookie: 'sid=stale' }, json })).code, 'invalid_session');
  assert.equal((await ask('POST', '/users', { json })).status, 201);
});

const own = 'https://cairn.example';
const allowed = 'https://app.example';
/** DESIGN, "Cross-site rule": `Sec-Fetch-Site`, `Origin`, and whether the request passes. */
const crossSite: readonly [site: string | undefined, origin: string | undefined, passes: boolean][] = [
  ['same-origin', undefined, true],
  ['same-origin', own, true],
  ['none', undefined, true],
  ['same-site', undefined, false],
  ['same-site', 'https://other.cairn.example', false],
  ['cross-site', undefined, false],
  ['cross-site', 'https://evil.example', false],
  ['cross-site', 'null', false],
  ['cross-site', own, false],
  ['cross-site', allowed, true],
  ['same-site', allowed, true],
  ['', undefined, false],
  ['SAME-ORIGIN', undefined, false],
  [undefined, undefined, true],
  [undefined, own, true],
  [undefined, 'https://CAIRN.example', true],
  [undefined, allowed, true],
  [undefined, 'null', false],
  [undefined, '', false],
  [undefined, 'https://evil.example', false],
  [undefined, 'https://cairn.example.evil.example', false],
  [undefined, 'https://cairn.example:8443', false],
  [undefined, `${own}/`, false],
  [undefined, 'cairn.example', false],
  [undefined, `${allowed}.evil.example`, false],
];
for (const [site, origin, passes] of crossSite) {
  const title = `Sec-Fetch-Site ${site ?? 'absent'}, Origin ${origin ?? 'absent'}`;
  const outcome = passes ? 'passes' : 'is refused with a cookie and for sign-in, and nowhere else';
  test(`${title}: ${outcome}`, async (t) => {
    const { ask, token, cookie, credentials } = await setUp(t, { corsOrigins: [allowed] });
    const sid = await cookie('member');
    const from = {
      host: 'cairn.example',
      ...(site !== undefined && { 'sec-fetch-site': site }),
      ...(origin !== undefined && { origin }),
    };
    const item = { name: 'Lamp', price: 1 };
    const refresh = { refresh_token: 'x' };
    const guarded: [string, string, object, Readonly<Record<string, string>>, number][] = [
      ['POST', '/items', item, { cookie: sid }, 201],
      ['PATCH', '/users/2', { name: 'Mia' }, { cookie: sid }, 200],
      ['POST', '/login', credentials('member'), {}, 200],
      ['POST', '/tokens', credentials('member'), {}, 201],
      ['POST', '/tokens/revoke', refresh, {}, 204],
      ['POST', '/logout', {}, { cookie: sid }, 204],
    ];
    const safe = await ask('GET', '/items', { fields: { cookie: sid, ...from } });
    assert.equal(safe.status, 200);
    const bearer = { authorization: `Bearer ${await token('member')}`, ...from };
    assert.equal((await ask('POST', '/items', { fields: bearer, json: item })).status, 201);
    for (const [method, target, json, fields, status] of guarded) {
      const answer = await ask(method, target, { fields: { ...fields, ...from }, json });
      const expected = passes ? [status, undefined] : [403, 'cross_site'];
      assert.deepEqual([answer.status, answer.code], expected, target);
    }
  });
}

test('CORS: an allowed origin reads the answer and may write, without cookies', async (t) => {
  const { ask } = await setUp(t, { corsOrigins: [allowed] });
  const preflight = (origin: string) =>
    ask('OPTIONS', '/items', { fields: { origin, 'access-control-request-method': 'POST' } });
  const yes = await preflight(allowed);
  assert.equal(yes.status, 204);
  assert.equal(yes.field('access-control-allow-origin'), allowed);
  assert.match(yes.field('access-control-allow-methods') ?? '', /\bPOST\b/);
  assert.match(yes.field('access-control-allow-headers') ?? '', /\bAuthorization\b/);
  const no = await preflight('https://evil.example');
  assert.equal(no.field('access-control-allow-origin'), undefined);
  const read = await ask('GET', '/livez', { fields: { origin: allowed } });
  assert.equal(read.field('access-control-allow-origin'), allowed);
  assert.match(read.field('access-control-expose-headers') ?? '', /\bETag\b/);
  const refused = await ask('GET', '/items', { fields: { origin: allowed } });
  assert.deepEqual([refused.status, refused.field('access-control-allow-origin')], [401, allowed]);
  for (const answer of [yes, no, read, refused, await ask('GET', '/livez')]) {
    assert.match(answer.field('vary') ?? '', /\bOrigin\b/);
    assert.equal(answer.field('access-control-allow-credentials'), undefined);
  }
});

test('auth=none: every caller is an administrator, of this machine and no other site', async (t) => {
  const { app, ask, cookie } = await setUp(t, { auth: 'none' });
  for (const host of ['localhost', 'LOCALHOST:3000', '127.0.0.1:3000', '127.1.2.3', '[::1]', '[::1]:3000']) {
    assert.equal((await ask('GET', '/users', { fields: { host } })).status, 200, host);
  }
  const foreign = ['cairn.example', 'localhost.evil.example', '127.0.0.1.evil.example', '192.0.2.1', '0.0.0.0'];
  for (const host of foreign) {
    for (const asked of ['GET /users', 'GET /livez', 'POST /login', 'GET /login', 'OPTIONS /items', 'GET /nowhere']) {
      const [method = '', target = ''] = asked.split(' ');
      const answer = await ask(method, target, { fields: { host }, ...(method === 'POST' && { json: {} }) });
      assert.deepEqual([answer.status, answer.code], [421, 'misdirected_request'], `${asked} at ${host}`);
    }
  }
  const json = { name: 'Lamp', price: 1 };
  const evil = { 'sec-fetch-site': 'cross-site' };
  assert.equal((await ask('POST', '/items', { json })).status, 201);
  assert.equal((await ask('POST', '/items', { json, fields: evil })).code, 'cross_site');
  assert.equal((await ask('DELETE', '/items/1', { fields: { origin: 'null' } })).code, 'cross_site');
  assert.equal((await ask('PATCH', '/users/2', { json: { role: 'admin' } })).status, 200);
  assert.equal((await ask('DELETE', '/users/2')).status, 204);
  assert.equal((await ask('GET', '/items', { fields: { authorization: 'Bearer stale' } })).status, 200);
  assert.equal((await ask('GET', '/dashboard')).code, 'authentication_required');
  assert.equal((await ask('GET', '/dashboard', { fields: { cookie: await cookie('admin') } })).status, 200);
  await assert.rejects(app.listen({ host: '0.0.0.0', port: 0 }), /loopback/);
});

test('a cookie is refused when there are two, and is no credential under another name', async (t) => {
  const { ask, cookie } = await setUp(t);
  const sid = await cookie('member');
  assert.equal((await ask('GET', '/items', { fields: { cookie: `${sid}; ${sid}` } })).code, 'malformed_request');
  assert.equal((await ask('GET', '/items', { fields: { cookie: `a=b; ${sid}; c=d` } })).status, 200);
  assert.equal((await ask('GET', '/items', { fields: { cookie: sid.replace('sid', 'SID') } })).status, 401);
  assert.equal((await ask('GET', '/items', { fields: { cookie: 'sid=' } })).code, 'invalid_session');
});

test('RFC 6265bis section 4.1: each login makes a new id, and the cookie is guarded', async (t) => {
  const { ask, credentials } = await setUp(t);
  const login = await ask('POST', '/login', { json: credentials('member'), fields: { cookie: 'sid=fixed' } });
  const again = await ask('POST', '/login', { json: credentials('member') });
  const form = /^sid=([\w-]{43}); Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/;
  const [one, two] = [login, again].map((answer) => form.exec(answer.field('set-cookie') ?? '')?.[1]);
  assert.ok(one !== undefined && two !== undefined && one !== two && one !== 'fixed');
});
