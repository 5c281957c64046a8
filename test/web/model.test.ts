import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createApp } from '../support/inside.ts';
import { projectDirectory } from '../support/source.ts';

const path = join(projectDirectory, 'src', 'web', 'api', 'model.js');
const { readCollections }: any = await import(pathToFileURL(path).href);

test('the page reads collections from their declarations, whatever the operations are called', async (t) => {
  const app = await createApp({ scryptCost: 1 });
  t.after(() => app.close());
  const { body } = await app.inject({ target: '/openapi.json' });
  const namesOf = (text: string) =>
    readCollections(JSON.parse(text)).map(({ name, one, fields }: any) => [
      name,
      one,
      fields.map((field: any) => field.name),
    ]);
  const others = body.replaceAll(/"operationId":"/g, '"operationId":"other');
  assert.notEqual(others, body);
  assert.deepEqual(namesOf(others), namesOf(body));
  assert.deepEqual(namesOf(others)[1], ['items', 'item', ['id', 'name', 'price']]);
});

test('the kind of a field is the declared one, whatever its schema says', async (t) => {
  const fields = {
    code: { kind: 'text', min: 3 },
    notes: { kind: 'text', multiline: true },
    due: { kind: 'timestamp' },
    parts: { kind: 'list', of: { kind: 'object', fields: { size: { kind: 'integer' } } } },
    place: { kind: 'object', fields: { site: { kind: 'url' } } },
    agentId: { kind: 'reference', to: 'users', onDelete: 'refuse' },
  } as const;
  const app = await createApp({ scryptCost: 1, collections: [{ name: 'jobs', timestamps: true, fields }] });
  t.after(() => app.close());
  const { body } = await app.inject({ target: '/openapi.json' });
  // No pattern, format or type is left from which a kind could be guessed.
  const bare = JSON.parse(body, (name, value) => ['format', 'pattern', 'enum'].includes(name) ? undefined : value);
  const kindsOf = (wanted: string) =>
    readCollections(bare).find(({ name }: any) => name === wanted).fields.map((field: any) => [field.name, field.kind]);
  assert.deepEqual(Object.fromEntries(kindsOf('jobs')), {
    id: 'integer', code: 'text', notes: 'long', due: 'time', parts: 'json', place: 'json', agentId: 'reference',
    createdAt: 'time', updatedAt: 'time',
  });
  assert.deepEqual(Object.fromEntries(kindsOf('users')), {
    id: 'integer', name: 'text', email: 'email', role: 'choice', password: 'password', currentPassword: 'password',
    keepKeys: 'boolean',
  });
});
