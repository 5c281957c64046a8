import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { newKeyRing, serialiseKeyRing } from '../../src/auth/keys.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { limits } from '../../src/base/limits.ts';
import { commands as keyCommands } from '../../src/cli/keys.ts';
import { commands as userCommands } from '../../src/cli/user.ts';
import { openData } from '../../src/app/data.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { completeOptions } from '../../src/programs/options.ts';
import { Fence } from '../../src/store/disk/fence.ts';
import { systemMachine } from '../../src/store/disk/lock.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { deniedSyncNotices } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand, type Outcome } from '../support/cli/terminal.ts';
import { createApp } from '../support/inside.ts';

const password = 'correct horse battery';

const toldWhenLocked = deniedSyncNotices.map((notice) => `The store says: ${notice}\n`).join('');

/** The outcome of a command, without the lines that opening a store adds in a locked-down run. */
async function cairn(directory: string, words: string, input = ''): Promise<Outcome> {
  const environment = { CAIRN_DATA: directory, CAIRN_SCRYPT_COST: '14' };
  const outcome = await runCommand([...userCommands, ...keyCommands], words.split(' '), input, environment);
  return { ...outcome, err: outcome.err.replace(toldWhenLocked, '') };
}

/** A directory with these users, whose password is hashed at the lowest cost. */
async function directoryWith(t: TestContext, users: Readonly<Record<string, 'admin' | 'member'>>): Promise<string> {
  const directory = temporaryDirectory(t);
  const app = await createApp({ directory, scryptCost: 1 });
  for (const [name, role] of Object.entries(users)) {
    await app.program.users.create({ name, role, email: `${name}@example.org`, password });
  }
  await app.close();
  return directory;
}

/** The status of signing in to what is in the directory. */
async function signIn(directory: string, email: string, secret: string): Promise<number> {
  const app = await createApp({ directory, scryptCost: 1 });
  const { status } = await app.inject({
    method: 'POST', target: '/tokens', fields: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email, password: secret }),
  });
  await app.close();
  return status;
}

test('users are added, listed and changed without a server', async (t) => {
  const directory = temporaryDirectory(t);
  assert.deepEqual(await cairn(directory, 'user add Ada@example.org --role admin', password), {
    code: 0, out: '1\tadmin\tAda@example.org\tAda\n', err: '',
  });
  assert.equal((await cairn(directory, 'user add bob@example.org --name Bob', `${password}\n`)).code, 0);
  assert.equal(await signIn(directory, 'ada@example.org', password), 201);
  assert.deepEqual(await cairn(directory, 'user set-password ada@example.org', 'another good password'), {
    code: 0, out: 'Ada@example.org has a new password, and has to sign in again\n', err: '',
  });
  assert.equal(await signIn(directory, 'ada@example.org', password), 401);
  assert.equal(await signIn(directory, 'ada@example.org', 'another good password'), 201);
  assert.deepEqual(await cairn(directory, 'user set-role bob@example.org admin'), {
    code: 0, out: 'bob@example.org now has the role admin\n', err: '',
  });
  const { out } = await cairn(directory, 'user list');
  assert.equal(out, '1\tadmin\tAda@example.org\tAda\n2\tadmin\tbob@example.org\tBob\n');
});

test('an API key is made without a server, printed once, and ends with a new password', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin' });
  const { code, out, err } = await cairn(directory, 'user key ADA@example.org --name Backup');
  assert.deepEqual([code, err], [0, '']);
  assert.match(out, /^cairn_[\w-]{43}\n$/);
  const statusWith = async (): Promise<number> => {
    const app = await createApp({ directory, scryptCost: 1 });
    const { status } = await app.inject({ target: '/users', fields: { Authorization: `Bearer ${out.trim()}` } });
    await app.close();
    return status;
  };
  assert.equal(await statusWith(), 200);
  await cairn(directory, 'user set-role ada@example.org admin');
  assert.equal(await statusWith(), 200);
  await cairn(directory, 'user set-password ada@example.org', 'another good password');
  assert.equal(await statusWith(), 401);
  for (const [words, message] of [
    ['user key ada@example.org', /^Cannot make the API key: use --name to say what it is for\n$/],
    ['user key eve@example.org --name x', /^Cannot find the user: no user has the address "eve@/],
    [`user key ada@example.org --name ${'x'.repeat(201)}`, /^Cannot use the name: it must /],
  ] as const) {
    const refused = await cairn(directory, words);
    assert.deepEqual([refused.code, refused.out], [64, ''], words);
    assert.match(refused.err, message);
  }
});

