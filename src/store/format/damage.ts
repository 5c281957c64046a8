import { FatalError } from '../../base/errors.ts';
import type { MisfitCause } from '../store.ts';
import type { Refusal, RefusalLabel } from '../recovery/cases.ts';

/** Damage in a file of a store, as it is found. */
export interface Damage {
  readonly label: RefusalLabel;
  readonly file: string;
  /** The byte at which it begins; 0 if left out. */
  readonly offset?: number;
  /** What is wrong there, as the end of a sentence. */
  readonly detail?: string | undefined;
  /** The record that does not fit its declaration, and why. */
  readonly misfit?: MisfitCause | undefined;
}

/** Takes damage that was found. If it does not throw, the reading goes on after the damage. */
export type Report = (damage: Damage) => void;

/** Ends the reading of a store. The start tells of it by a `StoreDamageError`. */
export class FoundDamage extends Error {
  readonly damage: Damage;

  constructor(damage: Damage) {
    super(damage.label);
    this.damage = damage;
  }
}

/**
 * The files are damaged or were changed, and an operator has to decide. Names file and
 * byte.
 */
export class StoreDamageError extends FatalError {
  override readonly name = 'StoreDamageError';
  readonly label: RefusalLabel;
  readonly file: string;
  readonly offset: number;
  /** Where the damage is, what was found, and the label. */
  readonly problem: string;
  /** What the operator should do. */
  readonly remedy: string;
  readonly misfit: MisfitCause | undefined;
  /** Whether a repair loses something. */
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

/** Writes a path so that it can be pasted into a shell. */
function shellWord(path: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
