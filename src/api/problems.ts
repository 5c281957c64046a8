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

const ofCredentials = ['invalid_token', 'invalid_session'] as const;
const ofSignedIn = ['authentication_required', ...ofCredentials] as const;

const byAccess: { readonly [access in Access]: readonly ErrorCode[] } = {
  public: [],
  optional: ofCredentials,
  user: ofSignedIn,
  admin: [...ofSignedIn, 'insufficient_scope'],
  self: ofSignedIn,
  owner: [...ofSignedIn, 'not_owner'],
  session: [...ofSignedIn, 'session_required'],
};

const ofBodies = ['malformed_json', 'content_too_large', 'unsupported_media_type', 'validation_failed'] as const;
const ofWrites = ['storage_full', 'store_failed', 'outcome_unknown', 'cross_site'] as const;

/** Every problem that a route can answer with: what its columns imply, and what the row says itself. */
export function problemsOf(route: Route): ReadonlySet<ErrorCode> {
  const { access, method, path, body, conditional = false, requireIfMatch = false, reply, problems = [] } = route;
  const writes = method !== 'GET';
  const where = (holds: boolean, ...codes: readonly ErrorCode[]) => (holds ? codes : []);
  return new Set([
    ...always,
    ...byAccess[access],
    ...where(path.includes('{id}'), 'not_found'),
    ...where(reply.schema !== undefined, 'not_acceptable'),
    ...where(body !== undefined, ...ofBodies),
    ...where(writes, ...ofWrites),
    ...where(conditional || writes, 'precondition_failed'),
    ...where(requireIfMatch, 'precondition_required'),
    ...problems,
  ]);
}
