import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createApp } from '../support/inside.ts';
import { projectDirectory } from '../support/source.ts';

const path = join(projectDirectory, 'src', 'web', 'api', 'model.js');
const { collectionsOf }: any = await import(pathToFileURL(path).href);

test('the page reads collections from their declarations, whatever the operations are called', async (t) => {
  const app = await createApp({ scryptCost: 1 });
  t.after(() => app.close());
  const { body } = await app.inject({ target: '/openapi.json' });
  const namesOf = (text: string) =>
    collectionsOf(JSON.parse(text)).map(({ name, one, fields }: any) => [
      name,
      one,
      fields.map((field: any) => field.name),
    ]);
  const others = body.replaceAll(/"operationId":"/g, '"operationId":"other');
  assert.notEqual(others, body);
  assert.deepEqual(namesOf(others), namesOf(body));
  assert.deepEqual(namesOf(others)[1], ['items', 'item', ['id', 'name', 'price']]);
});
