import { FatalError } from '../../base/errors.ts';
import type { Files } from '../disk/files.ts';
import type { MisfitCause } from '../store.ts';
import { refusals, type Refusal, type RefusalLabel } from '../recovery/cases.ts';

/**
 * The files are damaged or were changed, and an operator has to decide. Names file and
 * byte.
 */
export class StoreDamageError extends FatalError {
  override readonly name = 'StoreDamageError';
  readonly label: RefusalLabel;
  readonly file: string;
  /** The byte at which the damage begins. */
  readonly offset: number;
  /** Where the damage is, what was found, and the label. */
  readonly problem: string;
  /** What the operator should do. */
  readonly remedy: string;
  /** The record that does not fit its declaration, and why. */
  readonly misfit: MisfitCause | undefined;
  /** Whether a repair loses something. */
  readonly isLoss: boolean;

  constructor(
    label: RefusalLabel,
    { directory }: Pick<Files, 'directory'>,
    file: string,
    offset = 0,
    detail = '',
    misfit?: MisfitCause,
  ) {
    const refusal: Refusal = refusals[label];
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

/** Writes a path so that it can be pasted into a shell. */
function shellWord(path: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
