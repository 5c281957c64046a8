// @ts-check
/** Calls of the server's API (see /openapi.json) with this browser's session cookie. */

/** @typedef {{ id: number, [field: string]: string | number }} Row one record of a collection */
/** @typedef {{ id: number, name: string, email: string, role: 'admin' | 'member' }} User */

const answerTimeoutMs = 30_000;

/** A refusal of the server, or no answer at all. The message says what happened and what to do. */
export class Problem extends Error {
  /** @type {readonly { pointer: string, code: string, detail: string }[]} */
  issues = [];
}

/**
 * Makes one call. A lost update (412) is an answer like others; a session that is no more is told to the window, too.
 * @param {string} method @param {string} path
 * @param {{ body?: object | null, ifMatch?: string, signal?: AbortSignal }} [options]
 * @throws {Problem} and `AbortError` once `signal` is aborted
 */
export async function call(method, path, { body = null, ifMatch = '', signal } = {}) {
  const headers = new Headers({ Accept: 'application/json, application/problem+json' });
  if (method === 'GET') headers.set('Prefer', 'count=exact');
  if (body !== null) headers.set('Content-Type', 'application/json');
  if (ifMatch !== '') headers.set('If-Match', ifMatch);
  const signals = AbortSignal.any([AbortSignal.timeout(answerTimeoutMs), ...(signal === undefined ? [] : [signal])]);
  let response;
  let data;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal: signals });
    const text = await response.text();
    data = /json/u.test(response.headers.get('Content-Type') ?? '') ? JSON.parse(text) : undefined;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    const doubt = method === 'GET' ? '' : ' Whether the change was made is not known: look before you repeat it.';
    throw new Problem(`The server did not answer.${doubt} Check your network, and that it runs; then try again.`);
  }
  const { ok, status } = response;
  if (!ok && status !== 412) {
    if (status === 401 && path !== '/login') window.dispatchEvent(new Event('sessionended'));
    throw Object.assign(new Problem(advice(response, data?.detail)), { issues: data?.errors ?? [] });
  }
  const [, cursor = ''] = /[?&]cursor=([^&>]*)[^>]*>; rel="next"/u.exec(response.headers.get('Link') ?? '') ?? [];
  return {
    status,
    data,
    etag: response.headers.get('ETag') ?? '',
    /** The cursor of the next page; `''` after the last one. */
    next: decodeURIComponent(cursor),
    /** How many records there are on all pages together. */
    total: Number(response.headers.get('X-Total-Count') ?? NaN),
  };
}

/** @type {(response: Response, detail?: string) => string} */
function advice({ status, headers }, detail = `The server answered ${status} without an explanation`) {
  const seconds = Number(headers.get('Retry-After') ?? 0);
  if (seconds > 0) return `${detail}. Try again in ${seconds} seconds.`;
  return status < 500 ? `${detail}.` : `${detail}. Try again; if it stays so, tell whoever looks after the server.`;
}
