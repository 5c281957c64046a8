import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHeader, snapshotFormat } from '../../src/store/format/snapshot.ts';

const header = { format: snapshotFormat, collection: 'notes', epoch: 'e', through: 7, revision: 5, nextId: 3 };

test('the header of a snapshot is read', () => {
  assert.deepEqual(parseHeader(header, 'notes'), { epoch: 'e', through: 7, revision: 5, nextId: 3 });
});

const wrong: readonly object[] = [
  { format: 0 }, { collection: 'people' }, { epoch: 1 }, { nextId: -1 }, { nextId: '3' }, { nextId: 1.5 },
  { through: -1, revision: -1 }, { through: '7' }, { through: undefined }, { revision: '5' }, { revision: 0.5 },
  { revision: 8 },
];

for (const change of wrong)
  test(`a header is refused that has ${JSON.stringify(change)}`, () => {
    assert.equal(parseHeader({ ...header, ...change }, 'notes'), undefined);
  });

test('no header is none of a snapshot', () => assert.equal(parseHeader(undefined, 'notes'), undefined));
