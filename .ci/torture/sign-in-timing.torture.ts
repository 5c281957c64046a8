/**
 * Checks that the time of a refused sign-in does not reveal whether the account exists. An unknown address, a wrong
 * password and an account without a password are tried in a random order, and their distributions are compared.
 *
 *   CAIRN_TIMING_ROUNDS=200 CAIRN_TIMING_COST=15 node --import tsx --test .ci/torture/sign-in-timing.torture.ts
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/system.ts';
import { createGenerator } from '../../test/support/basics.ts';
import { startApp } from '../../test/support/app.ts';

const rounds = Number(process.env['CAIRN_TIMING_ROUNDS'] ?? 180);
const scryptCost = Number(process.env['CAIRN_TIMING_COST'] ?? 10);

test('a refused sign-in takes the same time for every account', async (t) => {
  const { below } = createGenerator('sign-in timing');
  const { client, createToken, credentials } = await startApp(t, { scryptCost });
  const fields = { authorization: `Bearer ${await createToken('admin')}` };
  const times: Record<string, number[]> = { unknown: [], 'wrong password': [], 'without a password': [] };
  // As many accounts as rounds, so that no account and no address is throttled.
  for (let index = 0; index < rounds; index += 1) {
    await client.post('/users', {
      headers: fields,
      json: { name: 'x', email: `without-a-password-${index}@example.org` },
    });
    const json = { ...credentials('member'), name: 'x', email: `known-${index}@example.org` };
    await client.post('/users', { headers: fields, json });
  }
  const emails: Record<string, (index: number) => string> = {
    unknown: (index) => `not-known-${index}@example.org`,
    'wrong password': (index) => `known-${index}@example.org`,
    'without a password': (index) => `without-a-password-${index}@example.org`,
  };
  for (let index = 0; index < rounds; index += 1) {
    const kinds = Object.keys(times);
    while (kinds.length > 0) {
      const [kind = ''] = kinds.splice(below(kinds.length), 1);
      const json = { email: emails[kind]?.(index), password: 'a password that is wrong' };
      const address = `10.${below(256)}.${below(256)}.${below(256)}`;
      const start = systemClock.elapsed();
      const { status } = await client.post('/login', { json, address });
      times[kind]?.push(systemClock.elapsed() - start);
      assert.equal(status, 401);
    }
  }
  for (const [kind, sample] of Object.entries(times)) {
    const [low, median, high] = [0.1, 0.5, 0.9].map((share) => quantile(sample, share).toFixed(3));
    t.diagnostic(`${kind}: 10 % ${low} ms, median ${median} ms, 90 % ${high} ms`);
  }
  for (const kind of ['wrong password', 'without a password']) {
    const z = rankSum(times['unknown'] ?? [], times[kind] ?? []);
    t.diagnostic(`unknown against ${kind}: z = ${z.toFixed(2)}`);
    assert.ok(Math.abs(z) < 4, 'the two can be told apart');
  }
});

function quantile(sample: readonly number[], share: number): number {
  return sample.toSorted((a, b) => a - b)[Math.floor(sample.length * share)] ?? NaN;
}

/** The Mann-Whitney statistic as a standard normal deviate: beyond 4, chance is out of the question. */
function rankSum(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((time) => [time, 1] as const), ...other.map((time) => [time, 0] as const)];
  all.sort(([a], [b]) => a - b);
  const ranks = all.reduce((sum, [, mine], index) => sum + (mine === 1 ? index + 1 : 0), 0);
  const [n, m] = [one.length, other.length];
  return (ranks - (n * (n + m + 1)) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
}
