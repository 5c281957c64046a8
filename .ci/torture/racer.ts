/**
 * A process with a store that obeys commands, line by line: `open`, `write`, `checkpoint`, `close`. It prints a line
 * for each: `opened` or `locked`, the number of records or an error's code, `done`, `closed`. Its arguments are the
 * directory, and its pretended place, such as another machine.
 */
import { createInterface } from 'node:readline';
import { CairnError } from '../../src/base/errors.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { systemMachine, type Machine } from '../../src/store/disk/lock.ts';
import { openStore } from '../../src/store/open-store.ts';
import { LockedError } from '../../src/store/disk/lock.ts';
import { people, createPerson } from '../../test/support/store/fixtures.ts';

const [directory = '', place] = process.argv.slice(2);
/** Makes 20 seconds pass in 0.4 s. */
const haste = 50;
const machine: Machine = {
  self: () => ({ ...systemMachine.self(), ...(place === undefined ? {} : { place }) }),
  isRunning: (pid) => systemMachine.isRunning(pid),
  wait: (ms) => systemMachine.wait(ms / haste),
  every: (ms, work) => systemMachine.every(ms / haste, work),
};
const make = (): ReturnType<typeof openStore> =>
  openStore({ files: new NodeFiles(directory), clock: systemClock, random: systemRandom, machine, spareBytes: 4096 });
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
      await store.write((tx) => tx.of(records).insert(createPerson(`p${records.size + 1}`)));
      return records.size;
    } catch (error) {
      if (error instanceof CairnError) return error.code;
      throw error;
    }
  },
  async checkpoint() {
    await store.checkpoint();
    return 'done';
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
