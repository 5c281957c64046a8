import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { repeatedField, type Fields } from './fields.ts';
import type { Request } from './message.ts';

/** The caller of `checkHead` closes the connection after such an error: what follows on it cannot be trusted. */
function malformed(what: string): CairnError {
  return new CairnError('malformed_request', `Cannot read the request: ${what}`);
}

/**
 * Checks a head once, before anything acts on it, for what Node's parser lets through and a server must refuse
 * (RFC 9112, RFC 9110 §7.2): each is a way to make two servers in a row disagree about where a message ends, to whom it
 * goes, or what it asks for. The target may have any form (RFC 9112 §3.2), and comes back in origin-form, or as the `*`
 * of `OPTIONS *`; `contentLength` is the announced one, 0 where nothing is, and `undefined` for chunked content.
 * @throws CairnError `malformed_request`, `fields_too_large`, `misdirected_request`, `not_implemented`,
 *   `http_version_not_supported`, `expectation_failed`
 */
export function checkHead({ method, target, fields }: Pick<Request, 'method' | 'target' | 'fields'>, version: string) {
  if (version !== '1.1' && version !== '1.0') {
    throw new CairnError('http_version_not_supported', 'Cannot read the request: its HTTP version is not 1.0 or 1.1');
  }
  if (fields.raw.length > 2 * limits.fieldsCountMax) {
    throw new CairnError('fields_too_large', `Cannot read the request: it has over ${limits.fieldsCountMax} fields`);
  }
  const repeated = repeatedField(fields.raw);
  if (repeated !== undefined) throw malformed(`the field ${repeated} occurs twice`);
  const host = fields.get('host');
  const isAddressed = host === undefined ? version === '1.0' : authority.test(host);
  if (!isAddressed) throw malformed('its Host is absent or malformed');
  const expectation = fields.get('expect');
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') {
    throw new CairnError('expectation_failed', 'Cannot meet the expectation: only 100-continue is known');
  }
  const contentLength = checkFraming(method, version, fields);
  return { target: originForm.test(target) ? target : otherForm(method, target, host), contentLength };
}

/** RFC 9112 §6: the announced length, 0 where nothing is announced, `undefined` for chunked content. */
function checkFraming(method: string, version: string, fields: Fields): number | undefined {
  const coding = fields.get('transfer-encoding');
  const length = fields.get('content-length');
  if (coding === undefined && length === undefined) return 0;
  if (coding !== undefined) {
    if (length !== undefined) throw malformed('it has both Transfer-Encoding and Content-Length');
    if (version === '1.0') throw malformed('Transfer-Encoding is unknown to HTTP/1.0');
    if (coding.toLowerCase() !== 'chunked') {
      if (!/,[\t ]*chunked$/i.test(coding)) throw malformed('its Transfer-Encoding does not end in chunked');
      throw new CairnError('not_implemented', 'Cannot read the body: its only transfer coding may be chunked');
    }
  } else if (!/^\d{1,15}$/.test(length ?? '')) {
    throw malformed('its Content-Length is malformed');
  }
  const contentLength = coding === undefined ? Number(length) : undefined;
  if ((method === 'GET' || method === 'HEAD') && contentLength !== 0) throw malformed(`${method} takes no content`);
  return contentLength;
}

const authority = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+;=%-]+)(?::\d{0,5})?$/;

/** Visible ASCII without "#"; where a "%" stands in the path, two hexadecimal digits follow. */
const originForm = /^\/(?:[^\0-\x20#%?\x7f-\uffff]|%[0-9A-Fa-f]{2})*(?:\?[^\0-\x20#\x7f-\uffff]*)?$/;

/** RFC 9112 §3.2.2 absolute-form, which every server must accept, and §3.2.4 `OPTIONS *`. */
function otherForm(method: string, target: string, host: string | undefined): string {
  if (target === '*' && method === 'OPTIONS') return target;
  const [, named, rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target) ?? [];
  const inner = rest.startsWith('/') ? rest : `/${rest}`;
  if (named === undefined || !originForm.test(inner)) throw malformed('its target is malformed');
  if (named.toLowerCase() !== (host ?? named).toLowerCase()) {
    throw new CairnError('misdirected_request', 'Cannot answer for this target: its authority is not that of Host');
  }
  return inner;
}

/**
 * The parameters of a query by name, each with all of its values in order: that one is repeated stays visible. A value
 * is what stands between its commas: one that is percent-encoded is a part's own (RFC 6570 §3.2.8, "form").
 */
export type Query = ReadonlyMap<string, readonly (readonly string[])[]>;

const empty: Query = new Map();

/**
 * Parses a query without its "?", in the form that browsers and `URLSearchParams` send
 * (application/x-www-form-urlencoded, WHATWG URL §5.1), but strictly.
 * @throws CairnError `invalid_query` for a bad percent-encoding or invalid UTF-8
 */
export function parseQuery(query: string): Query {
  if (query === '') return empty;
  const parameters = new Map<string, string[][]>();
  for (const piece of query.split('&')) {
    if (piece === '') continue;
    const equals = `${piece}=`.indexOf('=');
    const name = decode(piece.slice(0, equals));
    const value = piece.slice(equals + 1).split(',').map(decode);
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    throw new CairnError('invalid_query', 'Cannot read the query: it is not percent-encoded UTF-8', { cause });
  }
}
