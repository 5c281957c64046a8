import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { App } from '../../src/index.ts';

/** A counter that many callers increment at once. */
export const counters = { name: 'counters', fields: { value: { kind: 'integer', default: 0 } } } as const;

const json = { 'content-type': 'application/merge-patch+json' };

/** Whoever was late waits longer each time, or 64 callers would all try for each success. */
const patience = (attempt: number): Promise<void> => delay(Math.random() * Math.min(4 ** attempt, 100));

/** Ways to add one to the counter 1 of an app with `auth: 'none'`, of which none loses another's. */
export const increments: Readonly<Record<string, (app: App) => Promise<void>>> = {
  async 'app.write'(app) {
    await app.write((tx) => {
      const { value } = tx.collection(counters).get(1) ?? assert.fail();
      tx.collection(counters).change(1, { value: value + 1 });
    });
  },
  async 'ifVersion'(app) {
    for (let attempt = 0; ; attempt += 1) {
      const record = app.collection(counters).get(1) ?? assert.fail();
      const ifVersion = app.versionOf(record);
      try {
        return void (await app.collection(counters).change(1, { value: record.value + 1 }, { ifVersion }));
      } catch (error) {
        assert.equal(Object(error).code, 'precondition_failed');
        await patience(attempt);
      }
    }
  },
  async 'If-Match'(app) {
    for (let attempt = 0; ; attempt += 1) {
      const read = await app.inject({ target: '/counters/1' });
      const { value } = JSON.parse(read.body);
      const headers = { ...json, 'if-match': read.headers.get('etag') ?? '' };
      const body = JSON.stringify({ value: value + 1 });
      const { status } = await app.inject({ method: 'PATCH', target: '/counters/1', headers, body });
      if (status === 200) return;
      assert.equal(status, 412);
      await patience(attempt);
    }
  },
};

/** Lets 64 callers increment together, `count` times in all, and returns what the counter says. */
export async function incremented(app: App, count: number, increment: (app: App) => Promise<void>): Promise<number> {
  await app.collection(counters).create({});
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await increment(app);
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  return app.collection(counters).get(1)?.value ?? NaN;
}
