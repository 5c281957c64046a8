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
 * Returns the fields of a reply, names and values in turn, with those that let a page of an
 * allowed origin read it (Fetch §3.3). A browser's cookies are never allowed. If any origin is
 * allowed, the one `Vary` of every reply names `Origin`.
 */
export function withCors(
  reply: readonly string[],
  request: Fields,
  allowedOrigins: ReadonlySet<string> | undefined,
): readonly string[] {
  if (!allowedOrigins?.size) return reply;
  const at = reply.indexOf('Vary') + 1;
  const varying =
    at === 0 ? [...reply, 'Vary', 'Origin'] : reply.with(at, `${reply[at] ?? ''}, Origin`);
  const origin = request.get('origin');
  if (origin === undefined || !allowedOrigins.has(origin)) return varying;
  return [
    ...varying,
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposed,
  ];
}

/**
 * Returns what the reply to OPTIONS carries for a CORS preflight (Fetch §4.8) of an allowed
 * origin, beside `withCors`. `allow` is the value of the `Allow` field.
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
