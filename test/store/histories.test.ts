import assert from 'node:assert/strict';
import { it } from 'node:test';
import { seedNumbers } from '../support/store/fixtures.ts';
import { checkBlogHistory, checkHistory } from '../support/store/histories.ts';

for (const faults of [false, true]) {
  const disk = faults ? 'a disk that is full now and then' : 'a good disk';
  it(`shows concurrent callers one order of transactions, on ${disk}`, async () => {
    for (const seed of [1, 2, 3]) {
      const { done, failed } = await checkHistory(seedNumbers(seed), { callers: 12, calls: 20, faults });
      assert.ok(done > 60 && failed > 0 === faults, `seed ${seed}: ${done} done, ${failed} failed`);
    }
  });
}

it('shows concurrent callers one order of cascading removals', async () => {
  for (const faults of [false, true]) {
    const { done, failed } = await checkBlogHistory(seedNumbers(1), { callers: 12, calls: 20, faults });
    assert.ok(done > 60 && failed > 0 === faults, `${done} done, ${failed} failed`);
  }
});
