/**
 * A process with a store of some version of the source, its first argument; the second is the data directory. It prints
 * what it has found, adds as many records as the third says, and removes the first one it has. The fourth says how it
 * ends: `stop`, `kill`, or `checkpoint`, which is killed after a checkpoint. With `more`, it declares another
 * collection, unknown to earlier processes.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { JsonValue } from '../../src/base/json.ts';
import type { StoredRecord, TableDefinition } from '../../src/store/store.ts';

const [source = '', directory = '', count = '0', end = 'stop', more = ''] = process.argv.slice(2);
const load = (path: string): Promise<unknown> => import(join(source, 'src', path));
// Both versions have these, with these types.
const { openStore } = (await load('store/open-store.ts')) as typeof import('../../src/store/open-store.ts');
const { NodeFiles } = (await load('store/disk/node-files.ts')) as typeof import('../../src/store/disk/node-files.ts');
const { systemClock, systemRandom } = (await load('base/system.ts')) as typeof import('../../src/base/system.ts');

interface Row extends StoredRecord {
  readonly name: string;
  readonly values: JsonValue;
}
const parse: TableDefinition<Row>['parse'] = ({ id, revision, name, values = null }) =>
  typeof name === 'string' ? { id, revision, name, values } : 'has no name';
const store = openStore({ files: new NodeFiles(directory), clock: systemClock, random: systemRandom });
const collections = ['first', 'second', ...(more === 'more' ? ['third'] : [])].map((name) =>
  store.collection({ name, parse, unique: { name: (row) => row.name } }));
const [one = assert.fail()] = collections;
await store.start();
const all = (): unknown[] => collections.map((each) => each.view().blocks.flat());
process.stdout.write(`${JSON.stringify({ sequence: store.sequence, epoch: store.epoch, records: all() })}\n`);
for (let n = 0; n < Number(count); n += 1) {
  const collection = collections[n % collections.length] ?? one;
  await store.write((tx) => tx.of(collection).insert({ name: `ä ${store.sequence}`, values: [n, { deep: null }] }));
}
const [first] = one.view().blocks.flat();
if (first !== undefined) await store.write((tx) => tx.of(one).remove(first.id));
if (end === 'checkpoint') await store.checkpoint();
if (end === 'stop') await store.close();
process.stdout.write(`${JSON.stringify({ sequence: store.sequence, epoch: store.epoch, records: all() })}\n`);
process.exit(0);
