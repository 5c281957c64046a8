import { CairnError } from '../base/errors.ts';
import { passesIfMatch, passesIfNoneMatch, readPreconditions } from '../http/preconditions.ts';
import type { Request } from '../http/message.ts';
import type { Precondition } from '../resources/collection.ts';

/**
 * Strong entity tags (RFC 9110 §8.8.3) without a hash: what is shown follows from the store's epoch, the revision of
 * the record or collection, and what of it was asked for. `selection` names the latter; empty for all of it.
 */
export function entityTag(epoch: string, revision: number, selection = ''): string {
  return `"${epoch}-${revision}${selection === '' ? '' : `-${selection}`}"`;
}

/** Whether the caller holds this representation already (304). @throws CairnError `precondition_failed` */
export function isUnchanged({ fields }: Request, tag: string): boolean {
  const preconditions = readPreconditions(fields);
  if (!passesIfMatch(preconditions.ifMatch, tag)) throw changed();
  return !passesIfNoneMatch(preconditions.ifNoneMatch, tag);
}

/** The preconditions of a write, for the transaction to decide. `required`: one must be sent (428). */
export function preconditionOf({ fields }: Request, epoch: string, required: boolean): Precondition {
  const preconditions = readPreconditions(fields);
  return {
    demand() {
      if (!required || preconditions.ifMatch !== undefined) return;
      throw new CairnError('precondition_required', 'Cannot change the resource: an If-Match field is required here');
    },
    check(revision) {
      const tag = entityTag(epoch, revision);
      if (passesIfMatch(preconditions.ifMatch, tag) && passesIfNoneMatch(preconditions.ifNoneMatch, tag)) return;
      throw changed();
    },
  };
}

/** Refuses a write for one version of what has none: to ignore the condition would be to write in spite of it. */
export function refuseVersion({ fields }: Request): void {
  const named = fields.get('if-match');
  if (named === undefined || named === '*') return;
  throw new CairnError('precondition_failed', 'Cannot go on: If-Match names a version, and this request is for none');
}

function changed(): CairnError {
  return new CairnError('precondition_failed', 'Cannot go on: the resource is not the version that was named');
}
