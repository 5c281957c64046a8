import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { defineCollection } from '../../src/index.ts';
import { silentLog } from '../../src/log/log.ts';
import { startApp } from '../support/app.ts';
import { mountSmallDisk } from '../support/small-disk.ts';

test('a server on a full disk serves signed-in users, and writes again when there is room', async (t) => {
  const disk = mountSmallDisk(t, '4m');
  if (disk === undefined) return t.skip('no file system can be mounted here');
  const directory = join(disk, 'data');
  const secret = 'a secret that both starts know, and 32 bytes';
  const first = await startApp(t, { directory, secret });
  const [cookie, token] = [await first.createCookie('member'), await first.createToken('member')];
  await (await first.signIn('member')).post('/items', { json: { name: 'Lamp', price: 1 } });
  await first.app.close();

  const filler = join(disk, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024)), { code: 'ENOSPC' });
  const said: string[] = [];
  const log = { ...silentLog, message: (_: string, text: string) => void said.push(text) };
  const { app, client } = await startApp(t, { directory, secret, log });
  assert.match(said.join(), /the disk is full: nothing is written until 1\d{6} bytes are free in .*data$/);
  for (const fields of [{ cookie }, { authorization: `Bearer ${token}` }]) {
    assert.equal((await client.get('/items/1', { headers: fields })).status, 200);
    const refused = await client.post('/items', { headers: fields, json: { name: 'Chair', price: 2 } });
    assert.deepEqual([refused.status, refused.code], [507, 'storage_full']);
    assert.match(Object(refused.json).detail, /: 1\d{6} bytes have to be free$/);
    assert.equal((await client.delete('/items/1', { headers: fields })).code, 'storage_full');
  }
  assert.equal((await client.get('/dashboard', { headers: { cookie } })).status, 200);
  assert.equal((await client.post('/login', { json: first.credentials('member') })).code, 'storage_full');
  const ready = await client.get('/readyz');
  assert.deepEqual([ready.status, ready.json], [200, { status: 'ready', writes: 'full' }]);

  rmSync(filler);
  const fields = { cookie };
  assert.equal((await client.post('/items', { headers: fields, json: { name: 'Chair', price: 2 } })).status, 201);
  assert.equal(app.store.state, 'writable');
  await app.close();
});

test('on a full disk, writes get 507, removals make room, and people can still sign in', async (t) => {
  const disk = mountSmallDisk(t, '6m');
  if (disk === undefined) return t.skip('no file system can be mounted here');
  const directory = join(disk, 'data');
  const text = { kind: 'text', max: 1_000_000 } as const;
  const collections = [defineCollection({ name: 'notes', fields: { text } }).definition];
  const { app, signIn, client, credentials } = await startApp(t, { directory, collections });
  const member = await signIn('member');
  const ids: number[] = [];
  const signInAgain = async (): Promise<void> => {
    assert.equal((await client.post('/login', { json: credentials('member') })).status, 200);
  };
  const write = async (): Promise<number> => {
    const { status, json } = await member.post('/notes', { json: { text: 'x'.repeat(50_000) } });
    if (status === 201) ids.push(Object(json).id);
    return status;
  };
  for (let round = 0; round < 3; round += 1) {
    let status = 201;
    while (status === 201 && ids.length < 500) status = await write();
    assert.deepEqual([status, app.store.state], [507, 'full'], `round ${round}, ${ids.length} notes`);
    await signInAgain();
    const most = ids.length;
    do {
      const id = ids.shift() ?? assert.fail('everything is removed, and there is no room');
      assert.equal((await member.delete(`/notes/${id}`)).status, 204);
      await signInAgain();
      await app.store.checkpoint();
      status = await write();
    } while (status === 507);
    assert.deepEqual([status, app.store.state], [201, 'writable'], `${ids.length} of ${most} notes are left`);
  }
  await app.close();
  const again = await startApp(t, { directory, collections });
  const { json } = await (await again.signIn('member')).get('/notes?fields=id');
  assert.deepEqual(json, ids.map((id) => ({ id })));
  await again.app.close();
});
