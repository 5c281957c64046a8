/** API keys, and the users named on boards, on a server that is killed all the time: what was acknowledged holds. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { testEnvironment, startProcess, temporaryDirectory, type Running } from '../../test/support/cli/spawn.ts';
import { createGenerator } from '../../test/support/basics.ts';
import { projectDirectory } from '../../test/support/source.ts';

const kills = Number(process.env['CAIRN_KEY_KILLS'] ?? 20);
const toUsers = { kind: 'reference', to: 'users', onDelete: 'clear' };
const named = ['owner', 'memberIds'];
const boards = {
  name: 'boards',
  fields: { title: { kind: 'text' }, memberIds: { kind: 'list', of: toUsers, default: [] } },
  access: { list: named, read: named, patch: named },
};
const password = testEnvironment.CAIRN_ADMIN_PASSWORD;
const bob = 2;

test(`access rules hold after ${kills} times kill -9`, async (t) => {
  const random = createGenerator('whose-kills');
  const directory = temporaryDirectory(t);
  const file = join(directory, 'collections.json');
  writeFileSync(file, JSON.stringify({ collections: [boards] }));
  let server: Running;
  let origin = '';

  async function start(): Promise<void> {
    const words = ['serve', '--data', join(directory, 'data'), '--collections', file, '--port', '0', '--log', 'json'];
    server = startProcess(t, [join(projectDirectory, 'dist', 'main.js'), ...words]);
    [, origin = ''] = await server.find(/ serves (http:\/\/127\.0\.0\.1:\d+)/);
  }

  /** Sends a request; returns `undefined` if its response was lost. */
  async function ask(token: string, method: string, target: string, body?: object) {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...(body && { 'content-type': type }) };
    try {
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      const response = await fetch(origin + target, { ...sent, signal: AbortSignal.timeout(20_000) });
      const text = await response.text();
      // A write that may have failed counts as one without a response.
      return response.status === 503 ? undefined : { status: response.status, json: text && JSON.parse(text) };
    } catch {
      return undefined;
    }
  }

  async function signIn(email: string): Promise<string> {
    const answer = await ask('', 'POST', '/tokens', { email, password });
    assert.equal(answer?.status, 201);
    return answer?.json.access_token;
  }

  await start();
  let admin = await signIn('admin@localhost.localdomain');
  assert.equal((await ask(admin, 'POST', '/users', { name: 'Bob', email: 'bob@example.org', password }))?.json.id, bob);
  const [living, gone] = [new Map<string, number>(), new Set<string>()];
  /** The possible members of each board: one list, or two while a response was lost. */
  const members = new Map<number, number[][]>();
  for (let id = 1; id <= 4; id += 1) {
    assert.equal((await ask(admin, 'POST', '/boards', { title: 'Board' }))?.json.id, id);
    members.set(id, [[]]);
  }
  const seen = { keysMade: 0, keysRemoved: 0, changes: 0 };

  async function makeKeys(until: () => boolean): Promise<void> {
    while (!until()) {
      const [oldest] = living;
      if (oldest !== undefined && living.size > 3 + random.below(4)) {
        const [key, id] = oldest;
        living.delete(key);
        const answer = await ask(admin, 'DELETE', `/keys/${id}`);
        if (answer === undefined) continue;
        assert.equal(answer.status, 204);
        gone.add(key);
        seen.keysRemoved += 1;
      } else {
        const answer = await ask(admin, 'POST', '/keys', { name: 'script', currentPassword: password });
        if (answer === undefined) continue;
        assert.equal(answer.status, 201, JSON.stringify(answer.json));
        living.set(answer.json.key, answer.json.id);
        seen.keysMade += 1;
      }
    }
  }

  async function changeBoard(id: number, until: () => boolean): Promise<void> {
    while (!until()) {
      const memberIds = random.below(2) === 0 ? [] : [bob];
      const before = members.get(id) ?? [];
      members.set(id, [...before, memberIds]);
      const answer = await ask(admin, 'PATCH', `/boards/${id}`, { memberIds });
      if (answer === undefined) continue;
      assert.equal(answer.status, 200);
      members.set(id, [memberIds]);
      seen.changes += 1;
    }
  }

  /** Checks that everything acknowledged holds, for the keys and for the users named on boards. */
  async function verify(): Promise<void> {
    for (const key of living.keys()) assert.equal((await ask(key, 'GET', '/me'))?.status, 200, 'a key is lost');
    for (const key of gone) assert.equal((await ask(key, 'GET', '/me'))?.status, 401, 'a removed key came back');
    const whole: { id: number; memberIds: number[] }[] = (await ask(admin, 'GET', '/boards'))?.json;
    assert.equal(whole.length, members.size);
    for (const { id, memberIds } of whole) {
      const possible = (members.get(id) ?? []).map((each) => String(each));
      assert.ok(possible.includes(String(memberIds)), `board ${id}: ${memberIds}, not one of ${possible.join(' or ')}`);
      members.set(id, [memberIds]);
    }
    const shown: { id: number }[] = (await ask(await signIn('bob@example.org'), 'GET', '/boards'))?.json;
    const expected = whole.filter(({ memberIds }) => memberIds.includes(bob)).map(({ id }) => id);
    assert.deepEqual(shown.map(({ id }) => id), expected, 'Bob sees the boards that name him');
  }

  for (let kill = 0; kill < kills; kill += 1) {
    const keys = (): number => seen.keysMade + seen.keysRemoved;
    const wanted = { keys: keys() + 1 + random.below(3), changes: seen.changes + 10 };
    let isOver = false;
    const until = (): boolean => isOver;
    const all = [makeKeys(until), ...Array.from(members.keys(), (id) => changeBoard(id, until))];
    const failed = Promise.all(all);
    failed.catch(() => (isOver = true));
    while (!isOver && (keys() < wanted.keys || seen.changes < wanted.changes)) await delay(5);
    await delay(random.below(60));
    isOver = true;
    server!.child.kill('SIGKILL');
    await server!.ended;
    await failed;
    await start();
    admin = await signIn('admin@localhost.localdomain');
    await verify();
  }
  server!.child.kill('SIGKILL');
  await server!.ended;
  assert.ok(seen.keysRemoved > 0 && living.size > 0);
  t.diagnostic(JSON.stringify({ kills, ...seen }));
});
