import type { Fields } from './fields.ts';
import { withoutDefaultPort } from './head.ts';

export type Origins = Pick<ReadonlySet<string>, 'has'>;

/** Returns the origins that options name. `http://localhost:*` stands for every port. */
export function parseOrigins(names: readonly string[]): Origins {
  const allowed = new Set(names);
  const hasAnyPort = names.some((name) => name.endsWith(':*'));
  return {
    has: (origin) =>
      allowed.has(origin) ||
      (hasAnyPort && allowed.has(`${/^\w+:\/\/[^/]*?(?=:\d+$|$)/.exec(origin)?.[0] ?? ''}:*`)),
  };
}

/**
 * True if a page of another site sent this request. Browsers say so in `Sec-Fetch-Site` (W3C Fetch
 * Metadata), older ones only in `Origin` (RFC 6454 §7). A caller that sends neither is not a
 * browser, so no page can make it send a cookie. `allowedOrigins` are serialized as browsers do,
 * such as `https://app.example`.
 */
export function isCrossSite(fields: Fields, allowedOrigins: Origins): boolean {
  const origin = fields.get('origin');
  if (origin !== undefined && allowedOrigins.has(origin)) return false;
  const site = fields.get('sec-fetch-site');
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !isOwnOrigin(origin, fields.get('host'));
}

/** Ignores the scheme: behind a proxy that ends TLS, the server's differs from the browser's. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const [, scheme = '', authority] = /^(https?):\/\/([^/]+)$/.exec(origin) ?? [];
  if (authority === undefined || host === undefined) return false;
  return withoutDefaultPort(scheme, authority) === withoutDefaultPort(scheme, host);
}