test('an API key for monitoring only reads', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin' });
  const { out } = await cairn(directory, 'user key ada@example.org --name prometheus --read-only');
  const app = await createApp({ directory, scryptCost: 1 });
  const fields = { Authorization: `Bearer ${out.trim()}`, 'Content-Type': 'application/json' };
  assert.equal((await app.inject({ target: '/metrics', fields })).status, 200);
  const made = await app.inject({ method: 'POST', target: '/items', fields, body: '{"name":"Lamp","price":1}' });
  assert.equal(made.status, 403);
  await app.close();
});

test('a user without a password is invited by a command', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin' });
  const app = await createApp({ directory, scryptCost: 1 });
  await app.program.users.create({ name: 'Eve', email: 'eve@example.org' });
  await app.close();
  const { code, out, err } = await cairn(directory, 'user invite EVE@example.org');
  assert.deepEqual([code, err], [0, '']);
  const [, token = ''] = /^\/#\/invite\/([\w-]{43})\n$/.exec(out) ?? [];
  const served = await createApp({ directory, scryptCost: 1 });
  const fields = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ token, password: 'a good and long password' });
  assert.equal((await served.inject({ method: 'POST', target: '/invitations', fields, body })).status, 204);
  await served.close();
  assert.equal(await signIn(directory, 'eve@example.org', 'a good and long password'), 201);
  const refused = await cairn(directory, 'user invite ada@example.org');
  assert.match(refused.err, /^Cannot invite the user: they have a password already\n$/);
  assert.equal(refused.out, '');
});

test('a role that a file declares is given with that file, and goes on without it', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin', bob: 'member' });
  const file = join(temporaryDirectory(t), 'own.json');
  writeFileSync(file, JSON.stringify({ roles: ['editor'] }));
  const given = await cairn(directory, `user set-role bob@example.org editor --collections ${file}`);
  assert.deepEqual(given, { code: 0, out: 'bob@example.org now has the role editor\n', err: '' });
  assert.match((await cairn(directory, 'user list')).out, /^2\teditor\tbob/m);
  const unknown = await cairn(directory, 'user set-role ada@example.org editor');
  assert.deepEqual([unknown.code, unknown.err], [64, 'Cannot use the role: it must be one of admin, member\n']);
  const words = `user add eve@example.org --role editor --collections ${file}`;
  assert.equal((await cairn(directory, words, password)).out, '3\teditor\teve@example.org\teve\n');
  assert.equal((await cairn(directory, 'user set-password bob@example.org', 'another good password')).code, 0);
  assert.equal(await signIn(directory, 'bob@example.org', 'another good password'), 201);
});

test('a user is removed with their sessions, but never the last administrator', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin', bob: 'member' });
  assert.equal(await signIn(directory, 'bob@example.org', password), 201);
  assert.deepEqual(await cairn(directory, 'user remove Bob@example.org'), {
    code: 0, out: 'bob@example.org is removed\n', err: '',
  });
  assert.equal((await cairn(directory, 'user list')).out, '1\tadmin\tada@example.org\tada\n');
  assert.equal(await signIn(directory, 'bob@example.org', password), 401);
  assert.match(readFileSync(join(directory, 'sessions.json'), 'utf8'), /"count":0/);
  const last = await cairn(directory, 'user remove ada@example.org');
  assert.deepEqual([last.code, last.out], [64, '']);
  assert.match(last.err, /^Cannot .*last administrator.*\n$/);
});

test('a user is removed with what the declaration says, which is asked for where records may refer', async (t) => {
  const directory = temporaryDirectory(t);
  const userId = { kind: 'reference', to: 'users', onDelete: 'clear', optional: true } as const;
  const definitions = [{ name: 'notes', fields: { userId }, ownerRemoved: 'remove' }] as const;
  const collections = definitions.map((one) => declareCollection(one));
  const app = await createApp({ directory, scryptCost: 1, collections });
  for (const name of ['ada', 'bob'])
    await app.program.users.create({ name, role: 'admin', email: `${name}@example.org`, password });
  const notes = app.collection('notes');
  for (let count = 0; count <= limits.referrersMax; count += 1000)
    await notes.createMany(Array.from({ length: 1000 }, () => ({})), { as: 2 });
  await notes.create({ userId: 2 }, { as: 1 });
  await app.close();
  const unknown = await cairn(directory, 'user remove bob@example.org');
  assert.deepEqual([unknown.code, unknown.err],
    [64, 'Cannot remove the user: records of notes may refer to them; use --collections\n']);
  const file = join(temporaryDirectory(t), 'own.json');
  writeFileSync(file, JSON.stringify({ collections: definitions }));
  const words = `user remove bob@example.org --collections ${file}`;
  const tooMany = await cairn(directory, words);
  assert.match(tooMany.err, /^Cannot .* over 10000 records depend on it; "cairn user remove --with-records"/);
  const removed = await cairn(directory, `${words} --with-records`);
  assert.deepEqual(removed, { code: 0, out: 'bob@example.org is removed\n', err: '' });
  assert.match((await cairn(directory, 'user list')).out, /^1.*\n$/);
  const kept = readFileSync(join(directory, 'notes.json'), 'utf8').match(/"ownerId":.*/g);
  assert.deepEqual(kept, ['"ownerId":1}']);
});

