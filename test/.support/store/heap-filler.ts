/** Fills the memory of its process with records until the store refuses more, and prints what happened. */
import { CairnError } from '../../../src/base/errors.ts';
import { startStore } from './fixtures.ts';

const { store, notes, notices } = await startStore();

async function insertSome(): Promise<string> {
  try {
    await store.write((tx) => {
      for (let n = 0; n < 1000; n += 1) tx.of(notes).insert({ person: n, text: `${notes.size + n}`.padEnd(400) });
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

while (notes.size > 0) {
  await store.write((tx) => {
    for (const { id } of notes.latest(1000)) tx.of(notes).remove(id);
  });
}

// What was removed is garbage until V8 collects it, which further garbage brings about.
let garbage: number[][] = [];
async function makeGarbage(): Promise<void> {
  garbage.push(new Array<number>(100_000).fill(garbage.length));
  if (garbage.length === 10) garbage = [];
  await new Promise(setImmediate); // so that the watch hears of a collection
}
while ((await insertSome()) !== 'inserted') await makeGarbage();
const left = notes.size;
process.stdout.write(JSON.stringify({ refusal, filled, left, notices }));
await store.close();
