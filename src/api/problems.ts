import type { ErrorCode } from '../base/errors.ts';

/**
 * What each operating error looks like from outside; the title is the same for every occurrence (RFC 9457 §3.1.3).
 * Total: a new code does not compile until it stands here.
 */
export const problems: Record<ErrorCode, { readonly status: number; readonly title: string }> = {
  malformed_request: { status: 400, title: 'The request is malformed' },
  malformed_json: { status: 400, title: 'The body is not acceptable JSON' },
  invalid_query: { status: 400, title: 'The query is not understood' },
  authentication_required: { status: 401, title: 'Authentication is required' },
  invalid_token: { status: 401, title: 'The bearer token is not valid' },
  invalid_session: { status: 401, title: 'The session has ended' },
  invalid_credentials: { status: 401, title: 'The credentials are not right' },
  insufficient_scope: { status: 403, title: 'The role does not allow this' },
  session_required: { status: 403, title: 'A session cookie is required' },
  not_owner: { status: 403, title: 'Only the owner or an administrator may do this' },
  actor_changed: { status: 403, title: 'The caller was removed, signed out or has another role now' },
  cross_site: { status: 403, title: 'Cross-site requests are not allowed' },
  not_found: { status: 404, title: 'There is no such resource' },
  method_not_allowed: { status: 405, title: 'The resource does not have this method' },
  not_acceptable: { status: 406, title: 'No acceptable representation' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  email_taken: { status: 409, title: 'The e-mail address is taken' },
  last_admin: { status: 409, title: 'The last administrator must stay' },
  precondition_failed: { status: 412, title: 'The resource has changed' },
  content_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  misdirected_request: { status: 421, title: 'The request is for another server' },
  validation_failed: { status: 422, title: 'The body breaks a rule' },
  write_refused: { status: 422, title: 'A rule of this installation refuses the write' },
  precondition_required: { status: 428, title: 'A precondition is required' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  fields_too_large: { status: 431, title: 'The header section is too large' },
  internal: { status: 500, title: 'The server failed' },
  not_implemented: { status: 501, title: 'The server does not implement this' },
  overloaded: { status: 503, title: 'The server is busy' },
  draining: { status: 503, title: 'The server is stopping' },
  store_failed: { status: 503, title: 'The store has stopped writing' },
  outcome_unknown: { status: 503, title: 'Whether the write was stored is unknown' },
  http_version_not_supported: { status: 505, title: 'The HTTP version is not supported' },
  storage_full: { status: 507, title: 'The storage is full' },
};
