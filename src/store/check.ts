import type { Files } from './files.ts';
import { journalName, journalNumber } from './journal-format.ts';
import { JournalReader } from './journal-reader.ts';
import { countsOf, readStore, type Count } from './offline.ts';
import { readSnapshot } from './snapshot.ts';
import { StoreDamageError } from './store.ts';
import { carriedTable, type AnyTable } from './table.ts';

export interface CheckReport {
  /** Empty where a start would succeed. */
  readonly damage: readonly StoreDamageError[];
  /** What a start would say or do, one sentence each. */
  readonly notices: readonly string[];
  readonly collections: readonly Count[];
}

/**
 * Does what a start does, and writes nothing. Where a start would stop, it goes on and looks at each file by itself.
 * @param makeTables makes the registered tables, empty
 */
export async function checkFiles(files: Files, makeTables: () => Map<string, AnyTable>): Promise<CheckReport> {
  const damage = new Map<string, StoreDamageError>();
  const collect = (error: unknown): undefined => {
    if (!(error instanceof StoreDamageError)) throw error;
    damage.set(error.message, error);
  };
  let read = makeTables();
  const store = await readStore(files, () => (read = makeTables())).catch(collect);
  if (store === undefined) {
    const registered = makeTables();
    for (const name of read.keys()) {
      await readSnapshot(files, registered.get(name) ?? carriedTable(name)).catch(collect);
    }
    for (const name of await files.list()) {
      const number = journalNumber(name);
      if (number !== undefined) await readThrough(files, number).catch(collect);
    }
    return { damage: [...damage.values()], notices: [], collections: [] };
  }
  const notices: string[] = [];
  const { closed, sequence, torn } = store;
  if (!closed) notices.push(`the store is running, or was not stopped; its last commit is ${sequence}`);
  if (torn !== undefined) {
    const place = `${journalName(torn.journal)}, byte ${torn.offset}`;
    notices.push(`${place}: a write that was cut short, or is under way, is left out`);
  }
  return { damage: [], notices, collections: countsOf(store.tables) };
}

async function readThrough(files: Files, number: number): Promise<void> {
  const groups = (await JournalReader.open(files, number)).groups();
  while ((await groups.next()).done !== true);
}
