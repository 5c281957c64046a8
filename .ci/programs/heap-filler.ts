/**
 * Fills the memory of its process with records, first by an import and then by requests, until the store refuses more,
 * and prints what happened.
 */
import { CairnError } from '../../src/base/errors.ts';
import { startStore } from '../../test/support/store/fixtures.ts';

const { store, notes, notices } = await startStore();

async function insert(count: number): Promise<string> {
  try {
    await store.write((tx) => {
      for (let n = 0; n < count; n += 1) tx.of(notes).insert({ person: n, text: `${notes.size + n}`.padEnd(100) });
    });
    return 'inserted';
  } catch (error) {
    if (error instanceof CairnError && error.code === 'storage_full') return error.message;
    throw error;
  }
}

async function removeLatest(count: number): Promise<void> {
  await store.write((tx) => {
    for (const { id } of notes.latest(count)) tx.of(notes).remove(id);
  });
}

const imported: string[] = [];
for (let n = 0; n < 5; n += 1) imported.push(await insert(20_000));
const refusedAfterImport: string[] = [];
for (let n = 0; n < 1000; n += 1) {
  const outcome = await insert(1);
  if (outcome !== 'inserted') refusedAfterImport.push(outcome);
}

let refusal = 'inserted';
while (refusal === 'inserted') refusal = await insert(1000);
const filled = notes.size;
const stateWhenFull = store.state;
const { memoryBytes, memoryMaxBytes } = store.status();

await removeLatest(1000);
const afterRemoval = await insert(1000);
while (notes.size > 1000) await removeLatest(1000);
const { state } = store;
const left = { records: notes.size, ...store.status() };
process.stdout.write(JSON.stringify({
  imported, refusedAfterImport, refusal, filled, stateWhenFull, memoryBytes, memoryMaxBytes, afterRemoval, state, left,
  notices,
}));
await store.close();
