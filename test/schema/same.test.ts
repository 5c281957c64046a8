import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameValue } from '../../src/schema/record.ts';
import { isLockedRun } from '../support/basics.ts';

const same: readonly unknown[] = [
  null, 0, '', 'a', [], {}, [1, [2, { a: null }]], { a: 1, b: [{}] }, JSON.parse('{"__proto__":{"a":1}}'),
];
const different: readonly (readonly [one: unknown, other: unknown])[] = [
  [null, {}], [[], {}], [{}, []], [[1], [1, 2]], [[1, 2], [1]], [[1, [2]], [1, [3]]], [{ a: 1 }, { a: 1, b: 2 }],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }], [{ 0: 1 }, [1]], [{ a: null }, { a: {} }], [1, '1'],
  [JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":2}}')],
];

test('values are the same with equal members in the same order', () => {
  for (const value of same) assert.equal(isSameValue(value, structuredClone(value)), true, JSON.stringify(value));
  for (const [one, other] of different) assert.equal(isSameValue(one, other), false, JSON.stringify([one, other]));
});

// Nothing replaces a frozen intrinsic.
const skip = isLockedRun && 'JSON.stringify is frozen';

test('values are compared without a copy of either as text', { skip }, (t) => {
  const { mock } = t.mock.method(JSON, 'stringify');
  assert.equal(isSameValue([1, { a: [2] }], [1, { a: [2] }]), true);
  assert.equal(mock.callCount(), 0);
});
