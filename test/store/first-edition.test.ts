/** Directories that the first edition left: `first-edition.json` has their files as text. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectDirectory } from '../support/source.ts';
import {
  listRecords,
  createMachine,
  createStore,
  createPerson,
  SimulatedDisk,
  startStore,
} from '../support/store/fixtures.ts';

const left: { readonly [what: string]: { readonly [file: string]: string } } =
  JSON.parse(readFileSync(join(projectDirectory, 'test', 'store', 'first-edition.json'), 'utf8'));

const expected: { readonly [what: string]: { names: string; notes: string; nextId: number; sequence: number } } = {
  stopped: { names: 'ann cat', notes: 'käse', nextId: 4, sequence: 4 },
  'killed at first': { names: 'ann bob', notes: 'x', nextId: 3, sequence: 3 },
  'killed with a torn write': { names: 'Ann cat dan', notes: '', nextId: 5, sequence: 5 },
  'killed during a checkpoint': { names: 'ann bob', notes: 'x', nextId: 3, sequence: 3 },
};

describe('a directory of the first edition', () => {
  for (const [what, { names, notes, nextId, sequence }] of Object.entries(expected)) {
    it(`opens if its server was ${what}`, async () => {
      const content = new Map(Object.entries(left[what] ?? {}).map(([file, text]) => [file, Buffer.from(text)]));
      const disk = new SimulatedDisk(content);
      assert.deepEqual((await createStore({ files: disk }).check()).damage, []);
      const machine = createMachine();
      const options = { files: disk, machine, spareBytes: 64 };
      const first = await startStore(options);
      // Its lock does not say where its process numbers count.
      assert.equal(machine.waitedMs, content.has('lock') ? 20_000 : 0);
      assert.equal(listRecords(first.people).map(({ name }) => name).join(' '), names);
      assert.equal(listRecords(first.notes).map(({ text }) => text).join(' '), notes);
      assert.equal(first.store.epoch, '7d1165c449300a6d');
      assert.equal(first.store.status().sequence, sequence);
      assert.equal(first.notices.some((notice) => notice.includes('cut short')), what.includes('torn'));
      const next = await first.store.write((tx) => tx.of(first.people).insert(createPerson('new')));
      assert.deepEqual([next.id, next.revision], [nextId, sequence + 1]);
      await first.store.close();
      const files = [...disk.content().keys()].filter((name) => !name.endsWith('.torn'));
      assert.match(files.sort().join(' '), /^journal-\d\.jsonl notes\.json people\.json$/);
      const second = await startStore(options);
      assert.equal(listRecords(second.people).map(({ name }) => name).join(' '), `${names} new`);
      assert.deepEqual(second.notices, []);
    });
  }
});
