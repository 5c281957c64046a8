import { CairnError, problems } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { apiFields, type ProblemReply, type Reply, type Request } from '../http/message.ts';
import {
  passesIfMatch,
  passesIfNoneMatch,
  readEntityTags,
  readPreconditions,
} from '../http/preconditions.ts';
import type { Precondition } from '../collections/resource.ts';

/**
 * For replies that the caller may cache, if it revalidates them each time. Shared caches
 * may not.
 */
const varying = 'Authorization, Cookie, Prefer';
const revalidated = ['Cache-Control', 'private, no-cache', 'Vary', varying, ...apiFields];
const revalidatedJson = ['Content-Type', 'application/json', ...revalidated];
/**
 * For replies that must not be cached: credentials, sessions, and what depends on the
 * moment.
 */
const unstored = ['Cache-Control', 'no-store', ...apiFields];
const unstoredJson = ['Content-Type', 'application/json', ...unstored];
const unstoredProblem = ['Content-Type', 'application/problem+json', ...unstored];

/**
 * Returns a representation, as JSON text, with its entity tag if it has one. `fields` are
 * names and values in turn.
 */
export function shown(
  status: 200 | 201,
  tag: string | undefined,
  body: Reply['body'],
  fields: readonly string[] = [],
): Reply {
  const sent =
    tag === undefined
      ? [...revalidatedJson, ...fields]
      : [...revalidatedJson, 'ETag', tag, ...fields];
  return { status, fields: sent, body };
}

/**
 * Returns 304 (RFC 9110 §15.4.5): the caller has this version already. `fields` are those of
 * the representation by which caches choose and name it.
 */
export function notModified(tag: string, fields: readonly string[] = []): Reply {
  return { status: 304, fields: [...revalidated, 'ETag', tag, ...fields], body: undefined };
}

/** Returns JSON text that must not be cached. */
export function unstoredReply(
  status: 200 | 201,
  body: string,
  fields: readonly string[] = [],
): Reply {
  return { status, fields: [...unstoredJson, ...fields], body };
}

/**
 * Returns a stream of server-sent events (WHATWG HTML §9.2). `X-Accel-Buffering` keeps
 * nginx from buffering it.
 */
export function eventStream(body: Reply['body']): Reply {
  const fields = ['Content-Type', 'text/event-stream', ...unstored, 'X-Accel-Buffering', 'no'];
  return { status: 200, fields, body, isEndless: true };
}

export function noContent(fields: readonly string[] = []): Reply {
  return { status: 204, fields: [...unstored, ...fields], body: undefined };
}

export function redirectTo(path: string): Reply {
  return { status: 303, fields: [...unstored, 'Location', path], body: undefined };
}

/** Returns problem details (RFC 9457) for an error, with the fields that belong to it. */
export const problemReply: ProblemReply = (error, { id, basePath }) => {
  const { code, message: detail, issues: errors, retryAfterSeconds } = error;
  const [status, title] = problems[code];
  const fields = [...unstoredProblem, ...error.fields];
  if (challenged.has(code)) fields.push('WWW-Authenticate', `Bearer error="${code}"`);
  else if (status === 401) fields.push('WWW-Authenticate', 'Bearer');
  if (retryAfterSeconds !== undefined) fields.push('Retry-After', String(retryAfterSeconds));
  const type = `${basePath}/openapi.json#/x-problems/${code}`;
  const instance = `urn:${uuid.test(id) ? 'uuid' : 'x-request-id'}:${id}`;
  const body = JSON.stringify({ type, title, status, detail, instance, code, errors });
  return { status, fields, body };
};

/** The codes that a challenge names as well (RFC 6750 §3.1). */
const challenged = new Set<string>(['invalid_token', 'insufficient_scope']);

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Returns a strong entity tag (RFC 9110 §8.8.3). No hash is needed: the store's epoch,
 * the revision of the record or collection, the shape of its records and the selected
 * part determine the representation. `selection` names that part; it is empty for all of it.
 */
export function entityTag(epoch: string, revision: number, shapeTag = '', selection = ''): string {
  return `"${epoch}-${revision}${shapeTag && `-${shapeTag}`}${selection && `-${selection}`}"`;
}

/**
 * Whether the caller has this representation already (304). `version` is the tag of
 * another representation of the same version, which `If-Match` may name too.
 * @throws CairnError `precondition_failed`
 */
export function isUnchanged({ fields }: Request, tag: string, version = tag): boolean {
  const { ifMatch, ifNoneMatch } = readPreconditions(fields);
  if (!passesIfMatch(ifMatch, tag) && !passesIfMatch(ifMatch, version))
    throw preconditionFailed(tag);
  return !passesIfNoneMatch(ifNoneMatch, tag);
}

/**
 * Returns the precondition of a write, which the transaction checks. `required`: If-Match
 * must be sent (428).
 */
export function preconditionOf(
  { fields }: Request,
  tagOf: (revision: number) => string,
  required: boolean,
): Precondition {
  const { ifMatch, ifNoneMatch } = readPreconditions(fields);
  return {
    demand() {
      if (!required || ifMatch !== undefined) return;
      throw new CairnError(
        'precondition_required',
        'Cannot change the resource: send its ETag in If-Match',
      );
    },
    check(revision) {
      const tag = revision === undefined ? undefined : tagOf(revision);
      const passes =
        tag === undefined
          ? ifMatch === undefined
          : passesIfMatch(ifMatch, tag) && passesIfNoneMatch(ifNoneMatch, tag);
      if (!passes) throw preconditionFailed(tag);
    },
  };
}

/**
 * Returns the `Idempotency-Key` of a request, quoted as in
 * draft-ietf-httpapi-idempotency-key-header or bare; `undefined` if there is none.
 * @throws CairnError `malformed_request`
 */
export function idempotencyKeyOf({ fields }: Request): string | undefined {
  const sent = fields.get('idempotency-key');
  if (sent === undefined) return undefined;
  const [, quoted, bare] = idempotencyKey.exec(sent) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  if (key !== undefined) return key;
  const rule = `it must have 1 to ${limits.keyLengthMax} printable ASCII characters`;
  throw new CairnError('malformed_request', `Cannot read the Idempotency-Key: ${rule}`);
}

/** The form of an `Idempotency-Key`, as a regular expression for JSON Schema. */
export const idempotencyKeyPattern =
  `^(?:"((?:[ !#-[\\]-~]|\\\\["\\\\]){1,${limits.keyLengthMax}})"` +
  `|([!#-~][ -~]{0,${limits.keyLengthMax - 1}}))$`;
const idempotencyKey = new RegExp(idempotencyKeyPattern);

/**
 * Checks that a write names no version of a resource that has none.
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
