// @ts-check
/** Calls of the server's API (see openapi.json) with this browser's session cookie. Addresses are relative. */

const answerTimeoutMs = 30_000;

/** A request that was refused or not answered. The message says what happened and what to do next. */
export class Problem extends Error {
  /** HTTP status, or 0 without an answer. */ status = 0;
  /** Whether the change may have been made even so. */ isUnknown = false;
  /** @type {readonly { pointer: string, detail: string }[]} */ issues = [];
  /** Whether the same request may succeed a little later. */ isPassing = true;
}

/** `ended` is called when the session has ended; once it resolves, the request is sent again. */
export const session = { ended: async () => {} };

/**
 * Sends one request. A failed precondition (412) is returned, not thrown.
 * @param {string} method @param {string} path
 * @param {{ body?: unknown, fields?: Record<string, string>, signal?: AbortSignal }} [options]
 * @throws {Problem} and `AbortError` once `signal` is aborted
 */
export async function call(method, path, options = {}) {
  const { body, fields, signal } = options;
  const isRead = method === 'GET';
  const type = 'application/json';
  const headers = { Accept: `${type}, application/problem+json`, 'Content-Type': type, ...fields };
  const timeout = AbortSignal.timeout(answerTimeoutMs);
  const init = {
    method, headers, body: JSON.stringify(body) ?? null, signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
  };
  let response;
  let data;
  try {
    response = await fetch(path, init);
    const text = await response.text();
    data = text && JSON.parse(text);
  } catch (error) {
    if (signal?.aborted) throw error;
    const doubt = isRead ? '' : ' It is not known whether the change was made.';
    throw Object.assign(new Problem(`The server did not answer.${doubt} Check your network.`), { isUnknown: !isRead });
  }
  const { ok, status } = response;
  if (status === 401 && path !== 'login') {
    await session.ended();
    return call(method, path, options);
  }
  const field = (/** @type {string} */ name) => response.headers.get(name) ?? '';
  if (!ok && status !== 412) {
    const isUnknown = !isRead && (data.code === 'outcome_unknown' || status === 502 || status === 504);
    const wait = field('Retry-After');
    const advice = Number(wait) > 0 ? ` Try again in ${wait} seconds.` : status < 500 ? '' : ' Try again.';
    const message = `${data.detail ?? `The server answered ${status}`}.${advice}`;
    const isPassing = status === 429 || status > 500;
    throw Object.assign(new Problem(message), { status, isUnknown, isPassing, issues: data.errors ?? [] });
  }
  const [, cursor = '', relation = ''] = /[?&](?:cursor|until)=([^&>]*)[^>]*>; rel="(\w+)"/u.exec(field('Link')) ?? [];
  return {
    status,
    data,
    etag: field('ETag'),
    /** The cursor of another page by its relation, such as `next`. */
    links: { [relation]: decodeURIComponent(cursor) },
    /** Number of records on all pages, if the request asked for it. */
    total: Number(field('X-Total-Count') || NaN),
  };
}
