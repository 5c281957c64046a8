import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test, type TestContext } from 'node:test';

import type { Route } from '../../src/api/call.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { items } from '../../src/collections/items.ts';
import { allRoutes } from '../support/contract.ts';
import { readHandbook } from '../support/source.ts';
import { readCookie, startApp } from '../support/app.ts';

const secret = 'the secret that signs in these tests';
const password = 'a password for everybody';

/** The callers, in the order of the table's columns. `own`: the user or the owner of the record. */
const callers = [
  'nobody', 'garbage', 'expired', 'other key', 'member', 'own', 'admin', 'cookie', 'cross-site',
] as const;
type Caller = (typeof callers)[number];

/** The code of a refusal, by its status, the caller, and the access rule of the route. */
function expectedCode(status: number, caller: Caller, { access, method }: Route): string | undefined {
  if (status === 404) return 'not_found';
  if (status === 401) return caller === 'nobody' ? 'authentication_required' : 'invalid_token';
  if (status !== 403) return undefined;
  if (caller === 'cross-site' && method !== 'GET') return 'cross_site';
  return { admin: 'insufficient_scope', owner: 'not_owner', session: 'session_required' }[String(access)];
}

function sign(claims: object, key = secret): string {
  const [header, payload] = [{ alg: 'HS256', typ: 'JWT' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  return `${header}.${payload}.${createHmac('sha256', key).update(`${header}.${payload}`).digest('base64url')}`;
}

type TestApp = Awaited<ReturnType<typeof startApp>>;

interface Target {
  readonly userId: number;
  readonly itemId: number;
  readonly sessionId: number;
  readonly keyId: number;
  readonly cookie: string;
  readonly email: string;
  /** Another user, who has no password, and their invitation. */
  readonly invitedId: number;
  readonly invitation: string;
}

/** A new user with an item, a session and an API key of their own. */
async function makeTarget({ client }: TestApp, admin: string, number: number): Promise<Target> {
  const email = `user${number}@example.org`;
  const address = `192.0.2.${number % 256}`;
  const created = await client.post('/users', {
    headers: { authorization: admin },
    json: { name: 'Somebody', email, password },
  });
  const userId = Number(Object(created.json).id);
  const login = await client.post('/login', { json: { email, password }, address });
  const cookie = readCookie(login);
  const item = await client.post('/items', { headers: { cookie }, json: { name: 'Lamp', price: 1 } });
  const sessions = await client.get('/sessions', { headers: { cookie } });
  const json = { name: 'Backup', currentPassword: password };
  const key = await client.post('/keys', { headers: { cookie }, json });
  const statuses = [created, login, item, sessions, key].map(({ status }) => status);
  assert.deepEqual(statuses, [201, 200, 201, 200, 201]);
  const keyId = Object(key.json).id;
  const fields = { authorization: admin };
  const invited = await client.post('/users', { headers: fields, json: { name: 'Guest', email: `guest-${email}` } });
  const invitedId = Number(Object(invited.json).id);
  const { path } = Object((await client.post(`/users/${invitedId}/invitation`, { headers: fields })).json);
  const invitation = String(path).replace('/#/invite/', '');
  const [itemId, sessionId] = [Number(Object(item.json).id), Object(sessions.json)[0].id];
  return { keyId, userId, itemId, sessionId, cookie, email, invitedId, invitation };
}

function fieldsOf(caller: Caller, { userId, cookie }: Target): { [name: string]: string } {
  const iat = Math.floor(Date.now() / 1000);
  const good = { iat, exp: iat + 60 };
  const bearer = (claims: object, key?: string): { authorization: string } => ({
    authorization: `Bearer ${sign(claims, key)}`,
  });
  switch (caller) {
    case 'nobody':
      return {};
    case 'garbage':
      return { authorization: 'Bearer not.a.token' };
    case 'expired':
      return bearer({ userId, role: 'member', iat: iat - 60, exp: iat });
    case 'other key':
      return bearer({ userId, role: 'member', ...good }, 'a secret of some other server altogether');
    case 'member':
      return bearer({ userId: 2, role: 'member', ...good });
    case 'own':
      return bearer({ userId, role: 'member', ...good });
    case 'admin':
      return bearer({ userId: 1, role: 'admin', ...good });
    case 'cookie':
      return { cookie, 'sec-fetch-site': 'same-origin' };
    case 'cross-site':
      return { cookie, 'sec-fetch-site': 'cross-site' };
  }
}

function bodyOf(operationId: string, { email, invitation }: Target, currentPassword: string): unknown {
  const user = { name: 'Renamed', email };
  const bodies: { [operationId: string]: unknown } = {
    createUser: { name: 'New', email: `new-${email}` },
    replaceUser: user,
    patchUser: { name: 'Renamed' },
    createItem: { name: 'Chair', price: 2 },
    createManyItems: [{ name: 'Chair', price: 2 }, { name: 'Table', price: 3 }],
    replaceItem: { name: 'Chair', price: 2 },
    patchItem: { price: 3 },
    login: { email, password },
    createToken: { email, password },
    createApiKey: { name: 'Sensor', currentPassword },
    acceptInvitation: { token: invitation, password },
    revokeToken: { refresh_token: 'x'.repeat(43) },
  };
  return bodies[operationId];
}

/** One row of the table, each cell asked of a user, an item, a session and an API key that are new. */
async function row(app: TestApp, operationId: string, route: Route, next: () => number): Promise<string[]> {
  const admin = `Bearer ${await app.createToken('admin')}`;
  const cells: string[] = [];
  for (const caller of callers) {
    const number = next();
    const target = await makeTarget(app, admin, number);
    const ids: { [segment: string]: number } = {
      users: operationId === 'inviteUser' ? target.invitedId : target.userId,
      items: target.itemId,
      sessions: target.sessionId,
      keys: target.keyId,
    };
    const path = route.path.replace('{id}', String(ids[route.path.split('/')[1] ?? '']));
    const own = caller === 'member' || caller === 'admin' ? app.credentials(caller).password : password;
    const json = bodyOf(operationId, target, own);
    const answer = await app.client.send(route.method, path, {
      headers: fieldsOf(caller, target),
      address: `198.51.100.${number % 256}`,
      ...(json !== undefined && { json }),
    });
    const expected = expectedCode(answer.status, caller, route);
    assert.equal(answer.code, expected, `${operationId} as ${caller}: ${answer.body}`);
    cells.push(String(answer.status));
  }
  return cells;
}

async function rows(t: TestContext, registration: 'open' | 'closed', only?: string): Promise<string[]> {
  const app = await startApp(t, { secret, registration });
  let number = 0;
  const lines: string[] = [];
  for (const route of await allRoutes([items], { registration })) {
    const { operationId = '' } = route;
    if (only !== undefined && operationId !== only) continue;
    const cells = await row(app, operationId, route, () => (number += 1));
    const name = `\`${route.method} ${route.path}\`${only === undefined ? '' : `, registration ${registration}`}`;
    lines.push(`| ${name} | ${cells.join(' | ')} |`);
  }
  return lines;
}

test('who may do what is as the manual says, cell by cell', async (t) => {
  const shown = /<!-- access -->\n(.*?)\n<!-- \/access -->/s.exec(readHandbook())?.[1];
  const expected = [
    `| | ${callers.join(' | ')} |`,
    `|---|${callers.map(() => '--:').join('|')}|`,
    ...(await rows(t, 'closed')),
    ...(await rows(t, 'open', 'createUser')),
  ];
  assert.deepEqual(shown?.split('\n'), expected);
});

test('a change shows no record to a caller who may not read it', async (t) => {
  const secrets = declareCollection({
    name: 'secrets', singular: 'secret', fields: { name: { kind: 'text' } },
    access: { read: 'admin', replace: 'user', patch: 'user' },
  });
  const { signIn } = await startApp(t, { collections: [secrets] });
  const [admin, member] = [await signIn('admin'), await signIn('member')];
  await admin.post('/secrets', { json: { name: 'hidden' } });
  for (const [method, json] of [['PATCH', {}], ['PUT', { name: 'seen' }]] as const) {
    const answer = await member.send(method, '/secrets/1', { json });
    assert.deepEqual([answer.status, answer.code], [403, 'insufficient_scope']);
    assert.equal((await admin.send(method, '/secrets/1', { json })).status, 200);
  }
});
