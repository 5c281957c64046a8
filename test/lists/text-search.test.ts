import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generator } from '../support/random.ts';
import { partLength, partsOf, textSearch } from '../../src/lists/search.ts';

/** Whether a search for `wanted` finds `text`, and why. */
const rows: readonly [wanted: string, text: string, isFound: boolean, why: string][] = [
  ['lamp', 'Desk LAMPS', true, 'case does not count'],
  ['Lamp', 'lam', false, 'a part of what is wanted is not enough'],
  ['k', '\u212a', true, 'the Kelvin sign folds to k'],
  ['s', 'ſ', true, 'the long s folds to s'],
  ['Å', 'a\u030a', true, 'composed and decomposed letters are equal'],
  ['a\u030a', '\u212b', true, 'the Ångström sign is the letter'],
  ['e', 'é', false, 'accents count'],
  ['e', 'e\u0301', false, 'accents count, however they are written'],
  ['É', 'e\u0301', true, 'case of a decomposed letter'],
  ['ὈΔΥΣΣΕΎΣ', 'ὀδυσσεύς', true, 'Greek: the final sigma is a sigma'],
  ['σ', 'ς', true, 'Greek: the final sigma is a sigma'],
  ['ΣΊΣΥΦΟΣ', 'Σίσυφος', true, 'Greek'],
  ['ЛАМПА', 'Настольная лампа', true, 'Cyrillic'],
  ['й', 'и\u0306', true, 'Cyrillic: composed and decomposed'],
  ['и', 'й', false, 'Cyrillic: a letter of its own'],
  ['i', 'ı', false, 'Turkish: the dotless i is another letter'],
  ['I', 'ı', false, 'Turkish: the dotless i is another letter'],
  ['i', 'İ', false, 'Turkish: the dotted I folds in no simple way'],
  ['İ', 'I\u0307', true, 'Turkish: composed and decomposed'],
  ['ß', 'ẞ', true, 'German: the capital sharp s'],
  ['ss', 'ß', false, 'German: simple folding keeps lengths'],
  ['GRÖSSE', 'Größe', false, 'German: simple folding keeps lengths'],
  ['ﬀ', 'ff', false, 'a ligature is another character'],
  ['𐐀', '𐐨', true, 'Deseret: beyond 16 bits'],
  ['𐐨', 'x𐐀', true, 'Deseret: beyond 16 bits'],
  ['ꭰ', 'Ꭰ', true, 'Cherokee: folds to the capitals'],
  ['각', '\u1100\u1161\u11a8', true, 'Korean: syllables of single letters'],
  ['\u1100\u1161', '각', false, 'Korean: a syllable is one character'],
  ['か\u3099', 'が', true, 'Japanese: a voiced syllable'],
  ['か', 'か\u3099', false, 'Japanese: a voiced syllable'],
  ['灯', '台灯', true, 'Chinese'],
  ['a.c', 'abc', false, 'nothing has a meaning of its own'],
  ['\\d^$.*+?()[]{}|/-,', 'x\\D^$.*+?()[]{}|/-,', true, 'nothing has a meaning of its own'],
  ['😀', 'a😀b', true, 'a pair of surrogates'],
  [' ', 'a b', true, 'white space'],
];

for (const [wanted, text, isFound, why] of rows) {
  test(`${JSON.stringify(wanted)} is ${isFound ? '' : 'not '}found in ${JSON.stringify(text)}: ${why}`, () => {
    assert.equal(textSearch(wanted)(text), isFound);
  });
}

test('a search takes time in proportion to the length of a text of combining marks', () => {
  const runs = (marks: number) => `a${'\u0301\u0323'.repeat(marks / 2)}`.repeat(100_000 / marks);
  const isLamp = textSearch('lamp');
  const times = [100, 100_000].map((marks) => {
    const text = runs(marks);
    const begun = process.cpuUsage().user;
    assert.equal(isLamp(text), false);
    return process.cpuUsage().user - begun;
  });
  const [short = 0, long = 0] = times;
  assert.ok(long < 10 * short + 50_000, `${short} µs for short runs, ${long} µs for a long one`);
});

test('marks in a longer run than 30 are found in blocks of 30', () => {
  const run = 'a' + '\u0323\u0301'.repeat(40);
  assert.ok(textSearch('lamp')(`${run} lamp`));
  assert.ok(textSearch('\u1ea1')(run), 'the first marks are composed');
});

test('a text that is not in Normalization Form C is normalised before the search', () => {
  const isFoundByItsForm = (text: string): void => {
    const form = text.normalize('NFC');
    if (form !== text) assert.ok(textSearch(form)(text), JSON.stringify(text));
  };
  for (let code = 0; code < 0x30000; code += 1) {
    if (code < 0xd800 || code >= 0xe000) isFoundByItsForm(String.fromCodePoint(code));
  }
  for (const first of ['a', 'и', 'α', 'か', '\u1100', '가', 'क']) {
    for (let code = 0x80; code < 0xd7ff; code += 1) isFoundByItsForm(first + String.fromCharCode(code));
  }
});

test('a long text is searched in parts as if it were one', () => {
  const random = generator('parts of texts');
  const marked = ['e\u0301', 'q\u0301\u0323', '\u0928\u0940', '\u1100\u1161\u11a8'];
  const pieces = [...marked, 'a', '\u{1f600}', '\u05d0', ' ', 'K', '\u1e9e'];
  for (let round = 0; round < 30; round += 1) {
    const some = [' ', ...Array.from({ length: 3 + random.below(6) }, () => random.pick(pieces))];
    const text = Array.from({ length: 3 * partLength }, () => random.pick(some)).join('');
    const parts = [...partsOf(text)];
    assert.ok(parts.every(({ length }) => length < partLength + 600), 'each part is short');
    for (let at = 0; at < 20; at += 1) {
      // Near the end of a part, and anywhere.
      const from = at < 10 ? partLength * (1 + random.below(2)) - random.below(100) : random.below(text.length);
      const length = 1 + random.below(20);
      const wanted = text.slice(from, from + length).toLowerCase();
      const isFound = textSearch(wanted);
      assert.equal(parts.some(isFound), isFound(text), JSON.stringify(wanted));
      assert.ok(parts.some((part) => part.includes(text.slice(from, from + 200))), 'what contains looks for');
    }
  }
  assert.deepEqual([...partsOf('')], ['']);
});
