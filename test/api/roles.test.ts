import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { createApp, defineCollection } from '../../src/index.ts';
import { startApp, type Client, type TestAppOptions } from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';

const fields = { title: { kind: 'text', min: 1 } } as const;
const declared = {
  roles: ['editor', 'viewer'],
  items: true,
  collections: [
    { name: 'pages', fields, access: { list: 'public', read: 'public', create: 'editor', remove: 'editor' } },
    { name: 'plans', fields, access: { list: 'viewer', read: 'viewer', create: 'member' } },
  ],
};

async function setUp(t: TestContext, options: TestAppOptions = parseDeclarations(declared, [])) {
  const opened = await startApp(t, options);
  const { client, signIn, withHeaders, credentials } = opened;
  const admin = await signIn('admin');
  const asMember = async (): Promise<Client> => {
    const { json } = await client.post('/tokens', { json: credentials('member') });
    const authorization = `Bearer ${Object(json).access_token}`;
    return withHeaders({ authorization });
  };
  const give = async (role: string) => (await admin.patch('/users/2', { json: { role } })).status;
  return { ...opened, admin, asMember, give };
}

const json = { title: 'One' };

test('a declared role allows exactly what access rules name it for', async (t) => {
  const { admin, asMember, give, client } = await setUp(t);
  assert.equal((await admin.post('/plans', { json })).status, 201);
  assert.equal((await admin.post('/pages', { json })).status, 201);
  /** The statuses for a role: create, read and remove a page, list, read and create plans, create an item. */
  const statuses = async (who: Client): Promise<number[]> => {
    const made = await who.post('/pages', { json });
    const answers = [
      made, await who.get('/pages/1'), await who.delete('/pages/1', {}), await who.get('/plans'),
      await who.get('/plans/1'), await who.post('/plans', { json }),
      await who.post('/items', { json: { name: 'Lamp', price: 1 } }), await who.get('/users'),
    ];
    return answers.map(({ status }) => status);
  };
  const refused = 403;
  assert.deepEqual(await statuses(client), [401, 200, 401, 401, 401, 401, 401, 401]);
  assert.deepEqual(await statuses(await asMember()), [refused, 200, refused, refused, refused, 201, 201, refused]);
  assert.equal(await give('viewer'), 200);
  assert.deepEqual(await statuses(await asMember()), [refused, 200, refused, 200, 200, refused, 201, refused]);
  assert.equal(await give('editor'), 200);
  assert.deepEqual(await statuses(await asMember()), [201, 200, 204, refused, refused, refused, 201, refused]);
  const denied = await (await asMember()).get('/plans');
  assert.deepEqual([denied.code, denied.header('www-authenticate')], [
    'insufficient_scope', 'Bearer error="insufficient_scope"',
  ]);
  assert.equal(Object(denied.json).detail, 'Cannot authorize the request: another role is required: viewer');
});

test('only administrators give roles, and only declared ones', async (t) => {
  const { admin, asMember, give } = await setUp(t);
  for (const role of ['king', 'Editor', 'owner', 'user', '']) assert.equal(await give(role), 422, role);
  const member = await asMember();
  assert.equal((await member.patch('/users/2', { json: { role: 'editor' } })).status, 422);
  assert.equal(await give('editor'), 200);
  assert.equal(Object((await admin.get('/users/2')).json).role, 'editor');
  assert.equal(Object((await admin.get('/users?role=editor')).json).length, 1);
  // A token with the earlier role cannot write users, and its stream has ended.
  assert.equal((await member.patch('/users/2', { json: { name: 'Eve' } })).code, 'actor_changed');
  const made = await admin.post('/users', { json: { name: 'Eve', email: 'eve@example.org', role: 'viewer' } });
  assert.deepEqual([made.status, Object(made.json).role], [201, 'viewer']);
});

