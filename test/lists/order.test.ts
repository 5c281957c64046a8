import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparator, firstInOrder, sorted, type Block } from '../../src/lists/order.ts';
import { idField, type Shape } from '../../src/schema/field.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import { createGenerator } from '../support/basics.ts';

const shape: Shape = {
  id: idField,
  price: { kind: 'number', optional: true },
  email: { kind: 'email', optional: true },
};
const by = (name: string, descending = false) =>
  comparator(shape, [
    { name, descending },
    { name: 'id', descending: false },
  ]);

interface Priced extends StoredRecord {
  readonly price?: number;
  readonly email?: string;
}

test('absent values are sorted last, and e-mail addresses in lower case', () => {
  const records: Priced[] = [{ price: 2 }, {}, { price: -1 }, { price: 2 }].map((record, index) => ({
    id: index + 1,
    revision: 1,
    ...record,
  }));
  const idsBy = (name: string, descending: boolean) => records.toSorted(by(name, descending)).map(({ id }) => id);
  assert.deepEqual(idsBy('price', false), [3, 1, 4, 2]);
  assert.deepEqual(idsBy('price', true), [2, 1, 4, 3]);
  const addresses = ['b@x', 'A@x', 'a@X', 'C@x'].map((email, index) => ({ id: index + 1, revision: 1, email }));
  assert.deepEqual(addresses.toSorted(by('email')).map(({ id }) => id), [2, 3, 1, 4]);
});

const random = createGenerator('sorting');
const ways: readonly [what: string, price: (index: number) => number | undefined][] = [
  ['ascending', (index) => index],
  ['descending', (index) => -index],
  ['all equal', () => 1],
  ['few values', (index) => index % 7],
  ['ascending with noise', (index) => index + random.below(5000)],
  ['random', () => random.below(1e6)],
  ['partly absent', (index) => (index % 3 === 0 ? undefined : random.below(100))],
];

/** Yields `count` records in blocks, some of them nearly empty. */
function blocksOf(count: number, price: (index: number) => number | undefined): Priced[][] {
  const blocks: Priced[][] = [];
  for (let index = 0; index < count; index += 1) {
    if (index === 0 || (blocks.at(-1)?.length ?? 0) >= (blocks.length % 5 === 0 ? 3 : 1000)) blocks.push([]);
    const value = price(index);
    blocks.at(-1)?.push({ id: index + 1, revision: 1, ...(value !== undefined && { price: value }) });
  }
  return blocks;
}

for (const [what, price] of ways) {
  for (const count of [0, 1, 2, 1024, 1025, 5000]) {
    test(`${count} records are sorted: ${what}`, () => {
      const blocks = blocksOf(count, price);
      for (const descending of [false, true]) {
        const compare = by('price', descending);
        const expected = blocks.flat().sort(compare);
        const inOrder: Block[] = [];
        for (const block of sorted(blocks, compare)) inOrder.push(block);
        assert.ok(inOrder.every(({ length }) => length <= 1024));
        assert.deepEqual(inOrder.flat(), expected);
        for (const wanted of [1, 21, 1001]) {
          const first = [...firstInOrder(blocks, wanted, compare)];
          assert.deepEqual(first.flat(), expected.slice(0, wanted));
          assert.ok(first.length > blocks.length, 'a pause after each block');
        }
      }
    });
  }
}

test('the last of the first records is right, though it comes after those that bounded the search', () => {
  for (const count of [1, 2, 21]) {
    const numbers = Array.from({ length: 2 * count + 1024 }, (_, index) => index);
    const even = numbers.map((index) => ({ id: index + 1, revision: 1, price: 2 * index }));
    const late = { id: even.length + 1, revision: 1, price: 2 * (count - 1) - 1 };
    const compare = by('price');
    const found = [...firstInOrder([even, [late]], count, compare)].flat();
    assert.deepEqual(found, [...even, late].sort(compare).slice(0, count));
    assert.equal(found.at(-1), late);
  }
});
