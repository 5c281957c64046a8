// @ts-check
/**
 * Calls the server's API (see openapi.json) with this browser's session cookie. Addresses are
 * relative.
 */

const answerTimeoutMs = 30_000;

/**
 * A request that was refused or got no response. The message says what happened and what to do
 * next.
 */
export class Problem extends Error {
  /** HTTP status, or 0 without a response. */ status = 0;
  /** True if the change may have been made nevertheless. */ isUnknown = false;
  /** @type {readonly { pointer: string, detail: string }[]} */ issues = [];
}

/** Aborts the requests of someone who signs out, so that their responses reach nobody. */
let leaving = new AbortController();

export function reset() {
  leaving.abort();
  leaving = new AbortController();
}

/**
 * `ended` is called when the session has ended, and then the request is repeated; `left`, when the
 * person has signed out; `changed`, when the session belongs to a user other than `user`, whom the
 * page shows.
 */
export const session = {
  ended: async () => {},
  left: async () => {},
  changed: async () => {},
  user: () => /** @type {number=} */ (undefined),
};

/** Returns an `Idempotency-Key`. Over plain HTTP, browsers have no `crypto.randomUUID`. */
export const newKey = () => `"${crypto.getRandomValues(new Uint32Array(4)).join('-')}"`;

/**
 * Sends one request. A failed precondition (412) is returned, not thrown.
 * @param {string} method @param {string} path
 * @param {{ body?: unknown, fields?: Record<string, string>, signal?: AbortSignal }} [options]
 * @throws {Problem} and `AbortError` once `signal` is aborted
 */
export async function call(method, path, options = {}) {
  const { body, fields, signal } = options;
  const isRead = method === 'GET';
  const user = session.user();
  const headers = {
    'Content-Type': 'application/json',
    // All tabs share one cookie, so another tab may have signed in someone else: the server
    // compares.
    ...(user && { 'Session-User': `${user}` }),
    ...fields,
  };
  const { signal: gone } = leaving;
  const doubt = isRead ? '' : ' It is not known whether the change was made.';
  const fail = (/** @type {string} */ message, status = 0) =>
    Object.assign(new Problem(`${message}${doubt}`), { status, isUnknown: !isRead });
  let response;
  let data;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: JSON.stringify(body) ?? null,
      signal: AbortSignal.any([
        AbortSignal.timeout(answerTimeoutMs),
        gone,
        ...(signal ? [signal] : []),
      ]),
    });
    data = await response.text();
  } catch (error) {
    if (gone.aborted) return new Promise(() => {});
    if (signal?.aborted) throw error;
    throw fail('The server did not answer. Check your network.');
  }
  const { ok, status } = response;
  try {
    data &&= JSON.parse(data);
  } catch {
    // A gateway responds with its own page while the server is away.
    throw fail(`Something between this page and the server answered instead (${status}).`, status);
  }
  if (status === 401 && path !== 'login') {
    await session.ended();
    return call(method, path, options);
  }
  if (data.code === 'other_user') await session.changed();
  const field = (/** @type {string} */ name) => response.headers.get(name) ?? '';
  if (!ok && status !== 412) {
    const isUnknown =
      !isRead && (data.code === 'outcome_unknown' || status === 502 || status === 504);
    const wait = field('Retry-After');
    const advice =
      Number(wait) > 0 ? ` Try again in ${wait} seconds.` : status < 500 ? '' : ' Try again.';
    const message = `${data.detail ?? `The server answered ${status}`}.${advice}`;
    throw Object.assign(new Problem(message), { status, isUnknown, issues: data.errors ?? [] });
  }
  return {
    status,
    data,
    etag: field('ETag'),
    total: Number(field('X-Total-Count') || NaN),
  };
}