test('a generated password that is no longer good is not kept in its file', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin', bob: 'admin' });
  const file = join(directory, 'admin-password');
  writeFileSync(file, 'as serve leaves it\n');
  await cairn(directory, 'user set-password bob@example.org', 'another good password');
  assert.ok(existsSync(file), 'it is not about the second user');
  await cairn(directory, 'user set-password ada@example.org', 'another good password');
  assert.ok(!existsSync(file));
  writeFileSync(file, 'as serve leaves it\n');
  await cairn(directory, 'user remove ada@example.org');
  assert.ok(!existsSync(file));
  // The first user after a repair that lost all users has another id than 1.
  writeFileSync(file, 'as serve leaves it\n');
  await cairn(directory, 'user set-password bob@example.org', 'one more good password');
  assert.ok(!existsSync(file));
});

test('what is not allowed for users is one line, and nothing changes', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin' });
  const before = await cairn(directory, 'user list');
  const cases: readonly [words: string, input: string, message: RegExp][] = [
    ['user add ada@example.org', password, /^Cannot store the user: another user has this e-mail address\n$/],
    ['user add nobody', password, /^Cannot use the email: it must .*\n$/],
    ['user add bob@example.org', 'short', /^Cannot use the password: it must .*\n$/],
    ['user add bob@example.org', '', /^Cannot set the password: it is empty\n$/],
    ['user add bob@example.org --role king', password, /^Cannot use the role: it must be one of admin, member\n$/],
    ['user set-role ada@example.org king', '', /^Cannot use the role: it must .*\n$/],
    ['user set-role ada@example.org member', '', /^Cannot remove the last administrator.*\n$/],
    ['user set-password eve@example.org', password, /^Cannot find the user: no user has the address "eve@.*\n$/],
    [`user list --data ${join(directory, 'absent')}`, '', /^Cannot use --data ".*absent": there is no such dir.*\n$/],
  ];
  for (const [words, input, message] of cases) {
    const { code, out, err } = await cairn(directory, words, input);
    assert.deepEqual([code, out], [64, ''], words);
    assert.match(err, message);
  }
  assert.deepEqual(await cairn(directory, 'user list'), before);
});

test('where no store is, none is made by what fails or only looks', async (t) => {
  const directory = temporaryDirectory(t);
  const cases: readonly [words: string, input: string, message: RegExp][] = [
    ['user list', '', /^Cannot read \S+: no store is there; check its name\n$/],
    ['user set-role ada@example.org admin', '', /^Cannot use --data ".*": no store is there; start a server, or/],
    ['user set-password ada@example.org', password, /^Cannot use --data ".*": no store is there; start a server, or/],
    ['user add ada@example.org', '', /^Cannot set the password: it is empty\n$/],
    ['user add nobody', password, /^Cannot use the email: it must .*\n$/],
  ];
  for (const [words, input, message] of cases) {
    const { code, out, err } = await cairn(directory, words, input);
    assert.deepEqual([code, out, readdirSync(directory)], [64, '', []], words);
    assert.match(err, message);
  }
  writeFileSync(join(directory, 'users.json'), '');
  const damaged = await cairn(directory, 'user set-role ada@example.org admin');
  assert.match(damaged.err, /^Cannot open the store: users\.json.*\[N2\]/);
});

