import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { systemClock } from '../../src/base/system.ts';
import { createLineLog } from '../../src/log/log.ts';
import { readCookie, startApp, type ApiResponse, type RequestOptions } from '../support/app.ts';

/**
 * Plants a canary for every secret, uses and misuses each of them, and looks for them in all the wrong places: the log,
 * the data files, and every response except the one that issues the secret.
 */
test('no secret is logged, stored in the clear or answered to anybody', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-'));
  t.after(() => rmSync(directory, { recursive: true }));
  let logged = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      logged += String(chunk);
      done();
    },
  });
  const log = createLineLog({ level: 'info', clock: systemClock, sink });
  const secret = 'canary of the signing secret, 32 bytes';
  const { app, client, credentials } = await startApp(t, { directory, log, secret });

  const canaries = new Map([['signing secret', secret]]);
  const answers: { what: string; answer: ApiResponse; mayHold: readonly string[] }[] = [];
  const keep = async (what: string, request: string, asked: RequestOptions, mayHold: readonly string[] = []) => {
    const [method = '', target = ''] = request.split(' ');
    const answer = await client.send(method, target, asked);
    answers.push({ what, answer, mayHold });
    return answer;
  };
  const password = 'canary of the password of Mia';
  const [wrong, next] = ['canary of a wrong password', 'canary of the next password'];
  for (const [name, value] of Object.entries({ password, wrong, next, first: credentials('member').password })) {
    canaries.set(`${name} password`, value);
  }

  const login = await keep('login', 'POST /login', { json: credentials('member') }, ['cookie']);
  let cookie = readCookie(login);
  canaries.set('cookie', cookie.slice('sid='.length));
  const grant = await keep('tokens', 'POST /tokens', { json: credentials('member') }, ['access', 'refresh']);
  const { access_token: access, refresh_token: refresh } = Object(grant.json);
  canaries.set('access', access).set('refresh', refresh);
  const rotated = await keep(
    'refresh', 'POST /tokens',
    { json: { refresh_token: refresh } }, ['access 2', 'refresh 2'],
  );
  canaries.set('access 2', Object(rotated.json).access_token).set('refresh 2', Object(rotated.json).refresh_token);

  const bearer = { authorization: `Bearer ${access}` };
  const json = { password, currentPassword: credentials('member').password };
  await keep('short password', 'PATCH /users/2', { headers: { cookie }, json: { password: wrong.slice(0, 9) } });
  await keep(
    'wrong current password', 'PATCH /users/2',
    { headers: { cookie }, json: { ...json, currentPassword: wrong } },
  );
  const changed = await keep('password', 'PATCH /users/2', { headers: { cookie }, json }, ['cookie 2']);
  cookie = readCookie(changed);
  canaries.set('cookie 2', cookie.slice('sid='.length));
  await keep('wrong password', 'POST /login', { json: { ...credentials('member'), password: wrong } });
  await keep('password as e-mail', 'POST /login', { json: { email: wrong, password: next } });
  await keep('password of the wrong type', 'POST /login', { json: { email: 1, password: [next] } });
  await keep('password under a wrong name', 'POST /login', { json: { email: 'a', passwort: next } });
  await keep(
    'broken JSON', 'POST /login',
    { headers: { 'content-type': 'application/json' }, body: `{"password":"${next}"` },
  );
  await keep('another type', 'POST /login', { headers: { 'content-type': 'text/plain' }, body: next });
  await keep(
    'refresh of an ended family', 'POST /tokens',
    { json: { refresh_token: Object(rotated.json).refresh_token } },
  );
  await keep('revoke', 'POST /tokens/revoke', { json: { refresh_token: refresh } });
  await keep('cut token', 'GET /items', { headers: { authorization: `Bearer ${String(access).slice(0, -1)}` } });
  await keep('Basic', 'GET /items', { headers: { authorization: `Basic ${Buffer.from(next).toString('base64')}` } });
  await keep('ended cookie', 'GET /items', { headers: { cookie: `sid=${canaries.get('cookie')}` } });
  await keep('token in the query', `GET /items?access_token=${access}`, { headers: bearer });
  await keep('token in the path', `GET /${access}`, { headers: bearer });
  await keep('cookie as an id', `GET /sessions/${canaries.get('cookie')}`, { headers: bearer });
  await keep('sessions', 'GET /sessions', { headers: { cookie } });
  const named = { name: 'Backup', currentPassword: password };
  const newToken = await keep('new tokens', 'POST /tokens', { json: { ...credentials('member'), password } }, ['own']);
  canaries.set('own', Object(newToken.json).access_token);
  const owner = { authorization: `Bearer ${canaries.get('own')}` };
  const made = await keep('key', 'POST /keys', { headers: owner, json: named }, ['API key']);
  canaries.set('API key', Object(made.json).key);
  const script = { authorization: `Bearer ${canaries.get('API key')}` };
  await keep('use of a key', 'GET /items', { headers: script });
  await keep('keys by a key', 'GET /keys', { headers: script });
  await keep('keys', 'GET /keys', { headers: owner });
  await keep('a key in the query', `GET /items?key=${canaries.get('API key')}`, { headers: owner });
  await keep('a key as an id', `DELETE /keys/${canaries.get('API key')}`, { headers: owner });
  await keep('dashboard', 'GET /dashboard', { headers: { cookie } });
  await keep('user', 'GET /users/2', { headers: bearer });
  await keep('user with password hash', 'GET /users/2?fields=passwordHash', { headers: bearer });
  await keep('logout', 'POST /logout', { headers: { cookie }, json: { everywhere: true } });

  await app.store.checkpoint();
  await log.close(1000);
  const files = readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'latin1')] as const);
  assert.ok(files.some(([name]) => name === 'users.json'));
  const events = [...logged.matchAll(/"kind":"security","event":"(\w+)"/g)].map(([, event]) => event);
  for (const event of ['login', 'login_failed', 'logout', 'password_changed', 'user_created']) {
    assert.ok(events.includes(event), event);
  }

  const found: string[] = [];
  for (const [name, canary] of canaries) {
    assert.ok(canary.length >= 16, name);
    for (const shape of shapesOf(canary)) {
      if (logged.includes(shape)) found.push(`${name} in the log`);
      for (const [file, content] of files) if (content.includes(shape)) found.push(`${name} in ${file}`);
      for (const { what, answer, mayHold } of answers) {
        const fields = ['set-cookie', 'location', 'www-authenticate'].map((field) => answer.header(field));
        const shown = `${answer.body} ${fields}`;
        if (!mayHold.includes(name) && shown.includes(shape)) found.push(`${name} in the answer to: ${what}`);
      }
    }
  }
  for (const { what, answer } of answers) {
    if (/\$scrypt|[Hh]ash"/.test(answer.body)) found.push(`a hash in the answer to: ${what}`);
  }
  assert.deepEqual(found, []);
  assert.deepEqual(answers.filter(({ answer }) => answer.status >= 500).map(({ what }) => what), []);
});

/** A secret as it is, and as it would look in the usual encodings. */
function shapesOf(canary: string): string[] {
  const bytes = Buffer.from(canary);
  return [canary, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
}
