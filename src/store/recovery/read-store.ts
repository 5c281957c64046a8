import { CairnError } from '../../base/errors.ts';
import { errorCode, type Files } from '../disk/files.ts';
import { lockName } from '../disk/lock.ts';
import type { Damage } from '../format/damage.ts';
import { Tables, type AnyTable } from '../memory/table.ts';
import { errorsFor, type StoreDamageError } from './damage-error.ts';
import { recover, type Recovered } from './recover.ts';

/** The most attempts to read a running store while its checkpoints remove files. */
const attemptsMax = 5;

export interface ReadStore extends Pick<
  Recovered,
  'epoch' | 'sequence' | 'closed' | 'badLastLine'
> {
  readonly tables: ReadonlyMap<string, AnyTable>;
  readonly damage: readonly StoreDamageError[];
}

/**
 * Reads as much of a store as possible, and writes nothing. Reads again if a running server's
 * checkpoint has removed files before they were read.
 * @throws StoreDamageError if the store cannot be read at all
 */
export async function readStore(files: Files, makeTables: () => Tables): Promise<ReadStore> {
  for (let attempt = 1; ; attempt += 1) {
    const isRunning = (await files.list()).includes(lockName);
    const isLast = attempt === attemptsMax || !isRunning;
    const tables = makeTables();
    const found: Damage[] = [];
    try {
      const recovered = await recover(files, tables, (each) => found.push(each));
      if (isLast || found.length === 0) {
        return { ...recovered, tables, damage: await errorsFor(files, found) };
      }
    } catch (error) {
      if (isLast || errorCode(error) !== 'ENOENT') throw error;
    }
  }
}

/**
 * Reads all collections as stored, and writes nothing. A server may go on writing: the result is
 * the state after one of its commits.
 * @throws CairnError `not_found` if there is no store; StoreDamageError
 */
export async function readUndamaged(files: Files): Promise<ReadStore & { readonly epoch: string }> {
  const read = await readStore(files, () => new Tables());
  for (const damage of read.damage) throw damage;
  const { epoch } = read;
  if (epoch !== undefined) return { ...read, epoch };
  throw new CairnError(
    'not_found',
    `Cannot read ${files.directory}: no store is there; check its name`,
  );
}
