import { problemReply } from '../../../src/api/replies.ts';
import { CairnError } from '../../../src/base/errors.ts';
import { systemClock } from '../../../src/base/system.ts';
import type { HttpServerOptions } from '../../../src/http/server-options.ts';
import { apiFields, type Handle, type Reply, type RequestEntry } from '../../../src/http/message.ts';
import { createRequestIds } from '../../../src/http/request-ids.ts';
import { Router } from '../../../src/http/router.ts';
import { HttpServer, type TlsTexts } from '../../../src/http/server.ts';

export function text(body: string): Reply {
  return { status: 200, fields: ['Content-Type', 'text/plain', ...apiFields], body };
}

/** Enough of an application to ask a listener everything; `/echo` takes 1,000 bytes of content. */
export function createHandle(routes: Readonly<Record<string, Handle>> = {}): Handle {
  const all: Readonly<Record<string, Handle>> = {
    'GET /items/{id}': (request) => text(`item ${request.target}`),
    'POST /echo': async (request) => text((await request.receiveBody(1000)).toString('latin1')),
    'POST /ignore': () => text('ignored'),
    ...routes,
  };
  const router = new Router(
    Object.entries(all).map(([name, value]) => {
      const [method = '', pattern = ''] = name.split(' ');
      return { method, pattern, value };
    }),
  );
  return (request) => {
    request.matched(request.target);
    const match = router.match(request.method, request.target);
    if (match.kind === 'found') return match.value(request);
    if (match.kind === 'not-found') throw new CairnError('not_found', 'Cannot find it: there is none');
    throw new CairnError('method_not_allowed', 'Cannot do it: no such method', { fields: ['Allow', match.allow] });
  };
}

export interface Listener {
  readonly server: HttpServer;
  readonly port: number;
  /** What it told of its replies. */
  readonly answered: RequestEntry[];
}

/** Starts a listener on a free port. */
export async function startListener(options: Partial<HttpServerOptions> = {}, tls?: TlsTexts): Promise<Listener> {
  const answered: RequestEntry[] = [];
  let drawn = 0;
  const server = new HttpServer({
    handle: createHandle(),
    problemReply,
    clock: systemClock,
    nextId: createRequestIds((size) => Buffer.alloc(size, (drawn += 1))),
    onAnswered: (entry) => void answered.push(entry),
    ...options,
  });
  const port = await server.listen({ port: 0, host: '127.0.0.1', tls });
  return { server, port, answered };
}
