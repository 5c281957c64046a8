import type { Issue } from '../base/errors.ts';
import type { Reply } from './message.ts';

/**
 * What every reply of an API carries against misuse in a browser: its type is not guessed, it runs nothing, and no
 * other site embeds it. Pages bring their own. HSTS is added where a reply is sent, since
 * only there it is known whether the connection is encrypted.
 */
export const apiFields: readonly string[] = [
  'X-Content-Type-Options',
  'nosniff',
  'Cross-Origin-Resource-Policy',
  'same-origin',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
];

/** A problem in the terms of RFC 9457 §3.1; `code` and `errors` are extension members. */
export interface Problem {
  readonly status: number;
  /** Stable, and the last part of `type`. */
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  /** The id of the request that failed. */
  readonly requestId?: string | undefined;
  readonly errors?: readonly Issue[] | undefined;
}

const problemFields: readonly string[] = [
  'Content-Type',
  'application/problem+json',
  'Cache-Control',
  'no-store',
  ...apiFields,
];

/** Builds the reply to a request that failed. `fields` (names and values in turn) are added to the usual ones. */
export function problemReply(problem: Problem, fields: readonly string[] = []): Reply {
  const body = JSON.stringify({
    type: `/openapi.json#/components/responses/${problem.code}`,
    title: problem.title,
    status: problem.status,
    detail: problem.detail,
    instance: problem.requestId === undefined ? undefined : `urn:uuid:${problem.requestId}`,
    code: problem.code,
    errors: problem.errors,
  });
  return { status: problem.status, fields: [...problemFields, ...fields], body };
}
