import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordIndex } from '../../src/store/memory/record-index.ts';
import { createGenerator } from '../support/basics.ts';

interface Holder {
  readonly keys: number | readonly number[] | undefined;
}

test('an index lists the ids of a key in ascending order', () => {
  const random = createGenerator('index');
  const index = new RecordIndex<Holder>(({ keys }) => keys, { bytes: 0 });
  const model = new Map<number, Set<number>>([1, 2, 3].map((key) => [key, new Set<number>()]));
  const check = (): void => {
    for (const [key, ids] of model) {
      const sorted = [...ids].sort((a, b) => a - b);
      assert.deepEqual([...index.ids(key)], sorted);
      const from = random.pick([0, random.below(9000), sorted[random.below(sorted.length || 1)] ?? 0, Infinity]);
      assert.deepEqual([...index.ids(key, { id: from, isDown: false })], sorted.filter((id) => id >= from));
      assert.deepEqual([...index.ids(key, { id: from, isDown: true })], sorted.filter((id) => id <= from).reverse());
      assert.equal(index.count(key), ids.size);
    }
  };
  // Enough ids with one key for several blocks; the first are added in order, as new records are.
  for (let id = 5000; id < 8000; id += 1) {
    index.publish(id, undefined, 1);
    model.get(1)?.add(id);
  }
  check();
  for (let round = 0; round < 8; round += 1) {
    for (let step = 0; step < 1000; step += 1) {
      const id = 1 + random.below(9000);
      const key = random.pick([1, 1, 1, 2, 3]);
      const keys = random.pick([key, [key], [key, 2]]);
      const others = random.pick([0, 0, 2]);
      const isAdded = round < 4 ? random.below(3) > 0 : random.below(3) === 0;
      if (isAdded) index.stage(id, others, undefined, keys);
      else index.stage(id, others, keys, undefined);
      for (const each of new Set([keys].flat())) {
        if (each === others) continue;
        if (isAdded) model.get(each)?.add(id);
        else model.get(each)?.delete(id);
      }
    }
    check();
  }
  for (let id = 1; id <= 9000; id += 1) index.publish(id, [1, 2, 3], undefined);
  for (const ids of model.values()) ids.clear();
  check();
});

test('a change between many keys takes one pass', () => {
  const index = new RecordIndex<Holder>(({ keys }) => keys, { bytes: 0 });
  const [before, after] = [0, 100_000].map((first) => Array.from({ length: 100_000 }, (_, at) => first + at));
  index.publish(1, undefined, before);
  const begun = process.cpuUsage();
  index.publish(1, before, after);
  const { user } = process.cpuUsage(begun);
  // A look at each of the others for each key takes 20 s.
  assert.ok(user < 2_000_000, `${user} us`);
  assert.deepEqual([index.count(0), index.count(100_000), index.count(199_999)], [0, 1, 1]);
});

test('an index changes only the differing keys of long lists', () => {
  const random = createGenerator('differences');
  const index = new RecordIndex<Holder>(() => undefined, { bytes: 0 });
  for (let round = 0; round < 3000; round += 1) {
    // A number and its text are two ids.
    const id = () => random.pick<string | number>([random.below(9), String(random.below(3))]);
    const some = () => Array.from({ length: random.below(12) }, id);
    const before = some();
    const after = random.below(2) === 0 ? before.filter((_, at) => at !== 3) : some();
    index.publish(1, undefined, before);
    index.stage(1, before, before, after);
    const staged = new Set([...before, ...after]);
    assert.deepEqual(new Set(index.keys(() => true)), staged, 'the published keys stay');
    index.publish(1, before, after);
    assert.deepEqual(new Set(index.keys(() => true)), new Set(after));
    index.publish(1, after, undefined);
    assert.deepEqual([...index.keys(() => true)], []);
  }
});
