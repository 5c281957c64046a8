import { CairnError } from '../base/errors.ts';
import type { Precondition } from '../collections/resource.ts';
import type { Request } from '../http/message.ts';
import {
  passesIfMatch,
  passesIfNoneMatch,
  readEntityTags,
  readPreconditions,
} from '../http/preconditions.ts';

/** Entity tags, and the preconditions of requests. */

/**
 * Returns a strong entity tag (RFC 9110 §8.8.3). It needs no hash: the store's epoch, the revision
 * of the record or collection, the shape of its records and the selected part determine the
 * representation. An empty `selection` means the whole.
 */
export function entityTag(epoch: string, revision: number, shapeTag = '', selection = ''): string {
  return `"${epoch}-${revision}${shapeTag && `-${shapeTag}`}${selection && `-${selection}`}"`;
}

/**
 * True if the caller has this representation (304). `version` is the tag of another representation
 * of the same revision, which `If-Match` may name too.
 * @throws CairnError `precondition_failed`
 */
export function isUnchanged({ fields }: Request, tag: string, version = tag): boolean {
  const { ifMatch, ifNoneMatch } = readPreconditions(fields);
  if (!passesIfMatch(ifMatch, tag) && !passesIfMatch(ifMatch, version))
    throw preconditionFailed(tag);
  return !passesIfNoneMatch(ifNoneMatch, tag);
}

/**
 * Returns a write's precondition, which the transaction checks. `required`: If-Match must be sent
 * (428).
 */
export function readPrecondition(
  { fields }: Request,
  tagOf: (revision: number) => string,
  required: boolean,
): Precondition {
  const { ifMatch, ifNoneMatch } = readPreconditions(fields);
  return (revision) => {
    if (revision === undefined) {
      // With nothing stored yet, no change can be lost, so a revision need not be named.
      if (ifMatch !== undefined) throw preconditionFailed(undefined);
      return;
    }
    if (required && ifMatch === undefined)
      throw new CairnError(
        'precondition_required',
        'Cannot change the resource: send its ETag in If-Match',
      );
    const tag = tagOf(revision);
    const passes = passesIfMatch(ifMatch, tag) && passesIfNoneMatch(ifNoneMatch, tag);
    if (!passes) throw preconditionFailed(tag);
  };
}

/**
 * Checks that a write does not name a revision of a resource that has none.
 * @throws CairnError `precondition_failed`
 */
export function checkNoVersion({ fields }: Request): void {
  if (passesIfMatch(readEntityTags(fields, 'if-match'), '')) return;
  throw new CairnError(
    'precondition_failed',
    'Cannot apply If-Match: this resource has no versions',
  );
}

export function preconditionFailed(currentTag: string | undefined): CairnError {
  if (currentTag === undefined) {
    const message = 'Cannot write: there is no version yet that meets the precondition';
    return new CairnError('precondition_failed', message);
  }
  const message = 'Cannot write: the current version, in ETag, does not meet the precondition';
  return new CairnError('precondition_failed', message, { fields: ['ETag', currentTag] });
}
