/** Fills the memory of its process with records until the store refuses more, and prints what happened. */
import { CairnError } from '../../../src/base/errors.ts';
import { startStore } from './fixtures.ts';

const { store, notes, notices } = await startStore();

async function insertSome(): Promise<string> {
  try {
    await store.write((tx) => {
      for (let n = 0; n < 1000; n += 1) tx.insert(notes, { person: n, text: `${notes.size + n}`.padEnd(400) });
    });
    return 'inserted';
  } catch (error) {
    if (error instanceof CairnError && error.code === 'storage_full') return error.message;
    throw error;
  }
}

let refusal = 'inserted';
while (refusal === 'inserted') refusal = await insertSome();
const filled = notes.size;
const wasScarce = store.isScarce;

while (notes.size > 0) {
  await store.write((tx) => {
    for (const { id } of notes.latest(1000)) tx.remove(notes, id);
  });
}

// What was removed is garbage until V8 collects it, which further garbage brings about.
let attempts = 0;
for (let garbage: number[][] = []; (await insertSome()) !== 'inserted'; attempts += 1) {
  garbage.push(new Array<number>(100_000).fill(attempts));
  if (garbage.length === 10) garbage = [];
}
const isScarce = [wasScarce, store.isScarce];
process.stdout.write(JSON.stringify({ refusal, filled, left: notes.size, attempts, notices, isScarce }));
await store.close();
