import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Passwords } from '../../src/auth/passwords.ts';
import { TestClock } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { readCookie, startApp, type TestAppOptions } from '../support/app.ts';

async function setUp(t: TestContext, options: TestAppOptions = {}) {
  const clock = new TestClock();
  const opened = await startApp(t, { clock, ...options });
  const { client, credentials } = opened;
  const login = (password: string, address = '192.0.2.1', email = credentials('member').email, path = '/login') =>
    client.post(path, { json: { email, password }, address });
  return { ...opened, clock, login, right: credentials('member').password };
}

test('after 5 wrong passwords even the right one must wait, except from another address', async (t) => {
  const { clock, login, right } = await setUp(t);
  for (let index = 0; index < 5; index += 1) {
    assert.equal((await login(`guess ${index}`)).code, 'invalid_credentials');
  }
  const throttled = await login(right);
  assert.deepEqual([throttled.status, throttled.code], [429, 'too_many_requests']);
  assert.equal(throttled.header('retry-after'), '60');
  assert.equal((await login(right, '192.0.2.1', 'MEMBER@example.org', '/tokens')).status, 429, 'by any way in');
  assert.equal((await login(right, '192.0.2.2')).status, 200);
  clock.advance(60);
  assert.equal((await login(right)).status, 200);
});

test('of six right passwords at once one is told to wait, and may try again', async (t) => {
  const { login, right } = await setUp(t, { scryptCost: 10, withoutPort: true });
  const answers = await Promise.all(Array.from({ length: 6 }, () => login(right)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 429]);
  assert.equal(answers.find(({ status }) => status === 429)?.header('retry-after'), '60');
  assert.equal((await login(right)).status, 200);
});

test('an unknown account is throttled like a known one', async (t) => {
  const { login } = await setUp(t);
  const codes = [];
  for (let index = 0; index < 6; index += 1) codes.push((await login('x', '192.0.2.1', 'nobody@example.org')).code);
  assert.deepEqual(codes, [...new Array<string>(5).fill('invalid_credentials'), 'too_many_requests']);
});

test('wrong passwords from many addresses do not lock out an address that signed in before', async (t) => {
  const { login, right } = await setUp(t);
  assert.equal((await login(right, '192.0.2.1')).status, 200);
  for (let index = 0; index < 40; index += 1) await login('guess', `198.51.100.${index}`);
  assert.equal((await login(right, '203.0.113.1')).status, 429);
  assert.equal((await login(right, '192.0.2.1')).status, 200);
});

test('an account that signed in before is not locked out by others at its address, also after a restart', async (t) => {
  const directory = temporaryDirectory(t);
  const first = await setUp(t, { directory });
  assert.equal((await first.login(first.right)).status, 200);
  await first.app.close();
  const { client, right, credentials } = await setUp(t, { directory });
  for (let index = 0; index < 40; index += 1) {
    await client.post('/login', { json: { email: `${index}@example.org`, password: 'guess' }, address: '192.0.2.1' });
  }
  const login = (email: string) => client.post('/login', { json: { email, password: right }, address: '192.0.2.1' });
  assert.equal((await login('admin@example.org')).status, 429, 'who has not signed in from there');
  assert.equal((await login(credentials('member').email)).status, 200);
});

test('ten accounts that sign in as fast as they can do not lock out others', async (t) => {
  const { signIn, login, right } = await setUp(t, { scryptCost: 5, withoutPort: true });
  const admin = await signIn('admin');
  const emails = Array.from({ length: 10 }, (_, index) => `attacker${index}@example.org`);
  for (const email of emails) await admin.post('/users', { json: { name: 'Eve', email, password: right } });
  const outcomes: number[] = [];
  let isOver = false;
  const loop = async (email: string, address: string): Promise<void> => {
    // Without a port nothing here waits, and the hashes would never get their turn.
    for (; !isOver; await turn()) outcomes.push((await login(right, address, email)).status);
  };
  const loops = emails.flatMap((email, index) =>
    Array.from({ length: 5 }, () => loop(email, `198.51.100.${index}`)));
  const others: number[] = [];
  for (let index = 0; index < 10; index += 1) others.push((await login(right, '192.0.2.1')).status);
  others.push((await login('administrator of the tests', '192.0.2.2', 'admin@example.org')).status);
  isOver = true;
  await Promise.all(loops);
  assert.deepEqual(others, new Array<number>(11).fill(200));
  assert.ok(outcomes.includes(503), 'the queue was full');
});

