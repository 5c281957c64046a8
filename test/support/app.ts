import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

import type { AppOptions } from '../../src/programs/options.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/system.ts';
import { Fields } from '../../src/http/fields.ts';
import { SmallEtcd } from './cluster/small-etcd.ts';
import { checkResponse } from './contract.ts';
import { isLockedRun } from './basics.ts';
import { createApp, type App, type PlainReply, type PlainRequest } from './inside.ts';

const passwords = { admin: 'administrator of the tests', member: 'member of the house' };
export type TestUser = keyof typeof passwords;

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: string | Buffer;
  readonly address?: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: string;
  /** The parsed body; `undefined` where there is none. */
  readonly json: unknown;
  /** The `code` of problem details. */
  readonly code: unknown;
  header(name: string): string | undefined;
}

type Fixed = Readonly<Record<string, string>>;

type Send = (method: string, target: string, asked?: RequestOptions) => Promise<ApiResponse>;
type SendWith = (target: string, asked?: RequestOptions) => Promise<ApiResponse>;

/** Sends requests, and fails unless the OpenAPI document declares the response. */
export interface Client {
  readonly send: Send;
  readonly get: SendWith;
  readonly post: SendWith;
  readonly put: SendWith;
  readonly patch: SendWith;
  readonly delete: SendWith;
}

export function createClient(send: Send): Client {
  const sendWith = (method: string): SendWith => (target, asked) => send(method, target, asked);
  return {
    send,
    get: sendWith('GET'),
    post: sendWith('POST'),
    put: sendWith('PUT'),
    patch: sendWith('PATCH'),
    delete: sendWith('DELETE'),
  };
}

export interface TestAppOptions extends AppOptions {
  /** For a test of what happens in one turn: also a locked-down run asks it without a port and a disk in between. */
  readonly withoutPort?: boolean;
}

export interface TestApp {
  readonly app: App;
  /** Sends requests without credentials. */
  readonly client: Client;
  /** Sends these headers with each request. */
  readonly withHeaders: (headers: Fixed) => Client;
  /** Signs in as a program does, with a bearer token. */
  readonly signIn: (who: TestUser, more?: Fixed) => Promise<Client>;
  /** Signs in as a browser does, with a session cookie. */
  readonly signInBrowser: (who: TestUser, more?: Fixed) => Promise<Client>;
  readonly createToken: (who: TestUser) => Promise<string>;
  /** Returns the `Cookie` header of a new session. */
  readonly createCookie: (who: TestUser) => Promise<string>;
  readonly credentials: (who: TestUser) => { readonly email: string; readonly password: string };
}

/**
 * An app with two users: 1, an administrator, and 2, a member called Mia, unless its directory has users already. It is
 * in memory and asked without a port; in a locked-down run it keeps its data in files, and is asked over loopback. With
 * CAIRN_TEST_STORE=cluster its data are in a small etcd.
 */
export async function startApp(
  t: TestContext,
  { withoutPort = !isLockedRun, ...options }: TestAppOptions = {},
): Promise<TestApp> {
  const given = { scryptCost: 1, clock: systemClock, ...options };
  const { app, send } = withoutPort ? await startInMemory(t, given) : await startOnLoopback(t, given);
  const administrator = { name: 'Ada', role: 'admin', email: 'admin@example.org', password: passwords.admin };
  const isNew = options.users !== false && app.users.records.size === 0;
  if (isNew) await app.program.users.create(administrator);

  const document = await readDescription(options, send);

  const client = createClient(async (method, target, asked = {}) => {
    const { headers = {}, json, body, address = '127.0.0.1' } = asked;
    const content = json === undefined ? body : JSON.stringify(json);
    const typed = json === undefined ? headers : { 'content-type': 'application/json', ...headers };
    const sent = content === undefined ? {} : { body: content };
    const reply = await send({ method, target, fields: typed, address, ...sent });
    const named = new Map(pairs(reply.fields.raw));
    checkResponse(document, { method, target }, { status: reply.status, fields: named, body: reply.body });
    const parsed: unknown =
      /json/.test(reply.fields.get('content-type') ?? '') && reply.body !== '' ? JSON.parse(reply.body) : undefined;
    return {
      status: reply.status,
      body: reply.body,
      json: parsed,
      code: Object(parsed).code,
      header: (name) => reply.fields.get(name) ?? Object.fromEntries(pairs(reply.fields.raw))[name],
    };
  });
  const credentials = (who: TestUser) => ({ email: `${who}@example.org`, password: passwords[who] });
  const createToken = async (who: TestUser): Promise<string> => {
    const answer = await client.post('/tokens', { json: credentials(who) });
    return String(Object(answer.json).access_token);
  };
  const createCookie = async (who: TestUser): Promise<string> =>
    readCookie(await client.post('/login', { json: credentials(who) }));
  const withHeaders = (own: Fixed): Client =>
    createClient((method, target, asked = {}) =>
      client.send(method, target, { ...asked, headers: { ...own, ...asked.headers } }),
    );
  const signIn = async (who: TestUser, more: Fixed = {}): Promise<Client> =>
    withHeaders({ authorization: `Bearer ${await createToken(who)}`, ...more });
  const signInBrowser = async (who: TestUser, more: Fixed = {}): Promise<Client> =>
    withHeaders({ cookie: await createCookie(who), ...more });
  const member = { name: 'Mia', role: 'member', ...credentials('member') };
  if (isNew) await (await signIn('admin')).post('/users', { json: member });
  return { app, client, withHeaders, signIn, signInBrowser, createToken, createCookie, credentials };
}