test('the first user is told of that nobody is an administrator, and a new directory is made by hand', async (t) => {
  const directory = temporaryDirectory(t);
  const absent = await cairn(join(directory, 'absent'), 'user add bob@example.org', password);
  assert.match(absent.err, /there is no such directory; for a new store, make it first, with mkdir -m 700\n$/);
  const listed = await cairn(join(directory, 'absent'), 'user list');
  assert.match(listed.err, /there is no such directory; check its name\n$/);
  const first = await cairn(directory, 'user add bob@example.org', password);
  const err = 'Nobody is an administrator yet: cairn user set-role EMAIL admin\n';
  assert.deepEqual(first, { code: 0, out: '1\tmember\tbob@example.org\tbob\n', err });
  assert.equal((await cairn(directory, 'user add ada@example.org --role admin', password)).err, '');
  assert.equal((await cairn(directory, 'user add eve@example.org', password)).err, '');
});

test('users are listed beside a running server, also one that has just been added', async (t) => {
  const directory = temporaryDirectory(t);
  const app = await createApp({ directory, scryptCost: 1 });
  t.after(() => app.close());
  for (const name of ['ada', 'bob']) {
    await app.program.users.create({ name, email: `${name}@example.org`, password });
    const { code, out, err } = await cairn(directory, 'user list');
    const last = out.trimEnd().split('\n').at(-1)?.replace(/^\d+\t/, '');
    assert.deepEqual([code, last, err], [0, `member\t${name}@example.org\t${name}`, '']);
  }
});

test('while a server has the directory, users are left alone, and nobody is asked for a password', async (t) => {
  const directory = temporaryDirectory(t);
  const app = await createApp({ directory, scryptCost: 14 });
  for (const words of ['user add ada@example.org', 'user set-password ada@example.org']) {
    const { code, err } = await cairn(directory, words);
    assert.equal(code, 75);
    assert.match(err, /^Cannot open the store: .* holds it.*\n$/);
  }
  await app.close();
  // So it is while a restore is under way, whatever is there of it by then.
  const target = temporaryDirectory(t);
  const files = new NodeFiles(target);
  const onNotice = (): void => undefined;
  const options = { files, clock: systemClock, random: systemRandom, machine: systemMachine, onNotice };
  const fence = new Fence(options);
  await fence.acquire();
  writeFileSync(join(target, 'users.json.0a1b.tmp'), '');
  assert.equal((await cairn(target, 'user set-role ada@example.org admin')).code, 75);
  await fence.release();
  const cut = await cairn(target, 'user set-role ada@example.org admin');
  assert.deepEqual([cut.code, /\[N2\]/.test(cut.err)], [78, true]);
  const absent = await cairn(directory, 'user set-password ada@example.org');
  assert.match(absent.err, /^Cannot find the user: .* the address "ada@example\.org"; see "cairn user list"\n$/);
});

test('a torn write that a command comes upon is told by the command, since no later start does', async (t) => {
  const directory = temporaryDirectory(t);
  const killed = temporaryDirectory(t);
  const app = await createApp({ directory, scryptCost: 14 });
  cpSync(directory, killed, { recursive: true, filter: (path) => !path.endsWith('lock') });
  await app.close();
  const [journal = ''] = readdirSync(killed).filter((name) => /^journal-\d+\.jsonl$/.test(name));
  const text = readFileSync(join(killed, journal), 'utf8').trimEnd();
  writeFileSync(join(killed, journal), `${text}\n{"sequence":1,"comm`);
  const { code, err } = await cairn(killed, 'user remove ada@example.org');
  assert.equal(code, 64);
  assert.match(err, /^The store says: journal-1\.jsonl ends at byte \d+ .*cut short, and left out\n/);
  assert.equal((await cairn(killed, 'user list')).err, '');
});

test('of a disk that fails under a command the reason is told', async (t) => {
  const { mock } = t.mock.method(process.stderr, 'write', () => true);
  const directory = temporaryDirectory(t);
  const { store, users } = openData(completeOptions({ directory }));
  await store.start();
  rmSync(join(directory, 'lock'));
  await assert.rejects(users.addFirst({ name: 'Ada', email: 'ada@example.org' }), { code: 'outcome_unknown' });
  await store.close();
  assert.match(String(mock.calls[0]?.arguments[0]), /^\{"level":"error","message":"The store has failed","reason":"/);
});

test('keys are rotated beside a running server, which takes them up when told, and logs nobody out', async (t) => {
  const directory = await directoryWith(t, { ada: 'admin' });
  const app = await createApp({ directory, scryptCost: 1 });
  t.after(() => app.close());
  const tokenOf = async (): Promise<string> => {
    const { body } = await app.inject({
      method: 'POST', target: '/tokens', fields: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email: 'ada@example.org', password }),
    });
    return String((JSON.parse(body) as { access_token: unknown }).access_token);
  };
  const kidOf = (token: string): unknown =>
    (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: unknown }).kid;
  const old = await tokenOf();
  const { out, code } = await cairn(directory, 'keys rotate');
  assert.equal(code, 0);
  await app.reloadKeys();
  const [kid = ''] = out.split(' ');
  assert.equal(kidOf(await tokenOf()), kid);
  assert.notEqual(kidOf(old), kid);
  const { status } = await app.inject({ target: '/items', fields: { Authorization: `Bearer ${old}` } });
  assert.equal(status, 200);
  assert.equal(statSync(join(directory, 'keys.json')).mode & 0o777, 0o600);

  const listed = await cairn(directory, 'keys list');
  assert.match(listed.out, new RegExp(`^${kid}\tmade \\S+\tsigns\n${String(kidOf(old))}\tmade \\S+\tretired \\S+\n$`));
  const file = JSON.parse(readFileSync(join(directory, 'keys.json'), 'utf8')) as { keys: { secret: string }[] };
  for (const { secret } of file.keys) assert.ok(!(out + listed.out).includes(secret), 'secrets stay in their file');
});