test('an app at its limit of password hashes sends Retry-After, and does not count the attempt', async (t) => {
  const { login, right } = await setUp(t, { scryptCost: 10, withoutPort: true });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => login('guess', `198.51.100.${index}`, `${index}@example.org`)),
  );
  const refused = answers.filter(({ status }) => status === 503);
  // Two run, and 32 may wait.
  assert.equal(refused.length, 40 - 2 - 32);
  for (const answer of refused) assert.deepEqual([answer.code, answer.header('retry-after')], ['overloaded', '5']);
  assert.equal((await login(right)).status, 200);
});

test('sign-ins that are refused because the server is busy do not count as failures', async (t) => {
  const { login, right } = await setUp(t, { scryptCost: 10, withoutPort: true });
  const guesses = Array.from({ length: 36 }, (_, index) =>
    login('guess', `198.51.100.${index}`, `${index}@example.org`));
  const own = Array.from({ length: 5 }, () => login(right));
  assert.deepEqual((await Promise.all(own)).map(({ status }) => status), new Array<number>(5).fill(503));
  await Promise.all(guesses);
  assert.equal((await login(right)).status, 200);
});

/** RFC 6750 §2.1 and HOSTILE "Transport": what stands in `Authorization`, and what it gets. `T` is a good token. */
const transports: readonly [title: string, value: string, status: number][] = [
  ['Bearer', 'Bearer T', 200],
  ['bearer', 'bearer T', 200],
  ['BEARER', 'BEARER T', 200],
  ['no scheme', 'T', 401],
  ['Basic', 'Basic YWRtaW46YWRtaW4=', 401],
  ['two spaces', 'Bearer  T', 200],
  ['many spaces', `bearer${' '.repeat(100)}T`, 200],
  ['a space and a tab', 'Bearer \tT', 401],
  ['a tab', 'Bearer\tT', 401],
  ['a comma', 'Bearer T, Bearer T', 401],
  ['nothing', 'Bearer', 401],
  ['an empty field', '', 401],
  ['a parameter', 'Bearer token=T', 401],
];
test('Authorization wins over a good cookie', async (t) => {
  const { client, createToken, createCookie } = await setUp(t);
  const [good, sid] = [await createToken('member'), await createCookie('member')];
  for (const [title, value, status] of transports) {
    await t.test(`with ${title}: ${status}`, async () => {
      const authorization = value.replaceAll('T', good);
      for (const fields of [{ authorization }, { authorization, cookie: sid }]) {
        const answer = await client.get('/items', { headers: fields });
        assert.equal(answer.status, status);
        if (status === 200) continue;
        const scheme = 'access token: the authorization scheme must be "Bearer"';
        const invalid = 'access token or API key: it is not valid, has expired or was ended';
        assert.equal(Object(answer.json).detail, `Cannot accept the ${/^bearer /i.test(value) ? invalid : scheme}`);
        assert.equal(answer.header('www-authenticate'), 'Bearer error="invalid_token"');
      }
    });
  }
});

test('a token in the query is not a credential', async (t) => {
  const { client, createToken } = await setUp(t);
  const answer = await client.get(`/items?access_token=${await createToken('member')}`);
  assert.deepEqual([answer.status, answer.code], [401, 'authentication_required']);
  assert.equal(answer.header('www-authenticate'), 'Bearer');
});

test('a refresh token is not an access token', async (t) => {
  const { client, credentials } = await setUp(t);
  const { refresh_token } = Object((await client.post('/tokens', { json: credentials('member') })).json);
  const answer = await client.get('/items', { headers: { authorization: `Bearer ${String(refresh_token)}` } });
  assert.equal(answer.code, 'invalid_token');
});

test('a public route ignores credentials, an optional one checks them', async (t) => {
  const { client, credentials } = await setUp(t, { registration: 'open' });
  const stale = { authorization: 'Bearer stale', cookie: 'sid=stale' };
  assert.equal((await client.get('/livez', { headers: stale })).status, 200);
  assert.equal((await client.post('/login', { headers: stale, json: credentials('member') })).status, 200);
  assert.equal((await client.post('/tokens', { headers: stale, json: credentials('member') })).status, 201);
  const json = { name: 'New', email: 'new@example.org' };
  assert.equal((await client.post('/users', { headers: stale, json })).code, 'invalid_token');
  assert.equal((await client.post('/users', { headers: { cookie: 'sid=stale' }, json })).code, 'invalid_session');
  assert.equal((await client.post('/users', { json })).status, 201);
});

