import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../../src/app.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { silentLog, type SecurityEvent } from '../../src/log.ts';
import type { SessionRecord } from '../../src/resources/sessions.ts';
import { openStore } from '../../src/store/open-store.ts';
import { temporaryDirectory } from '../cli/spawn.ts';
import { openTestApp } from '../support/app.ts';

test('a change of an e-mail address is a security event, told without the address', async (t) => {
  const events: [SecurityEvent, unknown][] = [];
  const log = { ...silentLog, security: (...event: [SecurityEvent, unknown]) => void events.push(event) };
  const { ask, token } = await openTestApp(t, { log });
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const renamed = { name: 'Mia M.', email: 'member@example.org' };
  events.length = 0;
  await ask('PUT', '/users/2', { fields, json: renamed });
  assert.deepEqual(events, []);
  await ask('PATCH', '/users/2', { fields, json: { email: 'mia@example.org' } });
  assert.deepEqual(events, [['email_changed', { userId: 2, by: 1 }]]);
});

test('a session with a time that no date can be is no session: the start stops at it', async (t) => {
  const session = { kind: 'cookie', userId: 1, lookupHash: 'x', address: '', agent: '' } as const;
  const starts = async (createdAt: number): Promise<string> => {
    const directory = temporaryDirectory(t);
    const store = openStore({ directory, clock: systemClock, random: systemRandom });
    const sessions = store.collection<SessionRecord>({ name: 'sessions', parse: () => undefined });
    await store.start();
    await store.write((transaction) =>
      transaction.insert(sessions, { ...session, createdAt, lastSeenAt: createdAt }),
    );
    await store.close();
    try {
      await (await createApp({ directory })).close();
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
    return 'started';
  };
  assert.equal(await starts(1_900_000_000_000), 'started');
  for (const time of [9e15, -9e15, 8.64e15, -1]) {
    assert.match(await starts(time), /it does not fit the declaration of sessions/, String(time));
  }
});
