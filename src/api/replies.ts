import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { nearest } from '../base/nearest.ts';
import { apiFields, type Reply, type Request } from '../http/message.ts';
import { passesIfMatch, passesIfNoneMatch, readEntityTags, readPreconditions } from '../http/preconditions.ts';
import type { Precondition } from '../collections/resource.ts';
import { problems } from './problems.ts';
import type { Endpoint } from './route.ts';

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

/** A stream of server-sent events (WHATWG HTML §9.2), which nginx would hold back otherwise. */
export function eventStream(body: Reply['body']): Reply {
  const fields = ['Content-Type', 'text/event-stream', ...unstored, 'X-Accel-Buffering', 'no'];
  return { status: 200, fields, body, isEndless: true };
}

export function noContent(fields: readonly string[] = [], status: 204 | 201 | 303 = 204): Reply {
  return { status, fields: [...unstored, ...fields], body: undefined };
}

/** Problem details (RFC 9457) for an error, with the challenge, the time to wait or the version that belongs to it. */
export function refusal(error: CairnError, requestId: string, fields: readonly string[] = []): Reply {
  const [status, title] = problems[error.code];
  const own = [...fields];
  if (status === 401) own.push('WWW-Authenticate', error.code === 'invalid_token' ? invalidToken : 'Bearer');
  if (error.code === 'insufficient_scope') own.push('WWW-Authenticate', insufficientScope);
  if (error.retryAfterSeconds !== undefined) own.push('Retry-After', String(error.retryAfterSeconds));
  if (error.currentTag !== undefined) own.push('ETag', error.currentTag);
  const { code, message: detail, issues: errors } = error;
  const type = `/openapi.json#/x-problems/${code}`;
  const instance = `urn:${uuid.test(requestId) ? 'uuid' : 'x-request-id'}:${requestId}`;
  const body = JSON.stringify({ type, title, status, detail, instance, code, errors });
  return { status, fields: [...unstoredProblem, ...own], body };
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The error for a path that no route has. It names the nearest one, since most of them are misspelt. */
export function unknownPath({ target }: Request, endpoints: readonly Endpoint[]): CairnError {
  const [path = ''] = target.slice(0, comparedPathMax).replace(/\/\d+$/, '/{id}').split('?');
  const meant = nearest(path, endpoints.map(({ route }) => route.path));
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  return new CairnError('not_found', `Cannot find the path: no route has it${hint}`);
}

/** As much of a path is compared with others. */
const comparedPathMax = 64;

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
  if (!passesIfMatch(preconditions.ifMatch, tag) && !passesIfMatch(preconditions.ifMatch, version)) throw changed(tag);
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
      throw changed(tag);
    },
  };
}

/**
 * The `Idempotency-Key` of a request, quoted as in draft-ietf-httpapi-idempotency-key-header or bare; `undefined` where
 * there is none. @throws CairnError `malformed_request`
 */
export function idempotencyKeyOf({ fields }: Request): string | undefined {
  const sent = fields.get('idempotency-key');
  if (sent === undefined) return undefined;
  const [, quoted, bare] = /^(?:"((?:[ !#-[\]-~]|\\["\\])+)"|([!#-~][ -~]*))$/.exec(sent) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  if (key !== undefined && key.length <= limits.keyLengthMax) return key;
  const rule = `it must be 1 to ${limits.keyLengthMax} printable characters of ASCII`;
  throw new CairnError('malformed_request', `Cannot read the Idempotency-Key: ${rule}`);
}

/** Refuses a write for one version of what has none: to ignore the condition would be to write in spite of it. */
export function refuseVersion({ fields }: Request): void {
  if (passesIfMatch(readEntityTags(fields, 'if-match'), '')) return;
  throw new CairnError('precondition_failed', 'Cannot go on: If-Match names a version, and this request is for none');
}

function changed(currentTag: string): CairnError {
  const message = 'Cannot go on: the resource is not the version that was named';
  return new CairnError('precondition_failed', message, { currentTag });
}
