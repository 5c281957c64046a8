/**
 * A process with a store that does as it is told, line by line: `open`, `write`, `close`. It answers each with a line:
 * `opened` or `locked`, the number of records or an error's code, `closed`.
 */
import { createInterface } from 'node:readline';
import { CairnError } from '../../src/base/errors.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { NodeFiles } from '../../src/store/node-files.ts';
import { openStore } from '../../src/store/open-store.ts';
import { LockedError } from '../../src/store/store.ts';
import { people, person } from '../store/fixtures.ts';

const [directory = ''] = process.argv.slice(2);
const make = (): ReturnType<typeof openStore> =>
  openStore({ files: new NodeFiles(directory), clock: systemClock, random: systemRandom, reserveBytes: 4096 });
let store = make();
let records = store.collection(people);
const answers: { readonly [line: string]: () => Promise<string | number> } = {
  async open() {
    store = make();
    records = store.collection(people);
    try {
      await store.start();
      return 'opened';
    } catch (error) {
      if (error instanceof LockedError) return 'locked';
      throw error;
    }
  },
  async write() {
    try {
      await store.write((tx) => tx.insert(records, person(`p${records.size + 1}`)));
      return records.size;
    } catch (error) {
      if (error instanceof CairnError) return error.code;
      throw error;
    }
  },
  async close() {
    await store.close();
    return 'closed';
  },
};
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await answers[line]?.()}\n`);
}
