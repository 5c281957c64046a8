import { StoreDamageError } from './failures.ts';
import { errorCode, type Files } from './files.ts';
import { journalName, journalNumber } from './journal-format.ts';
import { JournalReader } from './journal-reader.ts';
import { recover } from './recovery.ts';
import { readSnapshot } from './snapshot.ts';
import { type AnyTable, carriedTable } from './table.ts';

export interface CheckReport {
  /** Empty where a start would succeed. */
  readonly damage: readonly StoreDamageError[];
  /** What a start would say or do, one sentence each. */
  readonly notices: readonly string[];
  readonly collections: readonly { readonly name: string; readonly records: number }[];
}

/** How often a running server may write a checkpoint while its files are read. */
const attemptsMax = 3;

/**
 * Does what a start does, and writes nothing. Where a start would stop, it goes on and looks at each file by itself.
 * @param makeTables makes the registered tables, empty
 */
export async function checkFiles(files: Files, makeTables: () => Map<string, AnyTable>): Promise<CheckReport> {
  for (let attempt = 1; ; attempt += 1) {
    const running = (await files.list()).includes('lock');
    try {
      const report = await checkOnce(files, makeTables);
      if (report.damage.length === 0 || !running || attempt === attemptsMax) return report;
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === attemptsMax) throw error;
    }
  }
}

async function checkOnce(files: Files, makeTables: () => Map<string, AnyTable>): Promise<CheckReport> {
  const damage = new Map<string, StoreDamageError>();
  const collect = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreDamageError)) throw error;
      damage.set(error.message, error);
      return undefined;
    }
  };
  const tables = makeTables();
  const recovered = await collect(() => recover(files, tables));
  if (recovered === undefined) {
    const each = makeTables();
    for (const name of tables.keys()) await collect(() => readSnapshot(files, each.get(name) ?? carriedTable(name)));
    for (const name of await files.list()) {
      const number = journalNumber(name);
      if (number !== undefined) await collect(() => readThrough(files, number));
    }
    return { damage: [...damage.values()], notices: [], collections: [] };
  }
  const notices: string[] = [];
  const { closed, sequence, torn } = recovered;
  if (!closed) notices.push(`the store is running, or was not stopped; its last commit is ${sequence}`);
  if (torn !== undefined) {
    const { journal, offset } = torn;
    notices.push(`${journalName(journal)}, byte ${offset}: a write that was cut short, or is under way, is left out`);
  }
  const collections = Array.from(tables.values(), ({ name, size }) => ({ name, records: size }));
  return { damage: [], notices, collections };
}

async function readThrough(files: Files, number: number): Promise<void> {
  const journal = await JournalReader.open(files, number);
  const groups = journal.groups();
  while ((await groups.next()).done !== true);
}
