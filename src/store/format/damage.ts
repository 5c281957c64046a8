import type { MisfitCause } from '../store.ts';
import type { RefusalLabel } from '../recovery/cases.ts';

export interface Damage {
  readonly label: RefusalLabel;
  readonly file: string;
  /** The byte at which it begins; 0 if absent. */
  readonly offset?: number;
  /** The problem, as the end of a sentence. */
  readonly detail?: string | undefined;
  readonly misfit?: MisfitCause | undefined;
}

/** Receives damage. If it does not throw, reading continues after the damage. */
export type Report = (damage: Damage) => void;

/** Ends the reading of a store. The start turns it into a `StoreDamageError`. */
export class FoundDamage extends Error {
  readonly damage: Damage;

  constructor(damage: Damage) {
    super(damage.label);
    this.damage = damage;
  }
}
