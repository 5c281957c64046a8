import type { Fields } from './fields.ts';

// prettier-ignore
const exposed = [
  'Content-Location', 'ETag', 'Idempotency-Replayed', 'Link', 'Location', 'Preference-Applied', 'Retry-After',
  'X-Request-Id', 'X-Total-Count',
].join(', ');
// prettier-ignore
const accepted = [
  'Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-None-Match', 'Last-Event-ID', 'Prefer',
  'X-Request-Id', 'traceparent',
].join(', ');

/**
 * Returns the fields, names and values in turn, that let a page of an allowed origin read
 * the reply (Fetch §3.3). A browser's cookies are never allowed. If any origin is
 * allowed, `Vary` names `Origin` in every reply.
 */
export function corsFields(
  fields: Fields,
  allowedOrigins: ReadonlySet<string> | undefined,
): readonly string[] {
  if (!allowedOrigins?.size) return [];
  const origin = fields.get('origin');
  if (origin === undefined || !allowedOrigins.has(origin)) return ['Vary', 'Origin'];
  return [
    'Vary',
    'Origin',
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposed,
  ];
}

/**
 * Returns what the reply to OPTIONS carries for a CORS preflight (Fetch §4.8) of an allowed
 * origin, beside `corsFields`. `allow` is the value of the `Allow` field.
 */
export function preflightFields(
  fields: Fields,
  allowedOrigins: ReadonlySet<string>,
  allow: string,
): readonly string[] {
  if (!allowedOrigins.has(fields.get('origin') ?? '')) return [];
  const always = ['Access-Control-Allow-Headers', accepted, 'Access-Control-Max-Age', '600'];
  return ['Access-Control-Allow-Methods', allow, ...always];
}
