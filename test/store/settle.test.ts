import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tables, type Table } from '../../src/store/memory/table.ts';
import { settle } from '../../src/store/recovery/settle.ts';
import type { Damage } from '../../src/store/format/damage.ts';
import type { StoredRecord } from '../../src/store/store.ts';

interface Page extends StoredRecord {
  readonly parent: number;
}

/** Pages of which each refers to the one before, and the first one to none that is there. */
function pagesInAChain(tables: Tables, length: number): Table<Page> {
  const pages = tables.add<Page>({
    name: 'pages',
    parse: ({ id, revision, parent }) => ({ id, revision, parent: Number(parent) }),
    groups: { parent: ({ parent }) => parent },
    references: { parent: 'pages' },
  });
  for (let id = 1; id <= length; id += 1) pages.load({ id, revision: id, parent: id - 1 });
  return pages;
}

test('a chain of references to nothing costs what its records cost, not all records for each of them', (t) => {
  const length = 400;
  const tables = new Tables();
  const pages = pagesInAChain(tables, length);
  const reads = t.mock.method(pages, 'get');
  const found: Damage[] = [];
  settle(tables, (damage) => found.push(damage));
  assert.equal(pages.size, 0);
  assert.deepEqual([found.length, found[1]?.label], [length, 'D3']);
  assert.match(found[1]?.detail ?? '', /1 record has a "parent" that is no record of pages: 2$/);
  assert.ok(reads.mock.callCount() < 10 * length, `${reads.mock.callCount()} reads`);
});
