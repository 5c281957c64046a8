import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

import { createApp, type App, type AppOptions } from '../../src/app.ts';
import { everybody } from '../../src/auth/access.ts';
import { isJsonObject, parseJson, type JsonObject } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/system.ts';
import { Fields } from '../../src/http/fields.ts';
import type { PlainReply, PlainRequest } from '../../src/http/inject.ts';
import { checkAnswer } from './contract.ts';
import { isLockedRun } from './locked.ts';

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

export interface TestAppOptions extends AppOptions {
  /** For a test of what happens in one turn: also a locked-down run asks it without a port and a disk in between. */
  readonly withoutPort?: boolean;
}

/**
 * An app with two users: 1, an administrator, and 2, a member called Mia. It is in memory and asked without a port; in
 * a locked-down run it keeps its data in files, and is asked over loopback.
 */
export async function openTestApp(t: TestContext, { withoutPort = !isLockedRun, ...options }: TestAppOptions = {}) {
  const given = { scryptCost: 1, clock: systemClock, ...options };
  const { app, send } = withoutPort ? await openInMemory(t, given) : await openOnLoopback(t, given);
  const administrator = { name: 'Ada', role: 'admin', email: 'admin@example.org', password: passwords.admin };
  await app.users.create(everybody, administrator);

  const document = parseDescription((await send({ target: '/openapi.json' })).body);

  /** Asks, and holds the answer against the OpenAPI document. */
  const ask = async (method: string, target: string, asked: AskOptions = {}): Promise<Answer> => {
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
  const admin = { authorization: `Bearer ${await token('admin')}` };
  await ask('POST', '/users', { fields: admin, json: { name: 'Mia', role: 'member', ...credentials('member') } });
  /** The `Cookie` field of a new session. */
  const cookie = async (who: Who): Promise<string> => {
    const answer = await ask('POST', '/login', { json: credentials(who) });
    return cookieIn(answer);
  };
  return { app, ask, token, cookie, credentials };
}

let last: { readonly text: string; readonly document: JsonObject } | undefined;

/** Most apps of a test file have the same document. */
function parseDescription(text: string): JsonObject {
  if (last?.text === text) return last.document;
  const document = parseJson(text);
  assert.ok(isJsonObject(document));
  last = { text, document };
  return document;
}

interface Opened {
  readonly app: App;
  readonly send: (asked: PlainRequest) => Promise<PlainReply>;
}

async function openInMemory(t: TestContext, options: AppOptions): Promise<Opened> {
  const app = await createApp(options);
  t.after(() => app.close());
  return { app, send: app.inject };
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
      const headers = { host: 'localhost', 'x-forwarded-for': address, ...fields };
      const asking = request({ agent, port, host: '127.0.0.1', method, path: target, headers }, (reply) => {
        // What is refused need not be sent to its end.
        asking.off('error', reject).on('error', () => undefined);
        const { statusCode = 0, rawHeaders } = reply;
        text(reply).then((body) => resolve({ status: statusCode, fields: new Fields(rawHeaders), body }), reject);
      });
      asking.on('error', reject).end(body);
    });
  return { app, send };
}

/** What a browser sends back of the session cookie in an answer. */
export function cookieIn(answer: Answer): string {
  return /^sid=[\w-]*/.exec(answer.field('set-cookie') ?? '')?.[0] ?? '';
}

function pairs(raw: readonly string[]): [string, string][] {
  const named: [string, string][] = [];
  for (let index = 0; index < raw.length; index += 2)
    named.push([raw[index]?.toLowerCase() ?? '', raw[index + 1] ?? '']);
  return named;
}
