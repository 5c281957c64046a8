/**
 * The closed set of operating errors, which callers, disks and load may cause. A response
 * shows the code, which is stable. `src/api/problems.ts` gives each one its status and
 * title.
 */
// prettier-ignore
export type ErrorCode =
  // The request cannot be read.
  | 'malformed_request' | 'malformed_json' | 'invalid_query'
  // The caller is unknown, or is not allowed to do this.
  | 'authentication_required' | 'invalid_token' | 'invalid_session' | 'invalid_credentials' | 'insufficient_scope'
  | 'session_required' | 'not_owner' | 'actor_changed' | 'cross_site'
  // The request can be read, and cannot be fulfilled.
  | 'not_found' | 'method_not_allowed' | 'not_acceptable' | 'request_timeout' | 'email_taken' | 'last_admin'
  | 'precondition_failed' | 'content_too_large' | 'unsupported_media_type' | 'expectation_failed'
  | 'misdirected_request' | 'validation_failed' | 'key_reused' | 'write_refused' | 'precondition_required'
  | 'too_many_requests' | 'fields_too_large'
  // The server cannot do this now, or does not support it.
  | 'internal' | 'not_implemented' | 'overloaded' | 'draining' | 'store_failed' | 'outcome_unknown'
  | 'store_unavailable' | 'http_version_not_supported' | 'storage_full';

/** One validation failure. `pointer` is a JSON Pointer (RFC 6901) into the body. */
export interface Issue {
  readonly pointer: string;
  /** Stable and in lower case, such as `required`, `too_long`, `unknown_field`. */
  readonly code: string;
  /**
   * A verb phrase such as "must be …" for a person, without a full stop and without
   * secrets.
   */
  readonly detail: string;
}

export interface CairnErrorOptions {
  readonly issues?: readonly Issue[];
  /** How long the caller should wait before it tries again, in whole seconds. */
  readonly retryAfterSeconds?: number;
  /** Fields that belong in the reply, names and values in turn, such as `Allow`. */
  readonly fields?: readonly string[];
  readonly cause?: unknown;
}

/**
 * An operating error: expected, handled, and shown to the caller as problem details.
 * `message` has the form "Cannot <do what>: <what is wrong>", and never has a secret, a
 * stack or a server's path.
 */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  readonly code: ErrorCode;
  readonly issues: readonly Issue[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly fields: readonly string[];

  constructor(code: ErrorCode, message: string, options: CairnErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.issues = options.issues;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.fields = options.fields ?? [];
  }
}

/**
 * A bug in Cairn or in the program that embeds it. Input and the machine never cause it.
 */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws `InvariantError` with `message` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/**
 * Marks code that the types show to be unreachable. A new member of a union does not
 * compile here.
 */
export function unreachable(value: never): never {
  throw new InvariantError(`Cannot go on: unexpected ${JSON.stringify(value)}`);
}
