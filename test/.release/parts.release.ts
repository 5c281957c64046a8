/** Each part by itself: the others work without it. */
import { test } from 'node:test';
import { parts, tryWithout } from '../.support/parts.ts';

for (const part of parts) {
  test(`without ${part.paths[0]} alone, the rest compiles and serves`, async (t) => {
    await tryWithout(t, [part]);
  });
}
