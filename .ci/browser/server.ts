import { Agent, createServer, request as ask, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { AppOptions } from '../../src/programs/options.ts';
import { createApp } from '../../test/support/inside.ts';

export const password = 'the house on the hill';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As received, possibly compressed. */
  readonly body: string | Buffer;
}

/**
 * Stands between the page and the server: responds to a request itself, passes it on with `forward`, or returns
 * nothing, which cuts the connection.
 */
export type Double = (
  request: IncomingMessage & { readonly body: string },
  forward: () => Promise<Answer>,
  response: ServerResponse,
) => Promise<Answer | 'answered' | undefined>;

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Handles all requests from now on. */
  double: Double;
  /** Requests such as `GET /items?limit=50`, since this was emptied. */
  readonly requests: string[];
  /** Signs a person in as a browser would, and returns the cookie. */
  signIn(who: 'ada' | 'grace'): Promise<{ name: string; value: string }>;
  /** Sends a request as another client of this person, with a bearer token. */
  as(who: 'ada' | 'grace', method: string, target: string, body?: unknown): Promise<{ status: number; data: any }>;
  /** Stops responding, and cuts all connections. */
  stop(): Promise<void>;
  /** Responds again, at the same port. */
  restart(): Promise<void>;
}

export interface ServeOptions extends Pick<
  AppOptions,
  'auth' | 'basePath' | 'collections' | 'dialect' | 'items' | 'registration' | 'roles' | 'share' | 'users'
> {
  /** The number of members in addition to Ada and Grace. */
  readonly people?: number;
  /** True if the page receives others' changes. Otherwise it notices them when it reads. */
  readonly hasFeed?: boolean;
  /** The number of items: `Thing 1`, `Thing 2` … with rising prices. */
  readonly things?: number;
}

const emails = { ada: 'ada@example.org', grace: 'grace@example.org' } as const;
export const forwardRequest: Double = (_request, forward) => forward();

/** Serves an application in memory at a port of its own. Ada (1) is an administrator, Grace (2) a member. */
export async function startServer(t: TestContext, options: ServeOptions = {}): Promise<TestServer> {
  const {
    people = 0,
    things = 0,
    hasFeed = false,
    auth,
    basePath = '',
    collections,
    dialect,
    items: hasItems,
    registration,
  } = options;
  const { roles, share, users } = options;
  const app = await createApp({
    scryptCost: 1,
    auth,
    basePath,
    collections,
    dialect,
    items: hasItems,
    registration,
    roles,
    share,
    users,
  });
  t.after(() => app.close());
  const appPort = await app.listen({ port: 0, host: '127.0.0.1' });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());

  const listener = createServer(async (incoming, response) => {
    server.requests.push(`${incoming.method} ${incoming.url}`);
    const body = String(await buffer(incoming));
    const { method, url: path, headers } = incoming;
    const forward = async (): Promise<Answer> => {
      const sent = ask({ agent, port: appPort, host: '127.0.0.1', method, path, headers }).end(body);
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        sent.on('response', resolve).on('error', reject);
      });
      if (answer.headers['content-type'] === 'text/event-stream') {
        if (hasFeed) answer.pipe(response.writeHead(200, answer.headers)).on('close', () => answer.destroy());
        return new Promise(() => undefined);
      }
      const content = await buffer(answer);
      const isEncoded = answer.headers['content-encoding'] !== undefined;
      return { status: answer.statusCode ?? 0, headers: answer.headers, body: isEncoded ? content : String(content) };
    };
    // A test may have ended meanwhile.
    const answer = await server.double(Object.assign(incoming, { body }), forward, response).catch(() => undefined);
    // A browser repeats a request by itself if a connection ends without a byte.
    if (answer === undefined) response.write('{', () => response.destroy());
    if (answer === undefined || answer === 'answered') return;
    const framing = ['transfer-encoding', 'content-length', 'connection'];
    const kept = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !framing.includes(name)));
    response.writeHead(answer.status, kept).end(answer.body);
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port } = listener.address() as AddressInfo;
  const tokens = new Map<string, string>();

  const send = (method: string, target: string, content: unknown, fields: object = {}) =>
    app.inject({
      method, target, fields: { 'Content-Type': 'application/json', ...fields },
      ...(content !== undefined && { body: JSON.stringify(content) }),
    });
  const tokenOf = async (email: string): Promise<string> => {
    const granted = JSON.parse((await send('POST', '/tokens', { email, password })).body);
    // Only the access token is needed; the refresh token would be one more session in the lists.
    await send('POST', '/tokens/revoke', { refresh_token: granted.refresh_token });
    return granted.access_token;
  };
  const server: TestServer = {
    url: `http://127.0.0.1:${port}${basePath}`,
    port,
    double: forwardRequest,
    requests: [],
    async as(who, method, target, body) {
      const token = tokens.get(who) ?? (users === false ? '' : await tokenOf(emails[who]));
      tokens.set(who, token);
      const fields = users === false ? {} : { Authorization: `Bearer ${token}` };
      const { status, body: text } = await send(method, target, body, fields);
      return { status, data: text === '' ? undefined : JSON.parse(text) };
    },
    async signIn(who) {
      const fields = { 'Sec-Fetch-Site': 'same-origin', 'User-Agent': 'Chrome/100' };
      const answer = await send('POST', '/login', { email: emails[who], password }, fields);
      const [, name = '', value = ''] = /^([^=]+)=([^;]+)/.exec(answer.fields.get('set-cookie') ?? '') ?? [];
      return { name, value };
    },
    async stop() {
      if (!listener.listening) return;
      const closed = new Promise((resolve) => listener.close(resolve));
      listener.closeAllConnections();
      await closed;
    },
    async restart() {
      await once(listener.listen(port, '127.0.0.1'), 'listening');
    },
  };
  t.after(() => server.stop());

  if (users === false) return server;
  await app.program.users.create({ name: 'Ada', role: 'admin', email: emails.ada, password });
  await server.as('ada', 'PATCH', '/users/1', { name: 'Ada Lovelace' });
  await server.as('ada', 'POST', '/users', { name: 'Grace Hopper', email: emails.grace, password });
  for (let n = 1; n <= people; n += 1) {
    await server.as('ada', 'POST', '/users', { name: `Person ${n}`, email: `person.${n}@example.org` });
  }
  const items = Array.from({ length: things }, (_, n) => ({ name: `Thing ${n + 1}`, price: (n + 1) * 1.25 }));
  while (items.length > 0) await server.as('ada', 'POST', '/items/batch', items.splice(0, 1000));
  return server;
}

/** Passes everything on, with changes to the OpenAPI document. */
export function changeDescription(change: (document: any) => void, next: Double = forwardRequest): Double {
  return async (request, forward, response) => {
    if (request.url !== '/openapi.json') return next(request, forward, response);
    for (const name of ['accept-encoding', 'if-none-match']) delete request.headers[name];
    const answer = await forward();
    const document = JSON.parse(String(answer.body));
    change(document);
    return { ...answer, body: JSON.stringify(document) };
  };
}

/** Holds the requests whose target contains this text, until the returned function is called. */
export function hold(server: TestServer, text: string): () => void {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const { double } = server;
  server.double = async (request, forward, response) => {
    if (request.url?.includes(text)) await released;
    return double(request, forward, response);
  };
  return release;
}
