import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { createApp, type AppOptions } from '../../src/app.ts';
import { systemClock } from '../../src/base/clock.ts';
import { isJsonObject, parseJson } from '../../src/base/json.ts';
import { checkAnswer } from './contract.ts';

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

/** An app in memory with two users: 1, an administrator, and 2, a member called Mia. */
export async function openTestApp(t: TestContext, options: AppOptions = {}) {
  const app = await createApp({ scryptCost: 1, clock: systemClock, ...options });
  t.after(() => app.close());
  await app.users.createFirst('admin@example.org', passwords.admin);

  const description = parseJson((await app.inject({ target: '/openapi.json' })).body);
  assert.ok(isJsonObject(description));
  const document = description;

  /** Asks, and holds the answer against the OpenAPI document. */
  const ask = async (method: string, target: string, asked: AskOptions = {}): Promise<Answer> => {
    const { fields = {}, json, body, address = '127.0.0.1' } = asked;
    const content = json === undefined ? body : JSON.stringify(json);
    const typed = json === undefined ? fields : { 'content-type': 'application/json', ...fields };
    const sent = content === undefined ? {} : { body: content };
    const reply = await app.inject({ method, target, fields: typed, address, ...sent });
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