test('a user with a role that is no longer declared counts as signed in', async (t) => {
  const directory = temporaryDirectory(t);
  const first = await setUp(t, { ...parseDeclarations(declared, []), directory });
  assert.equal(await first.give('editor'), 200);
  await first.app.close();

  const collections = [{ name: 'plans', fields, access: { list: 'member', create: 'user' } }];
  const fewer = parseDeclarations({ roles: ['viewer'], collections }, []);
  const { asMember, give, signIn } = await setUp(t, { ...fewer, directory });
  const former = await asMember();
  assert.equal((await former.get('/plans')).status, 403, 'it is no member either');
  assert.equal((await former.post('/plans', { json })).status, 201);
  // Each response is checked against the OpenAPI document.
  for (const target of ['/me', '/users/2']) assert.equal(Object((await former.get(target)).json).role, 'editor');
  const listed = await (await signIn('admin')).get('/users?fields=role');
  assert.deepEqual(Object(listed.json), [{ role: 'admin' }, { role: 'editor' }]);
  assert.equal(await give('member'), 200);
  assert.equal(await give('editor'), 422);
});

test('if only roles may read, only they see lists and embedded records', async (t) => {
  const collections = [
    { name: 'plans', fields, access: { read: 'editor' } },
    { name: 'drafts', fields, access: { list: 'owner', read: 'editor' } },
    { name: 'steps', fields: { planId: { kind: 'reference', to: 'plans' } } },
  ];
  const { admin, asMember, give } = await setUp(t, parseDeclarations({ roles: ['editor'], collections }, []));
  assert.equal((await admin.post('/plans', { json })).status, 201);
  assert.equal((await admin.post('/steps', { json: { planId: 1 } })).status, 201);
  const seen = async () => {
    const who = await asMember();
    assert.equal((await who.post('/drafts', { json })).status, 201);
    const answers = [await who.get('/plans'), await who.get('/plans/1'), await who.get('/steps?embed=planId')];
    const { json: drafts } = await who.get('/drafts');
    return [...answers.map(({ status }) => status), Object(drafts).length];
  };
  assert.deepEqual(await seen(), [403, 403, 403, 0]);
  assert.equal(await give('editor'), 200);
  assert.deepEqual(await seen(), [200, 200, 200, 2]);
});

test('the OpenAPI document has the roles and who may do what', async (t) => {
  const { app } = await setUp(t);
  const { components, paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const known = ['admin', 'member', 'editor', 'viewer'];
  for (const name of ['NewUser', 'UserReplacement', 'UserPatch'])
    assert.deepEqual(components.schemas[name].properties.role.enum, known, name);
  const { post } = paths['/pages'];
  assert.deepEqual([post['x-access'], post.description], ['editor', 'Access: editor.']);
});

test('a reserved role name, or an access rule with an unknown role, stops the start with its place', () => {
  const collection = (access: object) => ({ collections: [{ name: 'pages', fields, access }] });
  const cases: readonly [object, RegExp][] = [
    ...['owner', 'public', 'admin', 'member', 'session', 'Editor', 'a b', '', 'authorIds'].map(
      (role): [object, RegExp] => [{ roles: ['editor', role] }, /^\/roles\/1 must be 1 to 40 lower-case letters, /],
    ),
    [{ roles: 'editor' }, /^\/roles must be an array of roles$/],
    [{ roles: ['editor'], ...collection({ list: 'edtor' }) },
      /^\/collections\/0\/access\/list must be one of .*, editor, not "edtor"; did you mean "editor"\?$/],
    [collection({ create: 'editor' }),
      /^\/collections\/0\/access\/create must be one of .*, not "editor"; if it is a role/],
    [collection({ list: 'self' }), /^\/collections\/0\/access\/list must be one of .*, not "self"$/],
  ];
  for (const [json, message] of cases)
    assert.throws(() => parseDeclarations(JSON.parse(JSON.stringify(json)), []), { message }, JSON.stringify(json));
});

test('programs declare roles the way files do', async (t) => {
  const pages = defineCollection({ name: 'pages', fields, access: { create: 'editor' } });
  await assert.rejects(createApp({ collections: [pages] }), /\/collections\/0\/access\/create must be one of/);
  await assert.rejects(createApp({ roles: ['owner'] }), /\/roles\/0 must be 1 to 40 lower-case letters/);
  const { give } = await setUp(t, { collections: [pages], roles: ['editor'] });
  assert.equal(await give('editor'), 200);
});
