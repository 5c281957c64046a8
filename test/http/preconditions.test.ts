import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CairnError } from '../../src/base/errors.ts';
import { Fields } from '../../src/http/fields.ts';
import {
  parseEntityTags,
  passesIfMatch,
  passesIfNoneMatch,
  readPreconditions,
} from '../../src/http/preconditions.ts';

test('RFC 9110 §8.8.3: lists of entity tags are scanned by the grammar', () => {
  const rows: [string, string[] | undefined][] = [
    ['*', ['*']],
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
  const rows: [string | undefined, boolean, boolean][] = [
    // the condition for what is "1" now, If-Match, If-None-Match
    [undefined, true, true],
    ['*', true, false],
    ['W/"1"', false, false],
    ['W/"2"', false, true],
    ['"1"', true, false],
    ['"2"', false, true],
    ['"0", "1"', true, false],
    ['"0", W/"1"', false, false],
  ];
  for (const [condition, match, noneMatch] of rows) {
    const tags = condition === undefined ? undefined : parseEntityTags(condition);
    assert.equal(passesIfMatch(tags, '"1"'), match, `If-Match ${condition}`);
    assert.equal(passesIfNoneMatch(tags, '"1"'), noneMatch, `If-None-Match ${condition}`);
  }
});

test('preconditions are read from their fields, repeated ones combined, malformed ones refused', () => {
  const read = (...raw: string[]): unknown => readPreconditions(new Fields(raw));
  assert.deepEqual(read(), { ifMatch: undefined, ifNoneMatch: undefined });
  assert.deepEqual(read('IF-MATCH', '"a"', 'if-none-match', '*'), { ifMatch: ['"a"'], ifNoneMatch: ['*'] });
  assert.deepEqual(read('If-Match', '"a"', 'If-Match', '"b"'), { ifMatch: ['"a"', '"b"'], ifNoneMatch: undefined });
  const refused = (error: unknown): boolean => error instanceof CairnError && error.code === 'malformed_request';
  for (const value of ['a', '', '"a', '*, "a"']) {
    assert.throws(() => read('If-Match', value), refused, value);
    assert.throws(() => read('If-None-Match', value), refused, value);
  }
});