const own = 'https://cairn.example';
const allowed = 'https://app.example';
/** `Sec-Fetch-Site`, `Origin`, and whether the request passes: of an allowed origin only where no cookie decides. */
const crossSite: readonly [site: string | undefined, origin: string | undefined, boolean | 'no cookie'][] = [
  ['same-origin', undefined, true],
  ['same-origin', own, true],
  ['none', undefined, true],
  ['same-site', undefined, false],
  ['same-site', 'https://other.cairn.example', false],
  ['cross-site', undefined, false],
  ['cross-site', 'https://evil.example', false],
  ['cross-site', 'null', false],
  ['cross-site', own, false],
  ['cross-site', allowed, 'no cookie'],
  ['same-site', allowed, 'no cookie'],
  ['', undefined, false],
  ['SAME-ORIGIN', undefined, false],
  [undefined, undefined, true],
  [undefined, own, true],
  [undefined, 'https://CAIRN.example', true],
  [undefined, allowed, 'no cookie'],
  [undefined, 'null', false],
  [undefined, '', false],
  [undefined, 'https://evil.example', false],
  [undefined, 'https://cairn.example.evil.example', false],
  [undefined, 'https://cairn.example:8443', false],
  [undefined, `${own}/`, false],
  [undefined, 'cairn.example', false],
  [undefined, `${allowed}.evil.example`, false],
];
test('a page of another site is refused with a cookie and for sign-in, and nowhere else', async (t) => {
  const { client, createToken, createCookie, credentials } = await setUp(t, { corsOrigins: [allowed] });
  const bearer = { authorization: `Bearer ${await createToken('member')}` };
  const item = { name: 'Lamp', price: 1 };
  for (const [site, origin, passes] of crossSite) {
    const title = `Sec-Fetch-Site ${site ?? 'absent'}, Origin ${origin ?? 'absent'}`;
    await t.test(`${title}: ${passes === true ? 'passes' : 'is refused'}`, async () => {
      const sid = { cookie: await createCookie('member') };
      const from = {
        host: 'cairn.example',
        ...(site !== undefined && { 'sec-fetch-site': site }),
        ...(origin !== undefined && { origin }),
      };
      const unguarded = [
        await client.get('/items', { headers: { ...sid, ...from } }),
        await client.post('/items', { headers: { ...bearer, ...from }, json: item }),
      ];
      assert.deepEqual(unguarded.map(({ status }) => status), [200, 201]);
      const guarded: readonly [method: string, target: string, json: object, fields: object, status: number][] = [
        ['POST', '/items', item, sid, 201],
        ['PATCH', '/users/2', { name: 'Mia' }, sid, 200],
        ['POST', '/login', credentials('member'), {}, 200],
        ['POST', '/tokens', credentials('member'), {}, 201],
        ['POST', '/tokens/revoke', { refresh_token: 'x' }, {}, 204],
        ['POST', '/logout', {}, sid, 204],
      ];
      for (const [method, target, json, fields, status] of guarded) {
        const answer = await client.send(method, target, { headers: { ...fields, ...from }, json });
        const isGood = passes === 'no cookie' ? target.startsWith('/tokens') : passes;
        const expected = isGood ? [status, undefined] : [403, 'cross_site'];
        assert.deepEqual([answer.status, answer.code], expected, target);
        if (!isGood) assert.match(Object(answer.json).detail, /uses a token of \/tokens, .* --cors-origin allows$/);
      }
    });
  }
});

