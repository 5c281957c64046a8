import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CairnError } from '../../src/base/errors.ts';
import { Fields } from '../../src/http/fields.ts';
import {
  evaluateIfMatch,
  evaluateIfNoneMatch,
  parseEntityTags,
  readPreconditions,
} from '../../src/http/preconditions.ts';
import type { Outcome } from '../../src/http/preconditions.ts';

test('RFC 9110 §8.8.3: lists of entity tags are scanned by the grammar', () => {
  const rows: [string, '*' | string[] | undefined][] = [
    ['*', '*'],
    ['"xyzzy"', ['"xyzzy"']],
    ['W/"xyzzy"', ['W/"xyzzy"']],
    ['""', ['""']],
    ['"xyzzy", "r2d2xxxx", "c3piozzzz"', ['"xyzzy"', '"r2d2xxxx"', '"c3piozzzz"']],
    ['W/"xyzzy", W/"r2d2xxxx", W/"c3piozzzz"', ['W/"xyzzy"', 'W/"r2d2xxxx"', 'W/"c3piozzzz"']],
    ['"a,b"', ['"a,b"']],
    ['"a,b","c"', ['"a,b"', '"c"']],
    ['"a\\"', ['"a\\"']],
    [',, "a" ,,"b",', ['"a"', '"b"']],
    ['"\xe4"', ['"\xe4"']],
    ['"*"', ['"*"']],
    ['', undefined],
    [',', undefined],
    ['a', undefined],
    ['"a', undefined],
    ['a"', undefined],
    ['"a" "b"', undefined],
    ['"a", *', undefined],
    ['**', undefined],
    ['w/"a"', undefined],
    ['W/ "a"', undefined],
    ['W/a', undefined],
    ["'a'", undefined],
    ['"a b"', undefined],
    ['"a\tb"', undefined],
    ['"a"; x', undefined],
  ];
  for (const [value, expected] of rows) assert.deepEqual(parseEntityTags(value), expected, value);
});

test('RFC 9110 §8.8.3.2: strong comparison for If-Match, weak comparison for If-None-Match', () => {
  const rows: [string | undefined, string | undefined, Outcome, Outcome][] = [
    // the condition, the current tag, If-Match, If-None-Match
    [undefined, '"1"', 'absent', 'absent'],
    [undefined, undefined, 'absent', 'absent'],
    ['*', '"1"', 'passed', 'failed'],
    ['*', undefined, 'failed', 'passed'],
    ['"1"', undefined, 'failed', 'passed'],
    ['W/"1"', 'W/"1"', 'failed', 'failed'],
    ['W/"1"', 'W/"2"', 'failed', 'passed'],
    ['W/"1"', '"1"', 'failed', 'failed'],
    ['"1"', 'W/"1"', 'failed', 'failed'],
    ['"1"', '"1"', 'passed', 'failed'],
    ['"1"', '"2"', 'failed', 'passed'],
    ['"0", "1"', '"1"', 'passed', 'failed'],
    ['"0,"1""', '"1"', 'absent', 'absent'],
  ];
  for (const [condition, current, match, noneMatch] of rows) {
    const tags = condition === undefined ? undefined : parseEntityTags(condition);
    assert.equal(evaluateIfMatch(tags, current), match, `If-Match ${condition} against ${current}`);
    assert.equal(evaluateIfNoneMatch(tags, current), noneMatch, `If-None-Match ${condition} against ${current}`);
  }
});

test('preconditions are read from their fields, repeated ones combined, malformed ones refused', () => {
  const read = (...raw: string[]): unknown => readPreconditions(new Fields(raw));
  assert.deepEqual(read(), { ifMatch: undefined, ifNoneMatch: undefined });
  assert.deepEqual(read('IF-MATCH', '"a"', 'if-none-match', '*'), { ifMatch: ['"a"'], ifNoneMatch: '*' });
  assert.deepEqual(read('If-Match', '"a"', 'If-Match', '"b"'), { ifMatch: ['"a"', '"b"'], ifNoneMatch: undefined });
  const refused = (error: unknown): boolean => error instanceof CairnError && error.code === 'malformed_request';
  for (const value of ['a', '', '"a', '*, "a"']) {
    assert.throws(() => read('If-Match', value), refused, value);
    assert.throws(() => read('If-None-Match', value), refused, value);
  }
});
