import type { Handle, Refuse, Reply } from '../http/message.ts';
import { noContent } from './replies.ts';

/**
 * A base path, such as `/api`, under which a proxy or a framework shows the server. Inside nothing knows of it: it is
 * taken off the targets of requests, and put before the paths in replies. A request may also come without it, since
 * some proxies and frameworks take it off themselves.
 */
export function mountHandle(handle: Handle, basePath: string): Handle {
  if (basePath === '') return handle;
  return (request) => {
    // The page's own paths are relative, and would lead out of the base path without the slash.
    if (request.target === basePath) return noContent(['Location', `${basePath}/`], 303);
    if (request.target.startsWith(`${basePath}/`)) request.target = request.target.slice(basePath.length);
    const reply = handle(request);
    return reply instanceof Promise ? reply.then((made) => shownUnder(basePath, made)) : shownUnder(basePath, reply);
  };
}

/** The same for what is refused before a handler sees it. */
export function mountRefusal(refuse: Refuse, basePath: string): Refuse {
  if (basePath === '') return refuse;
  return (error, requestId, fields) => shownUnder(basePath, refuse(error, requestId, fields));
}

/** Puts the base path before every path in a reply: in its fields, and in the `type` of a problem. */
function shownUnder(basePath: string, reply: Reply): Reply {
  const { fields, body } = reply;
  const mounted = fields.map((value, index) => {
    const before = placeOf[fields[index - 1] ?? ''];
    return index % 2 === 1 && before !== undefined ? value.replace(before, `$1${basePath}$2`) : value;
  });
  const isProblem = fields.includes('application/problem+json') && typeof body === 'string';
  return { ...reply, fields: mounted, body: isProblem ? body.replace(/^(\{"type":")(\/)/, `$1${basePath}$2`) : body };
}

/** What stands before and behind the place of the base path, by field. */
const placeOf: Readonly<Record<string, RegExp>> = {
  Location: /^()(\/)/,
  'Content-Location': /^()(\/)/,
  Link: /(<)(\/)/g,
  'Set-Cookie': /(; Path=)\/(;)/,
};
