/**
 * The closed set of operating errors: what callers, disks and load may cause, and what a caller is told by its
 * stable `code`. `src/api/problems.ts` gives each one its status and title.
 */
export type ErrorCode =
  // The request cannot be understood.
  | 'malformed_request' | 'malformed_json' | 'invalid_query'
  // Who is calling, and what they may do.
  | 'authentication_required' | 'invalid_token' | 'invalid_session' | 'invalid_credentials' | 'insufficient_scope'
  | 'session_required' | 'not_owner' | 'actor_changed' | 'cross_site'
  // What is asked for.
  | 'not_found' | 'method_not_allowed' | 'not_acceptable' | 'request_timeout' | 'email_taken' | 'last_admin'
  | 'precondition_failed' | 'content_too_large' | 'unsupported_media_type' | 'expectation_failed'
  | 'misdirected_request' | 'validation_failed' | 'key_reused' | 'write_refused' | 'precondition_required'
  | 'too_many_requests' | 'fields_too_large'
  // What the server cannot do now, or at all.
  | 'internal' | 'not_implemented' | 'overloaded' | 'draining' | 'store_failed' | 'outcome_unknown'
  | 'store_unavailable' | 'http_version_not_supported' | 'storage_full';

/** What is wrong with one field of a body. `pointer` is a JSON Pointer (RFC 6901) into the body. */
export interface Issue {
  readonly pointer: string;
  /** Stable and in lower case, such as `required`, `too_long`, `unknown_field`. */
  readonly code: string;
  /** For a person; begins with a verb phrase such as "must be …", has no full stop and quotes no secret. */
  readonly detail: string;
}

export interface CairnErrorOptions {
  readonly issues?: readonly Issue[];
  /** When it is worth trying again, in whole seconds from now. */
  readonly retryAfterSeconds?: number;
  /** Fields that belong in the reply, names and values in turn, such as `Allow`. */
  readonly fields?: readonly string[];
  readonly cause?: unknown;
}

/**
 * An operating error: expected, handled, and shown to the caller as problem details. `message` follows one grammar,
 * "Cannot <do what>: <what is wrong>", and never carries a secret, a stack or a path of the server.
 */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  readonly code: ErrorCode;
  readonly issues: readonly Issue[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly fields: readonly string[];

  constructor(code: ErrorCode, message: string, options: CairnErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.issues = options.issues;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.fields = options.fields ?? [];
  }
}

/** A broken invariant: a bug of Cairn's or its embedder's, never something that input or the machine may cause. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws `InvariantError` with `message` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Marks a place that the types show to be unreachable; a new member of a union stops the compiler here. */
export function unreachable(value: never): never {
  throw new InvariantError(`Cannot go on: unexpected ${JSON.stringify(value)}`);
}
