import type { Fields } from './fields.ts';

/** Whether a method only reads (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/**
 * Whether another site's page made this request. Browsers say so in `Sec-Fetch-Site` (W3C Fetch Metadata), older ones
 * in `Origin` (RFC 6454 §7) alone; a caller that sends neither is no browser, and no page can make it send a cookie.
 * `allowedOrigins` are origins as browsers serialize them, such as `https://app.example`.
 */
export function isCrossSite(fields: Fields, allowedOrigins: ReadonlySet<string>): boolean {
  const origin = fields.get('origin');
  if (origin !== undefined && allowedOrigins.has(origin)) return false;
  const site = fields.get('sec-fetch-site');
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !isOwnOrigin(origin, fields.get('host'));
}

/** The scheme is not compared: behind a proxy that ends TLS, the server sees another one than the browser. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const authority = /^https?:\/\/([^/]+)$/.exec(origin)?.[1];
  return authority !== undefined && authority.toLowerCase() === host?.toLowerCase();
}

/** The host of a `Host` field without its port and brackets (RFC 3986 §3.2.2), in lower case. */
export function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
}

const exposed = 'ETag, Idempotency-Replayed, Link, Location, Retry-After, X-Request-Id, X-Total-Count';
const accepted =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Prefer, X-Request-Id, traceparent';

/**
 * The fields that let a page of an allowed origin read the reply (Fetch §3.3), in raw form; credentials of the
 * browser (cookies) are never allowed. Where any origin is allowed, `Vary` names `Origin` even for those that are not.
 */
export function corsFields(fields: Fields, allowedOrigins: ReadonlySet<string>): readonly string[] {
  if (allowedOrigins.size === 0) return [];
  const origin = fields.get('origin');
  if (origin === undefined || !allowedOrigins.has(origin)) return ['Vary', 'Origin'];
  return ['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposed];
}

/** Whether this is a CORS preflight (Fetch §4.8): OPTIONS that asks for a method on behalf of an origin. */
export function isPreflight(method: string, fields: Fields): boolean {
  const sent = (name: string): boolean => fields.get(name) !== undefined;
  return method === 'OPTIONS' && sent('origin') && sent('access-control-request-method');
}

/** What the answer to a preflight carries beside `corsFields`; `allow` is the value of the `Allow` field. */
export function preflightFields(allow: string): readonly string[] {
  const always = ['Access-Control-Allow-Headers', accepted, 'Access-Control-Max-Age', '600'];
  return ['Access-Control-Allow-Methods', allow, ...always];
}
