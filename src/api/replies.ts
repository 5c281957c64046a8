import { problems } from '../base/errors.ts';
import { apiFields, type ProblemReply, type Reply } from '../http/message.ts';

/**
 * For responses that the caller may cache but must revalidate. Shared caches may not store them.
 */
const varying = 'Authorization, Cookie, Prefer';
const revalidated = ['Cache-Control', 'private, no-cache', 'Vary', varying, ...apiFields];
const revalidatedJson = ['Content-Type', 'application/json', ...revalidated];
/** For responses that must not be cached: credentials, sessions and momentary state. */
const unstored = ['Cache-Control', 'no-store', ...apiFields];
const unstoredJson = ['Content-Type', 'application/json', ...unstored];
const unstoredProblem = ['Content-Type', 'application/problem+json', ...unstored];

/**
 * Responds with a representation (JSON text) and its entity tag, if any. `fields` are the names and
 * values of headers in turn.
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
 * Responds 304 (RFC 9110 §15.4.5): the caller has this representation. `fields` are its headers
 * that caches need.
 */
export function notModified(tag: string, fields: readonly string[] = []): Reply {
  return { status: 304, fields: [...revalidated, 'ETag', tag, ...fields], body: undefined };
}

export function unstoredReply(
  status: 200 | 201,
  body: string,
  fields: readonly string[] = [],
): Reply {
  return { status, fields: [...unstoredJson, ...fields], body };
}

/**
 * Responds with server-sent events (WHATWG HTML §9.2). `X-Accel-Buffering` keeps nginx from
 * buffering them.
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

/** Responds with the problem details of an error (RFC 9457), and the headers that belong to it. */
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

/** The codes that a challenge also names (RFC 6750 §3.1). */
const challenged = new Set<string>(['invalid_token', 'insufficient_scope']);

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
