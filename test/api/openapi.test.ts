import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openApi } from '../../src/api/openapi.ts';
import { problemsOf } from '../../src/api/route.ts';
import { problems } from '../../src/api/problems.ts';
import { routeTable } from '../../src/api/routes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { commands } from '../../src/cli/commands.ts';
import { settingsOf } from '../../src/settings.ts';
import { packageVersion } from '../../src/base/system.ts';
import { runCommand } from '../cli/terminal.ts';
import { openTestApp } from '../support/app.ts';
import { resolve, violations } from '../support/json-schema.ts';

const document = openApi(routeTable(undefined, settingsOf({})), packageVersion());

/** Every object in the document, with the way to it. */
function* objects(value: JsonValue, way: string): Generator<[way: string, object: JsonObject]> {
  if (isJsonObject(value)) yield [way, value];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) yield* objects(member, `${way}/${name}`);
}

const all = [...objects(document, '#')];

test('the document that is served is the one that the command prints', async (t) => {
  const { ask } = await openTestApp(t);
  const served = (await ask('GET', '/openapi.json')).json;
  assert.deepEqual(served, JSON.parse(JSON.stringify(document)));
  assert.deepEqual(served, JSON.parse((await runCommand(commands, ['openapi'])).out));
  const strict = await openTestApp(t, { requireIfMatch: true, registration: 'open', passwordLengthMin: 9 });
  const words = ['openapi', '--require-if-match', '--registration', 'open', '--password-min', '9'];
  const printed = JSON.parse((await runCommand(commands, words)).out);
  assert.deepEqual((await strict.ask('GET', '/openapi.json')).json, printed);
});

test('every row of the route table is an operation, by an id of its own', () => {
  const ids = all.flatMap(([, { operationId }]) => (operationId === undefined ? [] : [String(operationId)]));
  assert.deepEqual(ids.sort(), [...routeTable().keys()].sort());
});

test('every operation declares each of its problems under the status that it has', () => {
  for (const [operationId, route] of routeTable()) {
    const [, operation] = all.find(([, object]) => object['operationId'] === operationId) ?? [];
    const responses = operation?.['responses'];
    assert.ok(isJsonObject(responses), operationId);
    for (const code of problemsOf(route)) {
      const response = responses[problems[code].status];
      const reference = isJsonObject(response) ? String(response['$ref']) : '';
      assert.ok(reference.split(/[/.]/).includes(code), `${operationId} ${code}`);
    }
  }
});

test('every reference leads somewhere, and so does the type of every problem', () => {
  const references = all.flatMap(([, { $ref }]) => (typeof $ref === 'string' ? [$ref] : []));
  assert.ok(references.length > 100);
  const types = Object.keys(problems).map((code) => `#/components/responses/${code}`);
  for (const reference of [...references, ...types]) assert.ok(isJsonObject(resolve(document, reference)), reference);
});

test('every example keeps its schema', () => {
  let count = 0;
  for (const [way, { schema, example, examples }] of all) {
    if (schema === undefined) continue;
    const given = example === undefined ? [] : [example];
    for (const named of Object.values(isJsonObject(examples) ? examples : {})) {
      const reference = isJsonObject(named) ? String(named['$ref']) : '';
      const value = resolve(document, `${reference}/value`);
      assert.ok(value !== undefined, way);
      given.push(value);
    }
    for (const value of given) {
      assert.deepEqual(violations(document, schema, value), [], way);
      count += 1;
    }
  }
  assert.ok(count > 100);
});

test('an installation that demands If-Match says so, and asks for passwords as long as it takes', async (t) => {
  const { ask } = await openTestApp(t, { requireIfMatch: true, passwordLengthMin: 9 });
  const strict: JsonValue = Object((await ask('GET', '/openapi.json')).json);
  for (const [served, required] of [[strict, true], [document, false]] as const) {
    const found = [...objects(served, '#')].map(([, object]) => object);
    const writes = found.filter(({ operationId }) => /^(replace|patch|remove)(Item|User)$/.test(String(operationId)));
    assert.equal(writes.length, 6);
    for (const { parameters, responses } of writes) {
      const ifMatch = [parameters].flat().find((parameter) => Object(parameter).name === 'If-Match');
      assert.deepEqual([Object(ifMatch).required, Object.hasOwn(Object(responses), '428')], [required, required]);
    }
    const { NewUser, UserPatch } = Object(resolve(Object(served), '#/components/schemas'));
    assert.equal(NewUser.properties.password.minLength, required ? 9 : 15);
    const local = { name: 'Ada', email: 'a@localhost' };
    assert.deepEqual(violations(Object(served), NewUser, local), []);
    assert.equal(UserPatch.properties.currentPassword.minLength, 1);
  }
});

test('who gets tokens sends the one or the other', () => {
  const body = Object(resolve(document, '#/paths/~1tokens/post/requestBody/content')) ['application/json'];
  const credentials = { email: 'a', password: 'b' };
  for (const good of [credentials, { refresh_token: 'c' }]) {
    assert.deepEqual(violations(document, body.schema, good), []);
  }
  for (const bad of [{}, { email: 'a' }, { ...credentials, refresh_token: 'c' }]) {
    assert.equal(violations(document, body.schema, bad).length, 1);
  }
});

test('a problem of fields names them', () => {
  const { schema } = Object(resolve(document, '#/components/responses/validation_failed.write_refused/content'))[
    'application/problem+json'
  ];
  const { errors, ...without } = Object(resolve(document, '#/components/examples/validation_failed/value'));
  assert.equal(errors.length, 1);
  assert.deepEqual(violations(document, schema, without).length, 1);
  assert.deepEqual(violations(document, schema, { ...without, code: 'write_refused' }), []);
});

test('a body that may be sent is described for each collection', () => {
  const { NewItem, ItemReplacement, ItemPatch, Item } = Object(resolve(document, '#/components/schemas'));
  assert.deepEqual(Object.keys(NewItem.properties), ['name', 'price']);
  assert.deepEqual(NewItem.required, ['name', 'price']);
  assert.deepEqual(Object.keys(ItemReplacement.properties), ['id', 'name', 'price']);
  assert.equal(ItemPatch.required, undefined);
  assert.deepEqual(Item.required, ['id', 'name', 'price']);
});
