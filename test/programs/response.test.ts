import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../../src/index.ts';

const text = '{"id":1,"name":"Lamp é","price":24.5}';

async function openWithLamp(t: { after(end: () => Promise<void>): void }) {
  const app = await createApp({ auth: 'none' });
  t.after(() => app.close());
  await app.collection('items').create({ name: 'Lamp é', price: 24.5 });
  return { app, read: () => app.fetch(new Request('http://cairn/items/1')) };
}

/** Each way to read a body, with what it gives as text. */
const ways: Readonly<Record<string, (response: Response) => Promise<string>>> = {
  text: (response) => response.text(),
  json: async (response) => JSON.stringify(await response.json()),
  arrayBuffer: async (response) => Buffer.from(await response.arrayBuffer()).toString(),
  blob: async (response) => (await response.blob()).text(),
  bytes: async (response) => {
    const bytes = await Reflect.apply(Reflect.get(response, 'bytes'), response, []);
    assert.ok(bytes instanceof Uint8Array);
    return Buffer.from(bytes).toString();
  },
  body: (response) => new Response(response.body).text(),
  clone: async (response) => {
    const copy = response.clone();
    assert.equal(await response.text(), text);
    return copy.text();
  },
  'a response made of it': (response) => new Response(response.body, response).text(),
};

test('the response of app.fetch can be read once, like every response', async (t) => {
  const { read } = await openWithLamp(t);
  for (const [way, readAs] of Object.entries(ways)) {
    const response = await read();
    assert.equal(response.constructor, Response);
    assert.equal(response.bodyUsed, false, way);
    assert.equal(await readAs(response), text, way);
    assert.equal(response.bodyUsed, true, way);
    for (const [second, again] of Object.entries(ways)) {
      await assert.rejects(async () => again(response), TypeError, `${way}, then ${second}`);
    }
  }
});

test('the response of app.fetch has the status, the headers and the body as they are sent', async (t) => {
  const { app, read } = await openWithLamp(t);
  const response = await read();
  assert.deepEqual([response.status, response.ok, response.type], [200, true, 'default']);
  assert.equal(response.headers.get('content-type'), 'application/json');
  const tag = response.headers.get('etag') ?? '';
  const copy = response.clone();
  assert.deepEqual([copy.status, copy.headers.get('etag')], [200, tag]);
  for (const [init, status] of [[{ method: 'HEAD' }, 200], [{ headers: { 'If-None-Match': tag } }, 304]] as const) {
    const empty = await app.fetch(new Request('http://cairn/items/1', init));
    assert.deepEqual([empty.status, empty.body, await empty.text()], [status, null, '']);
  }
});
