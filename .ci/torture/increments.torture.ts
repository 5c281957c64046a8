import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../../src/index.ts';
import { counters, runIncrements, increments } from '../../test/support/store/histories.ts';

for (const [name, increment] of Object.entries(increments)) {
  test(`10,000 increments by 64 callers add up to 10,000: ${name}`, async (t) => {
    const app = await createApp({ collections: [counters], auth: 'none' });
    t.after(() => app.close());
    assert.equal(await runIncrements(app, 10_000, increment), 10_000);
  });
}
