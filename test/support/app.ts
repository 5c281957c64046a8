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
import { checkAnswer } from './contract.ts';
import { isLockedRun } from './basics.ts';
import { createApp, type App, type PlainReply, type PlainRequest } from './inside.ts';

const passwords = { admin: 'administrator of the tests', member: 'member of the house' };
export type Who = keyof typeof passwords;

export interface AskOptions {
  readonly fields?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: string | Buffer;
  readonly address?: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** The parsed body; `undefined` where there is none. */
  readonly json: unknown;
  /** The `code` of problem details. */
  readonly code: unknown;
  field(name: string): string | undefined;
}

type Fixed = Readonly<Record<string, string>>;

/** Asks, and fails unless the OpenAPI document declares the answer. */
export type Ask = (method: string, target: string, asked?: AskOptions) => Promise<Answer>;

export interface TestAppOptions extends AppOptions {
  /** For a test of what happens in one turn: also a locked-down run asks it without a port and a disk in between. */
  readonly withoutPort?: boolean;
}

/**
 * An app with two users: 1, an administrator, and 2, a member called Mia, unless its directory has users already. It is
 * in memory and asked without a port; in a locked-down run it keeps its data in files, and is asked over loopback. With
 * CAIRN_TEST_STORE=cluster its data are in a small etcd.
 */
export async function openTestApp(t: TestContext, { withoutPort = !isLockedRun, ...options }: TestAppOptions = {}) {
  const given = { scryptCost: 1, clock: systemClock, ...options };
  const { app, send } = withoutPort ? await openInMemory(t, given) : await openOnLoopback(t, given);
  const administrator = { name: 'Ada', role: 'admin', email: 'admin@example.org', password: passwords.admin };
  const isNew = options.users !== false && app.users.records.size === 0;
  if (isNew) await app.program.users.create(administrator);

  const document = await descriptionOf(options, send);

  const ask: Ask = async (method, target, asked = {}) => {
    const { fields = {}, json, body, address = '127.0.0.1' } = asked;
    const content = json === undefined ? body : JSON.stringify(json);
    const typed = json === undefined ? fields : { 'content-type': 'application/json', ...fields };
    const sent = content === undefined ? {} : { body: content };
    const reply = await send({ method, target, fields: typed, address, ...sent });
    const named = new Map(pairs(reply.fields.raw));
    checkAnswer(document, { method, target }, { status: reply.status, fields: named, body: reply.body });
    const parsed: unknown =
      /json/.test(reply.fields.get('content-type') ?? '') && reply.body !== '' ? JSON.parse(reply.body) : undefined;
    return {
      status: reply.status,
      body: reply.body,
      json: parsed,
      code: Object(parsed).code,
      field: (name) => reply.fields.get(name) ?? Object.fromEntries(pairs(reply.fields.raw))[name],
    };
  };
  const credentials = (who: Who) => ({ email: `${who}@example.org`, password: passwords[who] });
  const token = async (who: Who): Promise<string> => {
    const answer = await ask('POST', '/tokens', { json: credentials(who) });
    return String(Object(answer.json).access_token);
  };
  /** The `Cookie` field of a new session. */
  const cookie = async (who: Who): Promise<string> => cookieIn(await ask('POST', '/login', { json: credentials(who) }));
  /** Asks with these fields in each request. */
  const withFields = (own: Fixed): Ask => (method, target, asked = {}) =>
    ask(method, target, { ...asked, fields: { ...own, ...asked.fields } });
  /** Asks as a program of this user, with a bearer token. */
  const as = async (who: Who, more: Fixed = {}): Promise<Ask> =>
    withFields({ authorization: `Bearer ${await token(who)}`, ...more });
  /** Asks as a browser of this user, with a session cookie. */
  const browserOf = async (who: Who, more: Fixed = {}): Promise<Ask> =>
    withFields({ cookie: await cookie(who), ...more });
  const member = { name: 'Mia', role: 'member', ...credentials('member') };
  if (isNew) await (await as('admin'))('POST', '/users', { json: member });
  return { app, ask, as, browserOf, token, cookie, credentials };
}

const descriptions = new Map<string, JsonObject>();

/** The OpenAPI document of an app, which those with the same options share: to make it is most of an app's start. */
async function descriptionOf(options: AppOptions, send: Opened['send']): Promise<JsonObject> {
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

async function openInMemory(t: TestContext, options: AppOptions): Promise<Opened> {
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
async function openOnLoopback(t: TestContext, options: AppOptions): Promise<Opened> {
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
        const read = reply.headers['content-type'] === 'text/event-stream' ? firstOf : text;
        read(reply).then((body) => resolve({ status, fields: new Fields(rawHeaders), body }), reject);
      });
      asking.on('error', reject).end(body);
    });
  return { app, send };
}

/** The first piece of a reply that has no end. */
async function firstOf(reply: IncomingMessage): Promise<string> {
  for await (const piece of reply) return String(piece);
  return '';
}

/** The session cookie of a response, as a browser sends it back. */
export function cookieIn(answer: Answer): string {
  return /^sid=[\w-]*/.exec(answer.field('set-cookie') ?? '')?.[0] ?? '';
}

function pairs(raw: readonly string[]): [string, string][] {
  const named: [string, string][] = [];
  for (let index = 0; index < raw.length; index += 2)
    named.push([raw[index]?.toLowerCase() ?? '', raw[index + 1] ?? '']);
  return named;
}
