/** Optional parts, all together and each by itself: the rest works without them. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parts, testWithout } from './parts.ts';

test('without its optional parts, the rest compiles and serves', async (t) => {
  const copy = await testWithout(t, parts);
  const kept = ['features', 'options'].flatMap((floor) => readdirSync(join(copy, 'src', floor)));
  assert.deepEqual(kept, [], 'all parts are removed');
});

for (const part of parts) {
  test(`without ${part.paths[0]}, the rest compiles and serves`, async (t) => {
    await testWithout(t, [part]);
  });
}
