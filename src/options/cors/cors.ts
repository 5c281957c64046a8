import type { Origins } from '../../http/cross-site.ts';
import type { Cors } from '../../http/server-options.ts';

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
const maxAge = ['Access-Control-Max-Age', '600'];

/**
 * Lets pages of these origins read responses (Fetch §3.3), with the fields used here but without a
 * browser's cookies. With `isOpen`, on a server without authentication, pages may send both, as
 * many front ends do to every server. The only `Vary` of a response names `Origin`.
 */
export function createCors(allowed: Origins, { isOpen = false } = {}): Cors {
  const credentials = isOpen ? ['Access-Control-Allow-Credentials', 'true'] : [];
  return {
    withCors(reply, request) {
      const at = reply.indexOf('Vary') + 1;
      const varying =
        at === 0 ? [...reply, 'Vary', 'Origin'] : reply.with(at, `${reply[at] ?? ''}, Origin`);
      const origin = request.get('origin') ?? '';
      if (!allowed.has(origin)) return varying;
      const named = ['Access-Control-Allow-Origin', origin, ...credentials];
      return [...varying, ...named, 'Access-Control-Expose-Headers', exposed];
    },
    preflight(request, allow) {
      if (!allowed.has(request.get('origin') ?? '')) return [];
      const asked = isOpen ? request.get('access-control-request-headers') : undefined;
      const headers = ['Access-Control-Allow-Headers', asked ?? accepted];
      return ['Access-Control-Allow-Methods', allow, ...headers, ...maxAge];
    },
  };
}
