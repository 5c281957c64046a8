import type { Reply, Request } from '../http/message.ts';
import type { Endpoint } from './dispatch.ts';
import { isUnchanged } from './replies.ts';

/** One file of the page as it is served: the same bytes for everybody. */
export interface Page {
  readonly type: string;
  readonly body: Buffer;
  /** A strong entity tag, quotes included. */
  readonly etag: string;
  /** What it may do in a browser. */
  readonly contentSecurityPolicy: string;
}

/** The files of the page by path, `/` among them. */
export type Pages = ReadonlyMap<string, () => Page>;

/** A public endpoint for each file of the page. */
export function pageEndpoints(pages: Pages): Endpoint[] {
  return [...pages].map(([path, page]) => ({
    route: {
      method: 'GET', path, summary: 'The page', access: 'public', query: [], reply: { status: 200 },
    },
    handle: ({ request }) => pageReply(page(), request),
  }));
}

/** A file of the page, or 304 where the browser has it; asked for anew each time, since it changes with the server. */
export function pageReply(page: Page, request: Request): Reply {
  const fields = [
    ...['Cache-Control', 'no-cache', 'Vary', 'Accept', 'ETag', page.etag],
    ...['Content-Security-Policy', page.contentSecurityPolicy],
    ...['X-Content-Type-Options', 'nosniff', 'Referrer-Policy', 'no-referrer'],
    ...['Cross-Origin-Resource-Policy', 'same-origin', 'Cross-Origin-Opener-Policy', 'same-origin'],
  ];
  if (isUnchanged(request, page.etag)) return { status: 304, fields, body: undefined };
  return { status: 200, fields: ['Content-Type', page.type, ...fields], body: page.body };
}