const descriptions = new Map<string, JsonObject>();

/** The OpenAPI document of an app, which those with the same options share: to make it is most of an app's start. */
async function readDescription(options: AppOptions, send: Opened['send']): Promise<JsonObject> {
  const key = JSON.stringify(options);
  const known = descriptions.get(key);
  if (known !== undefined) return known;
  // A document may have more values than the server accepts in a body.
  const document: JsonValue = JSON.parse((await send({ target: '/openapi.json' })).body);
  assert.ok(isJsonObject(document));
  descriptions.set(key, document);
  return document;
}

interface Opened {
  readonly app: App;
  readonly send: (asked: PlainRequest) => Promise<PlainReply>;
}

async function startInMemory(t: TestContext, options: AppOptions): Promise<Opened> {
  const isShared = process.env['CAIRN_TEST_STORE'] === 'cluster' && options.directory === undefined;
  const etcd = isShared ? await SmallEtcd.start() : undefined;
  // The clocks of tests leap.
  const cluster = etcd && { members: etcd.addresses, maxAgeMs: Infinity };
  const app = await createApp({ ...options, cluster }).catch(async (error: unknown) => {
    // Otherwise the process of the test would never end.
    await etcd?.stop();
    throw error;
  });
  t.after(async () => {
    await app.close();
    await etcd?.stop();
  });
  // A feed has no end, so it is left when it has begun.
  const send = (asked: PlainRequest): Promise<PlainReply> =>
    app.inject({ ...asked, ...(asked.target.startsWith('/changes') && { signal: AbortSignal.abort() }) });
  return { app, send };
}

/** The test stands in for a proxy, so that it can ask from any address. */
async function startOnLoopback(t: TestContext, options: AppOptions): Promise<Opened> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'cairn-app-'));
  const app = await createApp({ trustedProxies: ['127.0.0.1'], ...options, directory });
  const agent = new Agent({ keepAlive: true });
  t.after(async () => {
    agent.destroy();
    await app.close();
    if (options.directory === undefined) rmSync(directory, { recursive: true });
  });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const send = ({ method = 'GET', target, fields, body, address = '127.0.0.1' }: PlainRequest): Promise<PlainReply> =>
    new Promise((resolve, reject) => {
      const forwarded = address === '127.0.0.1' ? {} : { 'x-forwarded-for': address };
      const headers = { host: 'localhost', ...forwarded, ...fields };
      const asking = request({ agent, port, host: '127.0.0.1', method, path: target, headers }, (reply) => {
        // A request that is refused need not be sent to its end.
        asking.off('error', reject).on('error', () => undefined);
        const { statusCode: status = 0, rawHeaders } = reply;
        const read = reply.headers['content-type'] === 'text/event-stream' ? readFirstPiece : text;
        read(reply).then((body) => resolve({ status, fields: new Fields(rawHeaders), body }), reject);
      });
      asking.on('error', reject).end(body);
    });
  return { app, send };
}

/** The first piece of a reply that has no end. */
async function readFirstPiece(reply: IncomingMessage): Promise<string> {
  for await (const piece of reply) return String(piece);
  return '';
}

/** The session cookie of a response, as a browser sends it back. */
export function readCookie(answer: ApiResponse): string {
  return /^sid=[\w-]*/.exec(answer.header('set-cookie') ?? '')?.[0] ?? '';
}

function pairs(raw: readonly string[]): [string, string][] {
  const named: [string, string][] = [];
  for (let index = 0; index < raw.length; index += 2)
    named.push([raw[index]?.toLowerCase() ?? '', raw[index + 1] ?? '']);
  return named;
}
