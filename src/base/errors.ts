import { inspect, types } from 'node:util';

/**
 * The closed set of operating errors, caused by callers, disks or load. A problem shows the stable
 * code, its status and its title, which never varies (RFC 9457 §3.1.3).
 */
// prettier-ignore
export const problems = {
  malformed_request: [400, 'The request is malformed'],
  malformed_json: [400, 'The body is not valid JSON'],
  invalid_query: [400, 'The query is not valid'],
  authentication_required: [401, 'Authentication is required'],
  invalid_token: [401, 'The bearer token is not valid'],
  invalid_session: [401, 'The session has ended'],
  invalid_credentials: [401, 'The credentials are wrong'],
  insufficient_scope: [403, 'Your role does not allow this operation'],
  session_required: [403, 'A session cookie is required'],
  not_owner: [403, 'Only the owner or an administrator may do this'],
  actor_changed: [403, 'The user was removed, signed out or given another role'],
  cross_site: [403, 'Cross-site requests are not allowed'],
  not_found: [404, 'There is no such resource'],
  method_not_allowed: [405, 'The method is not allowed'],
  request_timeout: [408, 'The request took too long to arrive'],
  other_user: [409, 'The session belongs to another user'],
  email_taken: [409, 'The e-mail address is taken'],
  not_unique: [409, 'A value is not unique'],
  still_referenced: [409, 'Other records refer to the record'],
  last_admin: [409, 'The last administrator cannot be removed'],
  conflict: [409, 'The state of a resource does not allow the request'],
  precondition_failed: [412, 'The resource has changed'],
  content_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The media type is not supported'],
  expectation_failed: [417, 'The expectation cannot be met'],
  misdirected_request: [421, 'The request is for another server'],
  validation_failed: [422, 'The body is not valid'],
  key_reused: [422, 'The idempotency key belongs to another request'],
  write_refused: [422, 'A rule of this installation does not allow the write'],
  precondition_required: [428, 'A precondition is required'],
  too_many_requests: [429, 'Too many requests'],
  fields_too_large: [431, 'The header section is too large'],
  internal: [500, 'The server has an internal error'],
  not_implemented: [501, 'The server does not support this'],
  overloaded: [503, 'The server is busy'],
  draining: [503, 'The server is stopping'],
  store_failed: [503, 'The store has stopped writing'],
  store_unavailable: [503, 'The store cannot be reached'],
  outcome_unknown: [503, 'It is unknown whether the write was stored'],
  http_version_not_supported: [505, 'The HTTP version is not supported'],
  too_many_records: [507, 'You may own no further records'],
  storage_full: [507, 'The storage is full'],
} as const satisfies { readonly [code: string]: readonly [status: number, title: string] };

export type ErrorCode = keyof typeof problems;

/** One validation failure. `pointer` is a JSON Pointer (RFC 6901) into the body. */
export interface Issue {
  readonly pointer: string;
  /** Stable and in lower case, such as `required`, `too_long`, `unknown_field`. */
  readonly code: string;
  /** A verb phrase for people, such as "must be …", without a full stop and without secrets. */
  readonly detail: string;
}

export interface CairnErrorOptions {
  readonly issues?: readonly Issue[];
  /** Whole seconds. */
  readonly retryAfterSeconds?: number;
  /** Header fields of the response, such as `Allow`: names and values in turn. */
  readonly fields?: readonly string[];
  readonly cause?: unknown;
}

/**
 * An operating error: expected, handled, and shown to the caller as problem details. The message
 * has the form "Cannot <do what>: <what is wrong>", and never contains a secret, a stack or a path
 * of the server.
 */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  readonly code: ErrorCode;
  /** The HTTP status. */
  readonly status: number;
  readonly issues: readonly Issue[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly fields: readonly string[];

  constructor(code: ErrorCode, message: string, options: CairnErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.status = problems[code][0];
    this.issues = options.issues;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.fields = options.fields ?? [];
  }
}

/**
 * Turns anything thrown into an error. Never throws, even for a proxy or an object that cannot be
 * converted to a string.
 */
export function toError(thrown: unknown): Error {
  try {
    if (types.isProxy(thrown)) return new Error(inspect(thrown, { showProxy: true }));
    if (thrown instanceof Error) return thrown;
    return new Error(typeof thrown === 'string' ? thrown : inspect(thrown));
  } catch {
    return new Error(unreadable);
  }
}

/** Never throws, whatever was thrown. */
export function readReason(thrown: unknown): string {
  return readText(() => toError(thrown).message);
}

/** Describes values that are not errors. Never throws. */
export function readStack(thrown: unknown): string {
  const error = toError(thrown);
  return readText(() => (error === thrown ? error.stack : error.message));
}

const unreadable = 'what was thrown cannot be read';

/** An error may have members that throw or are not strings. */
function readText(read: () => unknown): string {
  try {
    const text = read();
    return typeof text === 'string' ? text : unreadable;
  } catch {
    return unreadable;
  }
}

/** Exit codes of the process, after sysexits.h. Scripts and service managers rely on them. */
export const exitMeanings = {
  0: 'done',
  64: 'a wrong option, value or argument; nothing was done',
  65: 'a file that cannot be declared or imported (nothing was written), or an incomplete export',
  70: 'a bug in Cairn',
  74: 'a disk, a port or a file failed',
  75: 'another process uses the data directory or port, or continued without this one; start it again',
  78: 'the data or the configuration cannot be used; an operator has to decide',
} as const;
export type ExitCode = keyof typeof exitMeanings;

/** Ends the process. The message says what happened, to what, and what to do next. */
export class FatalError extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** A bug in Cairn or in the program that embeds it, never caused by input or the machine. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
