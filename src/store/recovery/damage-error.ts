import { FatalError } from '../../base/errors.ts';
import type { Files } from '../disk/files.ts';
import type { Damage } from '../format/damage.ts';
import type { MisfitCause } from '../store.ts';
import type { Refusal, RefusalLabel } from './cases.ts';

/**
 * The files are damaged or were changed, and an operator has to decide. The message names file and
 * byte.
 */
export class StoreDamageError extends FatalError {
  override readonly name = 'StoreDamageError';
  readonly label: RefusalLabel;
  readonly file: string;
  readonly offset: number;
  /** The place of the damage, the finding and the label. */
  readonly problem: string;
  readonly remedy: string;
  readonly misfit: MisfitCause | undefined;
  /** True if a repair loses something. */
  readonly isLoss: boolean;

  constructor(directory: string, damage: Damage, refusal: Refusal) {
    const { label, file, offset = 0, detail = '', misfit } = damage;
    const remedy = refusal.remedy(shellWord(directory));
    const what = `${refusal.found}${detail && `: ${detail}`}`;
    const problem = `${file}, byte ${offset}: ${what} [${label}]`;
    super(78, `Cannot open the store: ${problem}; ${remedy}`);
    this.problem = problem;
    this.misfit = misfit;
    this.label = label;
    this.file = file;
    this.offset = offset;
    this.remedy = remedy;
    this.isLoss = refusal.isAccepted !== true;
  }
}

/** Only damage loads the table of the cases. */
export async function errorsFor(
  { directory }: Files,
  found: readonly Damage[],
): Promise<StoreDamageError[]> {
  const { refusals } = await import('./cases.ts');
  return found.map((each) => new StoreDamageError(directory, each, refusals[each.label]));
}

/** Quotes a path for a shell. */
function shellWord(path: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
