import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseJson } from '../../src/base/json.ts';
import type { Shape } from '../../src/schema/field.ts';
import { mergePatch } from '../../src/schema/validate.ts';
import { vectors } from '../support/contract.ts';

describe('RFC 7396 appendix A', () => {
  for (const [index, [target, patch, result]] of vectors.entries()) {
    test(`case ${index + 1}: ${JSON.stringify(patch)} for ${JSON.stringify(target)}`, () => {
      const before = structuredClone(target);
      assert.deepEqual(mergePatch({}, target, patch), result);
      assert.deepEqual(target, before);
    });
  }
});

test('RFC 7396 §3, the example', () => {
  const target = {
    title: 'Goodbye!',
    author: { givenName: 'John', familyName: 'Doe' },
    tags: ['example', 'sample'],
    content: 'This will be unchanged',
  };
  const patch = { title: 'Hello!', phoneNumber: '+01-123-456-7890', author: { familyName: null }, tags: ['example'] };
  assert.deepEqual(mergePatch({}, target, patch), {
    title: 'Hello!',
    author: { givenName: 'John' },
    tags: ['example'],
    content: 'This will be unchanged',
    phoneNumber: '+01-123-456-7890',
  });
});

test('a merge patch does not set a prototype', () => {
  const merged = mergePatch({}, {}, parseJson('{"__proto__":{"admin":true}}'));
  assert.ok(typeof merged === 'object' && merged !== null && !('admin' in merged));
  assert.deepEqual(Object.keys(merged), ['__proto__']);
});

test('a member that is null again keeps its place, so that nothing changes', () => {
  const inner = { note: { kind: 'text', nullable: true }, city: { kind: 'text' } } as const satisfies Shape;
  const fields = { address: { kind: 'object', fields: inner, additional: true } } as const satisfies Shape;
  const stored = { address: { note: null, city: 'Rome', more: 1 } };
  assert.equal(JSON.stringify(mergePatch(fields, stored, stored)), JSON.stringify(stored));
  const removed = mergePatch(fields, stored, { address: { note: null, more: null } });
  assert.deepEqual(removed, { address: { note: null, city: 'Rome' } });
});
