/**
 * Random patches of nested data, compared with the pseudocode of RFC 7396 §2: of a json field, and of a record with
 * undeclared members, including its top level. CAIRN_MERGE_PATCHES sets how many.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineCollection } from '../../src/index.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { createApp } from '../../test/support/inside.ts';
import { type Generator, createGenerator } from '../../test/support/basics.ts';

const count = Number(process.env['CAIRN_MERGE_PATCHES'] ?? 10_000);
const names = ['a', 'b', 'c', '', '1', '10', 'é', '__proto__', 'constructor', 'toJSON'];

function valueOf(random: Generator, depth: number, mayBeNull = true): JsonValue {
  const kind = random.below(depth > 0 ? 9 : 5);
  if (kind === 0) return mayBeNull ? null : false;
  if (kind < 5) return [true, random.below(100) - 50, random.below(9) / 8, 'text', ''][random.below(5)] ?? '';
  if (kind === 5) return Array.from({ length: random.below(4) }, () => valueOf(random, depth - 1));
  return objectOf(random, depth);
}

/** From entries, because `__proto__` is special in a literal. */
function objectOf(random: Generator, depth: number): JsonObject {
  const entry = () => [random.pick(names), valueOf(random, depth - 1)] as const;
  const entries = Array.from({ length: random.below(5) }, entry);
  return Object.fromEntries(entries);
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** MergePatch of RFC 7396, section 2. */
function merged(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isObject(patch)) return patch;
  const result = new Map<string, JsonValue>(isObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, merged(result.get(name), value));
  }
  return Object.fromEntries(result);
}

const access = { create: 'public', read: 'public', patch: 'public' } as const;
const pieces = defineCollection({ name: 'pieces', singular: 'piece', access, fields: { value: { kind: 'json' } } });
const loose = defineCollection({
  name: 'loose', singular: 'looseRecord', access, fields: { n: { kind: 'integer' } }, additional: true,
});

test(`a record follows RFC 7396 after each of ${count} patches`, async () => {
  const random = createGenerator('merge patches');
  const app = await createApp({ auth: 'none', collections: [pieces, loose] });
  const ask = async (method: string, target: string, json: JsonValue) => {
    const fields = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' };
    const { status, body } = await app.inject({ method, target, fields, body: JSON.stringify(json) });
    assert.ok(status < 300, `${status} ${body} for ${JSON.stringify(json)}`);
    return JSON.parse(body) as JsonObject;
  };
  let changed = 0;
  for (let n = 0; n < count; ) {
    const isLoose = random.below(2) === 0;
    const start = isLoose ? { ...objectOf(random, 4), n: 1 } : { value: valueOf(random, 5, false) };
    let { id, ...record } = await ask('POST', isLoose ? '/loose' : '/pieces', start);
    for (let step = 0; step < 20 && n < count; step += 1, n += 1) {
      const patch = isLoose ? objectOf(random, 5) : { value: valueOf(random, 5, false) };
      const wanted = merged(record, patch);
      const { id: sameId, ...found } = await ask('PATCH', `/${isLoose ? 'loose' : 'pieces'}/${id}`, patch);
      assert.equal(sameId, id);
      assert.deepEqual(found, wanted, `${JSON.stringify(record)} patched by ${JSON.stringify(patch)}`);
      if (JSON.stringify(found) !== JSON.stringify(record)) changed += 1;
      record = found;
    }
  }
  await app.close();
  assert.ok(changed > count / 2, `${changed} patches changed something`);
});
