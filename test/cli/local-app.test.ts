import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, withApp } from '../../src/cli/local-app.ts';

test('a refusal that an app responds with is an error of the command', async () => {
  await withApp({}, {}, async (app) => {
    assert.equal((await ask(app, 'POST', '/items', { name: 'Lamp', price: 1 }))['id'], 1);
    await app.close();
    await assert.rejects(ask(app, 'POST', '/items', { name: 'Lamp', price: 1 }), { code: 'store_unavailable' });
  });
});
