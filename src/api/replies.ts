import { problems, type CairnError } from '../base/errors.ts';
import { apiFields, type Reply, type StreamedBody } from '../http/message.ts';

/** What the caller may keep only if it asks each time whether it is still right, and shows to nobody else. */
const varying = 'Authorization, Cookie, Accept, Prefer';
const revalidated = ['Cache-Control', 'private, no-cache', 'Vary', varying, ...apiFields];
const revalidatedJson = ['Content-Type', 'application/json', ...revalidated];
/** What nobody keeps: credentials, sessions, what depends on the moment. */
const unstored = ['Cache-Control', 'no-store', ...apiFields];
const unstoredJson = ['Content-Type', 'application/json', ...unstored];
const unstoredProblem = ['Content-Type', 'application/problem+json', ...unstored];

/** A representation with its entity tag, as JSON text. `fields` are names and values in turn. */
export function shown(
  status: 200 | 201,
  tag: string,
  body: string | StreamedBody,
  fields: readonly string[] = [],
): Reply {
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

export function noContent(fields: readonly string[] = [], status: 204 | 201 = 204): Reply {
  return { status, fields: [...unstored, ...fields], body: undefined };
}

/** 303 (RFC 9110 §15.4.4): a browser is sent to another page. */
export function seeOther(location: string): Reply {
  return { status: 303, fields: [...unstored, 'Location', location], body: undefined };
}

/** Problem details (RFC 9457) for an error, with the challenge or the time to wait that belongs to it. */
export function refusal(error: CairnError, requestId: string | undefined, fields: readonly string[] = []): Reply {
  const { status, title } = problems[error.code];
  const own = [...fields];
  if (status === 401) own.push('WWW-Authenticate', error.code === 'invalid_token' ? invalidToken : 'Bearer');
  if (error.code === 'insufficient_scope') own.push('WWW-Authenticate', insufficientScope);
  if (error.retryAfterSeconds !== undefined) own.push('Retry-After', String(error.retryAfterSeconds));
  const { code, message: detail, issues: errors } = error;
  const type = `/openapi.json#/components/responses/${code}`;
  const instance = requestId === undefined ? undefined : `urn:uuid:${requestId}`;
  const body = JSON.stringify({ type, title, status, detail, instance, code, errors });
  return { status, fields: [...unstoredProblem, ...own], body };
}

/** RFC 6750 §3.1. */
const invalidToken = 'Bearer error="invalid_token"';
const insufficientScope = 'Bearer error="insufficient_scope"';
