import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createApp, defineCollection } from '../../src/index.ts';

const notes = defineCollection({ name: 'notes', fields: { text: { kind: 'text' } } });

test("fake timers in a program's tests do not stop writes, requests or close", async (t) => {
  const app = await createApp({ collections: [notes], auth: 'none' });
  t.mock.timers.enable();
  const created = await app.collection(notes).create({ text: 'a' });
  assert.equal(created.id, 1);
  const headers = { 'content-type': 'application/json' };
  const posted = await app.inject({ method: 'POST', target: '/notes', headers, body: '{"text":"b"}' });
  assert.equal(posted.status, 201);
  assert.equal((await app.inject({ target: '/notes?q=b' })).status, 200);
  const port = await app.listen({ port: 0 });
  const reply = await fetch(`http://127.0.0.1:${port}/notes/2`, { headers: { connection: 'close' } });
  assert.equal(reply.status, 200);
  await app.close();
});
