import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchPattern, withoutAccents } from '../../src/lists/search.ts';

function textSearch(wanted: string): (text: string) => boolean {
  const pattern = searchPattern(wanted);
  return (text) => pattern.test(withoutAccents(text));
}

/** A search, a text, whether the search finds it, and why. */
const rows: readonly [wanted: string, text: string, isFound: boolean, why: string][] = [
  ['lamp', 'Desk LAMPS', true, 'case does not count'],
  ['Lamp', 'lam', false, 'a part of what is wanted is not enough'],
  ['k', '\u212a', true, 'the Kelvin sign folds to k'],
  ['s', 'ſ', true, 'the long s folds to s'],
  ['Å', 'a\u030a', true, 'composed and decomposed letters are equal'],
  ['a\u030a', '\u212b', true, 'the Ångström sign is the letter'],
  ['e', 'é', true, 'accents do not count'],
  ['é', 'e', true, 'accents do not count'],
  ['e', 'e\u0301', true, 'accents do not count, however they are written'],
  ['Łodz', 'Łódź', true, 'a stroke is a part of its letter'],
  ['Lodz', 'Łódź', false, 'a stroke is a part of its letter'],
  ['É', 'e\u0301', true, 'case of a decomposed letter'],
  ['ὈΔΥΣΣΕΎΣ', 'ὀδυσσεύς', true, 'Greek: the final sigma is a sigma'],
  ['σ', 'ς', true, 'Greek: the final sigma is a sigma'],
  ['ΣΊΣΥΦΟΣ', 'Σίσυφος', true, 'Greek'],
  ['ЛАМПА', 'Настольная лампа', true, 'Cyrillic'],
  ['й', 'и\u0306', true, 'Cyrillic: composed and decomposed'],
  ['и', 'й', true, 'Cyrillic: a breve is a mark'],
  ['i', 'ı', false, 'Turkish: the dotless i is another letter'],
  ['I', 'ı', false, 'Turkish: the dotless i is another letter'],
  ['i', 'İ', true, 'Turkish: a dot is a mark'],
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
  ['か', 'か\u3099', true, 'Japanese: the sign of voice is a mark'],
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

test('a text is found by its Normalization Form C, whichever form it has', () => {
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
