import type { Access } from '../auth/access.ts';
import type { ErrorCode } from '../base/errors.ts';
import type { Route } from './route.ts';

/** What any request may meet before its route matters, and what a server may meet at any time. */
const always: readonly ErrorCode[] = [
  'malformed_request',
  'invalid_query',
  'request_timeout',
  'expectation_failed',
  'misdirected_request',
  'fields_too_large',
  'internal',
  'not_implemented',
  'overloaded',
  'draining',
  'http_version_not_supported',
];

const byAccess: { readonly [access in Access]: readonly ErrorCode[] } = {
  public: [],
  optional: ['invalid_token', 'invalid_session'],
  user: ['authentication_required', 'invalid_token', 'invalid_session'],
  admin: ['authentication_required', 'invalid_token', 'invalid_session', 'insufficient_scope'],
  self: ['authentication_required', 'invalid_token', 'invalid_session'],
  owner: ['authentication_required', 'invalid_token', 'invalid_session', 'not_owner'],
  session: ['authentication_required', 'invalid_token', 'invalid_session', 'session_required'],
};

const ofBodies: readonly ErrorCode[] = [
  'malformed_json',
  'content_too_large',
  'unsupported_media_type',
  'validation_failed',
];

const ofWrites: readonly ErrorCode[] = ['storage_full', 'store_failed', 'outcome_unknown', 'cross_site'];

/** Every problem that a route can answer with: what its columns imply, and what the row says itself. */
export function problemsOf(route: Route): ReadonlySet<ErrorCode> {
  const { access, method, path, body, conditional = false, reply, problems = [] } = route;
  const writes = method !== 'GET';
  return new Set([
    ...always,
    ...byAccess[access],
    ...(path.includes('{id}') ? (['not_found'] as const) : []),
    ...(reply.schema === undefined ? [] : (['not_acceptable'] as const)),
    ...(body === undefined ? [] : ofBodies),
    ...(writes ? ofWrites : []),
    ...(conditional ? (['precondition_failed'] as const) : []),
    ...(conditional && writes ? (['precondition_required'] as const) : []),
    ...problems,
  ]);
}
