import { CairnError } from '../base/errors.ts';
import { apiFields, type Reply, type Request } from '../http/message.ts';
import { passesIfMatch, passesIfNoneMatch, readEntityTags, readPreconditions } from '../http/preconditions.ts';
import type { Precondition } from '../resources/collection.ts';
import { problems } from './problems.ts';

/** What the caller may keep only if it asks each time whether it is still right, and shows to nobody else. */
const varying = 'Authorization, Cookie, Accept, Prefer';
const revalidated = ['Cache-Control', 'private, no-cache', 'Vary', varying, ...apiFields];
const revalidatedJson = ['Content-Type', 'application/json', ...revalidated];
/** What nobody keeps: credentials, sessions, what depends on the moment. */
const unstored = ['Cache-Control', 'no-store', ...apiFields];
const unstoredJson = ['Content-Type', 'application/json', ...unstored];
const unstoredProblem = ['Content-Type', 'application/problem+json', ...unstored];

/** A representation with its entity tag, as JSON text. `fields` are names and values in turn. */
export function shown(status: 200 | 201, tag: string, body: Reply['body'], fields: readonly string[] = []): Reply {
  return { status, fields: [...revalidatedJson, 'ETag', tag, ...fields], body };
}

/** 304 (RFC 9110 §15.4.5): the caller has it already. */
export function notModified(tag: string): Reply {
  return { status: 304, fields: [...revalidated, 'ETag', tag], body: undefined };
}

/** An answer that must not be kept, as JSON text. */
export function unstoredReply(status: 200 | 201, body: string, fields: readonly string[] = []): Reply {
  return { status, fields: [...unstoredJson, ...fields], body };
}

export function noContent(fields: readonly string[] = [], status: 204 | 201 | 303 = 204): Reply {
  return { status, fields: [...unstored, ...fields], body: undefined };
}

/** Problem details (RFC 9457) for an error, with the challenge or the time to wait that belongs to it. */
export function refusal(error: CairnError, requestId: string, fields: readonly string[] = []): Reply {
  const { status, title } = problems[error.code];
  const own = [...fields];
  if (status === 401) own.push('WWW-Authenticate', error.code === 'invalid_token' ? invalidToken : 'Bearer');
  if (error.code === 'insufficient_scope') own.push('WWW-Authenticate', insufficientScope);
  if (error.retryAfterSeconds !== undefined) own.push('Retry-After', String(error.retryAfterSeconds));
  const { code, message: detail, issues: errors } = error;
  const type = `/openapi.json#/components/responses/${code}`;
  const body = JSON.stringify({ type, title, status, detail, instance: `urn:uuid:${requestId}`, code, errors });
  return { status, fields: [...unstoredProblem, ...own], body };
}

/** RFC 6750 §3.1. */
const invalidToken = 'Bearer error="invalid_token"';
const insufficientScope = 'Bearer error="insufficient_scope"';

/**
 * Strong entity tags (RFC 9110 §8.8.3) without a hash: what is shown follows from the store's epoch, the revision of
 * the record or collection, and what of it was asked for. `selection` names the latter; empty for all of it.
 */
export function entityTag(epoch: string, revision: number, selection = ''): string {
  return `"${epoch}-${revision}${selection === '' ? '' : `-${selection}`}"`;
}

/**
 * Whether the caller holds this representation already (304). `version`: the tag of another representation of the same
 * version, which `If-Match` may name as well. @throws CairnError `precondition_failed`
 */
export function isUnchanged({ fields }: Request, tag: string, version = tag): boolean {
  const preconditions = readPreconditions(fields);
  if (!passesIfMatch(preconditions.ifMatch, tag) && !passesIfMatch(preconditions.ifMatch, version)) throw changed();
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
  if (passesIfMatch(readEntityTags(fields, 'if-match'), '')) return;
  throw new CairnError('precondition_failed', 'Cannot go on: If-Match names a version, and this request is for none');
}

function changed(): CairnError {
  return new CairnError('precondition_failed', 'Cannot go on: the resource is not the version that was named');
}
