import { CairnError } from '../base/errors.ts';

/**
 * What a caller requires of the record that a write replaces, decided inside the transaction, where no other write can
 * come between. The order of the checks is: authorization, 404, 428, 422, 412.
 */
export interface Precondition {
  /** @throws CairnError `precondition_required` where the installation demands one and none was sent */
  demand(): void;
  /** @throws CairnError `precondition_failed` unless the version with this revision is one that the caller named */
  check(revision: number): void;
}

/** Requires nothing. */
export const unconditional: Precondition = { demand: () => {}, check: () => {} };

/** The answer to an absent record, and to one that the caller may not know of. */
export function notFound(): CairnError {
  return new CairnError('not_found', 'Cannot find the resource: there is none at this path');
}