test('of rotations at the same time each key is kept, and who comes between is told', async (t) => {
  const directory = temporaryDirectory(t);
  const none = await cairn(directory, 'keys rotate');
  assert.deepEqual([none.code, none.err], [
    64, 'Cannot rotate the keys: there are none yet; the first start makes them\n',
  ]);
  const first = serialiseKeyRing(newKeyRing(systemRandom, systemClock.now()));
  writeFileSync(join(directory, 'keys.json'), first, { mode: 0o600 });
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => cairn(directory, 'keys rotate')));
  const done = outcomes.filter(({ code }) => code === 0);
  const listed = (await cairn(directory, 'keys list')).out;
  for (const { out } of done) assert.ok(listed.includes(out.split(' ')[0] ?? ''));
  for (const { code, err } of outcomes.filter((outcome) => !done.includes(outcome))) {
    assert.equal(code, 75);
    assert.match(err, /^Cannot rotate the keys: another rotation has rotation\.tmp; .*\n$/);
  }
  assert.equal(listed.split('\n').length - 1, done.length + 1);
  // Where Node.js denies syncs of directories, the store keeps a file for them.
  assert.deepEqual(readdirSync(directory).filter((name) => name !== '.sync'), ['keys.json']);
});

test('a rotation whose key file cannot be put in place leaves nothing behind', async (t) => {
  const directory = temporaryDirectory(t);
  const ring = serialiseKeyRing(newKeyRing(systemRandom, systemClock.now()));
  writeFileSync(join(directory, 'keys.json'), ring, { mode: 0o600 });
  const refusal = Object.assign(new Error('EPERM: no, rename'), { code: 'EPERM', syscall: 'rename' });
  const rename = t.mock.method(NodeFiles.prototype, 'rename', () => Promise.reject(refusal));
  const failed = await cairn(directory, 'keys rotate');
  const err = 'Cannot go on: EPERM: no, rename (see src/docs/troubleshooting.md#does-not-start)\n';
  assert.deepEqual(failed, { code: 74, out: '', err });
  rename.mock.restore();
  assert.deepEqual(readdirSync(directory).filter((name) => name !== '.sync'), ['keys.json']);
  assert.equal(readFileSync(join(directory, 'keys.json'), 'utf8'), ring);
  assert.equal((await cairn(directory, 'keys rotate')).code, 0);
});

test('each command tells its own options alone', async () => {
  const { out } = await runCommand(userCommands, ['user', 'list', '--help']);
  assert.deepEqual(out.match(/(?<=^ {0,4})--[\w-]+/gm), [
    '--data', '--cluster', '--cluster-prefix', '--cluster-ca', '--cluster-cert', '--cluster-key', '--cluster-user',
  ]);
});

test('a list of keys makes none', async (t) => {
  const directory = temporaryDirectory(t);
  assert.deepEqual(await cairn(directory, 'keys list'), { code: 0, out: '', err: 'There are no keys yet\n' });
  assert.deepEqual(readdirSync(directory), []);
});

test('a key that is configured is not rotated here', async (t) => {
  const directory = temporaryDirectory(t);
  const environment = { CAIRN_DATA: directory, CAIRN_SECRET: 'a secret of the tests, 32 bytes long' };
  const { code, err } = await runCommand(keyCommands, ['keys', 'rotate'], '', environment);
  assert.equal(code, 64);
  assert.match(err, /^Cannot list or rotate keys: the only key is CAIRN_SECRET/);
});
