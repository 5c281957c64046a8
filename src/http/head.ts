import { CairnError, type ErrorCode } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Fields } from './fields.ts';
import type { Request } from './message.ts';

export interface Head {
  /**
   * In origin-form without the base path (empty for that path itself), or the `*` of `OPTIONS *`.
   */
  readonly target: string;
  /** The announced length of the content; 0 without content, `undefined` if chunked. */
  readonly contentLength: number | undefined;
}

/**
 * Checks a head once, before it is used, for input that Node's parser accepts and a server must
 * refuse (RFC 9112, RFC 9110 §7.2). Otherwise a proxy and this server might disagree about the end
 * of a message, its host or its target. The target may have any form (RFC 9112 §3.2).
 * @throws CairnError `malformed_request`, `fields_too_large`, `misdirected_request`,
 *   `not_implemented`, `http_version_not_supported`, `expectation_failed`. The connection must then
 *   be closed, because the bytes that follow cannot be trusted.
 */
export function checkHead(
  request: Pick<Request, 'method' | 'target' | 'fields' | 'basePath'>,
  version: string,
): Head {
  const { method, fields, basePath } = request;
  if (version !== '1.1' && version !== '1.0') {
    throw unreadable('http_version_not_supported', 'its HTTP version must be 1.0 or 1.1');
  }
  const countMax = limits.fieldsCountMax;
  if (fields.raw.length > 2 * countMax) {
    throw unreadable('fields_too_large', `it has over ${countMax} fields`);
  }
  if (fields.repeated !== undefined) throw malformed(`the field ${fields.repeated} occurs twice`);
  const host = fields.get('host');
  const hasHost = host === undefined ? version === '1.0' : authority.test(host);
  if (!hasHost) throw malformed('its Host field is missing or malformed');
  const expectation = fields.get('expect')?.toLowerCase() ?? '100-continue';
  if (expectation !== '100-continue')
    throw unreadable('expectation_failed', 'the only supported expectation is 100-continue');
  const contentLength = readContentLength(fields, version);
  if (isRead(method) && (contentLength ?? 0) > 0) throw contentOfRead;
  const isOriginForm = originForm.test(request.target);
  const target = isOriginForm ? request.target : otherForm(method, request.target, host);
  // Some proxies and frameworks remove the base path themselves.
  const inner = target.startsWith(basePath) ? target.slice(basePath.length) : target;
  return { target: inner === '' || inner.startsWith('/') ? inner : target, contentLength };
}

function unreadable(code: ErrorCode, detail: string): CairnError {
  return new CairnError(code, `Cannot read the request: ${detail}`);
}

const malformed = (detail: string): CairnError => unreadable('malformed_request', detail);

/** GET and HEAD have no content, except for an empty chunked body. */
export const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

export const contentOfRead = malformed('GET and HEAD must not have content');

/** RFC 9112 §6. */
function readContentLength(fields: Fields, version: string): number | undefined {
  const coding = fields.get('transfer-encoding')?.toLowerCase();
  const length = fields.get('content-length');
  if (coding === undefined) {
    if (!/^\d{1,15}$/.test(length ?? '0')) throw malformed('its Content-Length is malformed');
    return Number(length ?? 0);
  }
  if (length !== undefined) throw malformed('it has both Transfer-Encoding and Content-Length');
  if (version === '1.0') throw malformed('HTTP/1.0 has no Transfer-Encoding');
  if (coding === 'chunked') return undefined;
  if (/,[\t ]*chunked$/.test(coding)) {
    throw unreadable('not_implemented', 'the only supported transfer coding is chunked');
  }
  throw malformed('its Transfer-Encoding does not end in chunked');
}

const authority = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+;=%-]+)(?::\d{0,5})?$/;

/** Visible ASCII without "#". In the path, each "%" is followed by two hexadecimal digits. */
const originForm =
  /^\/(?:[^\0-\x20#%?\x7f-\uffff]|%[0-9A-Fa-f]{2})*(?:\?[^\0-\x20#\x7f-\uffff]*)?$/;

/**
 * Reads a target in absolute-form (RFC 9112 §3.2.2), which every server must accept, or the
 * asterisk-form of OPTIONS (§3.2.4).
 */
function otherForm(method: string, target: string, host: string | undefined): string {
  if (target === '*' && method === 'OPTIONS') return target;
  const [, scheme = '', named, rest = ''] = /^(https?):\/\/([^/?#]*)(.*)$/i.exec(target) ?? [];
  const inner = rest.startsWith('/') ? rest : `/${rest}`;
  if (named === undefined || !originForm.test(inner)) throw malformed('its target is malformed');
  const own = withoutDefaultPort(scheme, host ?? named);
  if (withoutDefaultPort(scheme, named) !== own) {
    throw unreadable('misdirected_request', 'the authority of its target differs from its Host');
  }
  return inner;
}

/** Returns an authority in lower case, without its scheme's default port (RFC 9110 §4.2.3). */
export function withoutDefaultPort(scheme: string, authority: string): string {
  const port = scheme.toLowerCase() === 'https' ? /:(?:443)?$/ : /:(?:80)?$/;
  return authority.toLowerCase().replace(port, '');
}

/**
 * Returns the host of a `Host` field in lower case, without port and brackets (RFC 3986 §3.2.2).
 */
export function toHostName(authority: string): string {
  return authority
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}
