import { CairnError, type ErrorCode } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Fields } from './fields.ts';
import type { Request } from './message.ts';

/** What the head of a request comes down to. */
export interface Head {
  /** In origin-form, or the `*` of `OPTIONS *`. */
  readonly target: string;
  /** The announced length of the content, 0 where nothing is announced; `undefined` for chunked content. */
  readonly contentLength: number | undefined;
}

/**
 * Checks a head once, before anything acts on it, for what Node's parser lets through and a server must refuse
 * (RFC 9112, RFC 9110 §7.2): each is a way to make two servers in a row disagree about where a message ends, to whom it
 * goes, or what it asks for. The target may have any form (RFC 9112 §3.2).
 * @throws CairnError `malformed_request`, `fields_too_large`, `misdirected_request`, `not_implemented`,
 *   `http_version_not_supported`, `expectation_failed`; the connection has to be closed then, since what follows cannot
 *   be trusted
 */
export function checkHead(request: Pick<Request, 'method' | 'target' | 'fields'>, version: string): Head {
  const { method, target, fields } = request;
  if (version !== '1.1' && version !== '1.0') {
    throw unreadable('http_version_not_supported', 'its HTTP version is not 1.0 or 1.1');
  }
  const countMax = limits.fieldsCountMax;
  if (fields.raw.length > 2 * countMax) throw unreadable('fields_too_large', `it has over ${countMax} fields`);
  if (fields.repeated !== undefined) throw malformed(`the field ${fields.repeated} occurs twice`);
  const host = fields.get('host');
  const isAddressed = host === undefined ? version === '1.0' : authority.test(host);
  if (!isAddressed) throw malformed('its Host is absent or malformed');
  const expectation = fields.get('expect') ?? continueExpectation;
  if (expectation.toLowerCase() !== continueExpectation) {
    throw unreadable('expectation_failed', `its only expectation may be ${continueExpectation}`);
  }
  const contentLength = contentLengthOf(fields, version);
  if ((method === 'GET' || method === 'HEAD') && contentLength !== 0) throw malformed(`${method} takes no content`);
  return { target: originForm.test(target) ? target : otherForm(method, target, host), contentLength };
}

function unreadable(code: ErrorCode, what: string): CairnError {
  return new CairnError(code, `Cannot read the request: ${what}`);
}

const malformed = (what: string): CairnError => unreadable('malformed_request', what);

const continueExpectation = '100-continue';

/** RFC 9112 §6. */
function contentLengthOf(fields: Fields, version: string): number | undefined {
  const coding = fields.get('transfer-encoding')?.toLowerCase();
  const length = fields.get('content-length');
  if (coding === undefined) {
    if (!/^\d{1,15}$/.test(length ?? '0')) throw malformed('its Content-Length is malformed');
    return Number(length ?? 0);
  }
  if (length !== undefined) throw malformed('it has both Transfer-Encoding and Content-Length');
  if (version === '1.0') throw malformed('Transfer-Encoding is unknown to HTTP/1.0');
  if (coding === 'chunked') return undefined;
  if (/,[\t ]*chunked$/.test(coding)) throw unreadable('not_implemented', 'its only transfer coding may be chunked');
  throw malformed('its Transfer-Encoding does not end in chunked');
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
    throw unreadable('misdirected_request', 'the authority of its target is not that of Host');
  }
  return inner;
}

/** The decoded values of each query parameter in order, by name: repetition stays visible. */
export type Query = ReadonlyMap<string, readonly string[]>;

const empty: Query = new Map();

/**
 * Parses a query without its "?", in the form that browsers and `URLSearchParams` send
 * (application/x-www-form-urlencoded, WHATWG URL §5.1), but strictly.
 * @throws CairnError `invalid_query` for a bad percent-encoding or invalid UTF-8
 */
export function parseQuery(query: string): Query {
  if (query === '') return empty;
  checkEncoding(query);
  const parameters = new Map<string, string[]>();
  // A "?" at its beginning would be dropped.
  for (const [name, value] of new URLSearchParams(`&${query}`)) {
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}

/** `URLSearchParams` replaces what is malformed. @throws CairnError `invalid_query` */
function checkEncoding(query: string): void {
  try {
    decodeURIComponent(query);
  } catch (cause) {
    throw new CairnError('invalid_query', 'Cannot read the query: it is not percent-encoded UTF-8', { cause });
  }
}