test('CORS: an allowed origin may read and write, without cookies', async (t) => {
  const { client } = await setUp(t, { corsOrigins: [allowed] });
  const preflight = (origin: string) =>
    client.send('OPTIONS', '/items', { headers: { origin, 'access-control-request-method': 'POST' } });
  const yes = await preflight(allowed);
  assert.equal(yes.status, 204);
  assert.equal(yes.header('access-control-allow-origin'), allowed);
  assert.match(yes.header('access-control-allow-methods') ?? '', /\bPOST\b/);
  for (const name of ['Authorization', 'Last-Event-ID', 'X-Request-Id', 'traceparent']) {
    assert.ok(yes.header('access-control-allow-headers')?.split(', ').includes(name), name);
  }
  const no = await preflight('https://evil.example');
  assert.equal(no.header('access-control-allow-origin'), undefined);
  const read = await client.get('/livez', { headers: { origin: allowed } });
  assert.equal(read.header('access-control-allow-origin'), allowed);
  const exposed = read.header('access-control-expose-headers') ?? '';
  for (const name of ['Content-Location', 'ETag', 'Preference-Applied', 'X-Request-Id']) {
    assert.ok(exposed.split(', ').includes(name), name);
  }
  // Refused before any route is known.
  const malformed = await client.get('/items/%zz', { headers: { origin: allowed } });
  assert.deepEqual([malformed.status, malformed.header('access-control-allow-origin')], [400, allowed]);
  const refused = await client.get('/items', { headers: { origin: allowed } });
  assert.deepEqual([refused.status, refused.header('access-control-allow-origin')], [401, allowed]);
  for (const answer of [yes, no, read, refused, malformed, await client.get('/livez')]) {
    assert.match(answer.header('vary') ?? '', /\bOrigin\b/);
    assert.equal(answer.header('access-control-allow-credentials'), undefined);
  }
});

test('auth=none: every caller on this machine is an administrator, except pages of other sites', async (t) => {
  const { app, client, createCookie } = await setUp(t, { auth: 'none' });
  for (const host of ['localhost', 'LOCALHOST:3000', '127.0.0.1:3000', '127.1.2.3', '[::1]', '[::1]:3000']) {
    assert.equal((await client.get('/users', { headers: { host } })).status, 200, host);
  }
  const foreign = ['cairn.example', 'localhost.evil.example', '127.0.0.1.evil.example', '192.0.2.1', '0.0.0.0'];
  for (const host of foreign) {
    for (const asked of ['GET /users', 'GET /livez', 'POST /login', 'GET /login', 'OPTIONS /items', 'GET /nowhere']) {
      const [method = '', target = ''] = asked.split(' ');
      const answer = await client.send(method, target, { headers: { host }, ...(method === 'POST' && { json: {} }) });
      assert.deepEqual([answer.status, answer.code], [421, 'misdirected_request'], `${asked} at ${host}`);
    }
  }
  for (const name of ['Forwarded', 'X-Forwarded-For', 'x-forwarded-proto', 'X-Forwarded-Prefix', 'X-Real-IP', 'Via']) {
    const answer = await client.get('/livez', { headers: { [name]: '127.0.0.1' } });
    assert.deepEqual([answer.status, answer.code], [421, 'misdirected_request'], name);
  }
  const json = { name: 'Lamp', price: 1 };
  const evil = { 'sec-fetch-site': 'cross-site' };
  assert.equal((await client.post('/items', { json })).status, 201);
  assert.equal((await client.post('/items', { json, headers: evil })).code, 'cross_site');
  assert.equal((await client.delete('/items/1', { headers: { origin: 'null' } })).code, 'cross_site');
  assert.equal((await client.patch('/users/2', { json: { role: 'admin' } })).status, 200);
  assert.equal((await client.delete('/users/2')).status, 204);
  assert.equal((await client.get('/items', { headers: { authorization: 'Bearer stale' } })).status, 200);
  assert.equal((await client.get('/dashboard')).code, 'authentication_required');
  assert.equal((await client.get('/dashboard', { headers: { cookie: await createCookie('admin') } })).status, 200);
  await assert.rejects(app.listen({ host: '0.0.0.0', port: 0 }), /loopback/);
});

test('of two live cookies, the one of the user that Session-User names counts, also to sign out', async (t) => {
  const { client, createCookie } = await startApp(t);
  const both = { cookie: `${await createCookie('admin')}; ${await createCookie('member')}`, 'session-user': '2' };
  assert.equal(Object((await client.get('/me', { headers: both })).json).id, 2);
  assert.equal((await client.post('/logout', { headers: both, json: {} })).status, 204);
  assert.equal((await client.get('/me', { headers: both })).code, 'other_user');
});

