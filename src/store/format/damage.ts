import type { MisfitCause } from '../store.ts';
import type { RefusalLabel } from '../recovery/cases.ts';

/** Damage in a file of a store, as it is found. */
export interface Damage {
  readonly label: RefusalLabel;
  readonly file: string;
  /** The byte at which it begins; 0 if left out. */
  readonly offset?: number;
  /** The problem there, as the end of a sentence. */
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
