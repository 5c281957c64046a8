import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHeader, snapshotFormat } from '../../src/store/format/snapshot.ts';

const header = { format: snapshotFormat, collection: 'notes', epoch: 'e', through: 7, revision: 5, nextId: 3 };

test('a snapshot\'s header is parsed', () => {
  assert.deepEqual(parseHeader(header, 'notes'), { epoch: 'e', through: 7, revision: 5, nextId: 3 });
});

const wrong: readonly object[] = [
  { format: 0 }, { collection: 'people' }, { epoch: 1 }, { nextId: -1 }, { nextId: '3' }, { nextId: 1.5 },
  { through: -1, revision: -1 }, { through: '7' }, { through: undefined }, { revision: '5' }, { revision: 0.5 },
  { revision: 8 },
];

for (const change of wrong)
  test(`a snapshot's header with ${JSON.stringify(change)} is refused`, () => {
    assert.equal(parseHeader({ ...header, ...change }, 'notes'), undefined);
  });

test('text without a header is not a snapshot', () => assert.equal(parseHeader(undefined, 'notes'), undefined));