test('of up to four cookies called sid the live one counts; more are refused', async (t) => {
  const { client, createCookie, credentials } = await setUp(t);
  const sid = await createCookie('member');
  const statusOf = async (...cookies: string[]): Promise<unknown> => {
    const answers = [
      await client.get('/items', { headers: { cookie: cookies.join('; ') } }),
      await client.post('/items', { headers: { cookie: cookies.join('; ') }, json: { name: 'Lamp', price: 1 } }),
    ];
    return answers.map(({ status, code }) => code ?? status);
  };
  const stale = 'sid=stale';
  for (const cookies of [[sid, sid], [stale, sid], [sid, stale], [stale, stale, stale, sid], ['a=b', sid, 'c=d']])
    assert.deepEqual(await statusOf(...cookies), [200, 201], cookies.join('; '));
  for (const cookies of [[stale], [stale, 'sid='], [stale, stale, stale, stale]])
    assert.deepEqual(await statusOf(...cookies), ['invalid_session', 'invalid_session'], cookies.join('; '));
  assert.deepEqual(await statusOf(stale, stale, stale, stale, sid), ['malformed_request', 'malformed_request']);
  const five = { cookie: Array.from({ length: 5 }, () => sid).join('; ') };
  assert.equal((await client.post('/logout', { headers: five })).status, 400);
  assert.equal((await client.post('/login', { headers: five, json: credentials('member') })).status, 200);
});

test('a cookie of another name is not a credential', async (t) => {
  const { client, createCookie } = await setUp(t);
  const sid = await createCookie('member');
  assert.equal((await client.get('/items', { headers: { cookie: sid.replace('sid', 'SID') } })).status, 401);
  assert.equal((await client.get('/items', { headers: { cookie: 'sid=' } })).code, 'invalid_session');
});

test('a second cookie, set by a neighbouring host, does not prevent signing in or out', async (t) => {
  const { client, createCookie, credentials } = await setUp(t);
  const [sid, planted] = [await createCookie('member'), 'sid=planted'];
  for (const both of [`${planted}; ${sid}`, `${sid}; ${planted}`]) {
    const login = await client.post('/login', { json: credentials('member'), headers: { cookie: both } });
    assert.deepEqual([login.status, readCookie(login).length], [200, sid.length]);
  }
  const logout = await client.post('/logout', { headers: { cookie: `${planted}; ${sid}` } });
  assert.deepEqual([logout.status, readCookie(logout)], [204, 'sid=']);
  assert.equal((await client.get('/items', { headers: { cookie: sid } })).code, 'invalid_session');
});

test('RFC 6265bis section 4.1: each login makes a new id, and the cookie is guarded', async (t) => {
  const { client, credentials } = await setUp(t);
  const login = await client.post('/login', { json: credentials('member'), headers: { cookie: 'sid=fixed' } });
  const again = await client.post('/login', { json: credentials('member') });
  const form = /^sid=([\w-]{43}); Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/;
  const [one, two] = [login, again].map((answer) => form.exec(answer.header('set-cookie') ?? '')?.[1]);
  assert.ok(one !== undefined && two !== undefined && one !== two && one !== 'fixed');
});

test('CORS: without an allowed origin, OPTIONS has no CORS headers', async (t) => {
  const [closed, open] = [await setUp(t), await setUp(t, { corsOrigins: [allowed] })];
  const fields = { 'access-control-request-method': 'POST', origin: 'https://evil.example' };
  for (const { app } of [closed, open]) {
    const { fields: { raw } } = await app.inject({ method: 'OPTIONS', target: '/items', fields });
    assert.deepEqual(raw.filter((text) => /^access-control/i.test(text)), []);
  }
});

test('a password that changes after it was compared starts no session', async (t) => {
  const { signIn, login, right } = await setUp(t);
  const admin = await signIn('admin');
  const { verify } = Passwords.prototype;
  const compared = t.mock.method(Passwords.prototype, 'verify', async function (
    this: Passwords, ...given: Parameters<typeof verify>
  ) {
    const matches = await verify.apply(this, given);
    compared.mock.restore();
    const changed = await admin.patch('/users/2', { json: { password: 'another one of the house' } });
    assert.equal(changed.status, 200);
    return matches;
  });
  const refused = await login(right);
  assert.equal(compared.mock.callCount(), 1);
  assert.deepEqual([refused.status, refused.code], [401, 'invalid_credentials']);
  assert.equal((await login('another one of the house')).status, 200);
});
