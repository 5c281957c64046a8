/**
 * The contenders: a bare `node:http` server, Cairn, the previous release, and peers. Each is a process with its own
 * data, and knows how to authenticate its requests.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { sendRequest, email, password, secret, startBare, startCounted, startProgram } from './processes.ts';
import type { BareOrder, Server } from './processes.ts';
import type { App } from '../../test/support/inside.ts';

export const itemsCount = 10_000;
export const host = 'HTTP/1.1\r\nHost: 127.0.0.1\r\n';

export interface Case {
  readonly name: string;
  readonly connections: number;
  /**
   * `{known}` and `{cookie}` stand for credentials of one caller, `{token}` for a new token each time, `{cursor}` for
   * the start of the third page of 20 items.
   */
  readonly request: string;
  /** Additional connections that read the feed. */
  readonly listeners?: number;
  /** The number of warm-up requests, for slow requests. */
  readonly warmUpRequests?: number;
  /** The most processor time that Cairn may use for a request, as a multiple of the bare server's. */
  readonly budget?: number;
  /** True if the server counts its allocations. */
  readonly isCounted?: boolean;
}

export interface Contender {
  readonly name: string;
  takes(one: Case): boolean;
  start(one: Case): Promise<Server>;
  /** Returns the request with credentials in this server's form. */
  signIn(port: number, one: Case): Promise<string>;
}

export function run(directory: string, command: string, ...words: readonly string[]): void {
  const { status, stderr } = spawnSync(command, words, {
    cwd: directory, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} failed in ${directory}: ${stderr}`);
}

const starterOf = ({ isCounted }: Case): typeof startProgram => (isCounted ? startCounted : startProgram);

/**
 * Cairn as built in the folder `program`, with its log in a file and its metrics on. It creates its items itself, once.
 */
export async function cairn(name: string, program: string, work: string, more: readonly string[] = []) {
  const template = join(work, `${name.replaceAll(/\W+/g, '-')}-template`);
  await fill(program, template);
  const start = (one: Case): Promise<Server> => {
    const data = join(work, 'data');
    rmSync(data, { recursive: true, force: true });
    cpSync(template, data, { recursive: true });
    const options = ['--port', '0', '--data', data, '--log', 'json'];
    const words = [join(program, 'dist', 'main.js'), 'serve', ...options, ...more];
    return starterOf(one)(work, words);
  };
  return { name, takes: () => true, start, signIn: (port, { request }) => signedIn(port, request) } satisfies Contender;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

async function fill(program: string, directory: string): Promise<void> {
  // The previous release has the same entry point, and so the same type.
  const { createApp } = (await import(pathToFileURL(join(program, 'dist', 'index.js')).href)) as {
    createApp: (options: object) => Promise<Pick<App, 'close'> & { inject: (asked: object) => Promise<Answer> }>;
  };
  const app = await createApp({ directory, secret, administrator: { email, password } });
  const json = { 'Content-Type': 'application/json' };
  // Until the fourth edition, header fields were called fields.
  const name = await app.inject({ target: '/livez', fields: {} }).then(() => 'fields', () => 'headers');
  const post = (target: string, body: object, headers: object): Promise<Answer> =>
    app.inject({ method: 'POST', target, [name]: headers, body: JSON.stringify(body) });
  const { access_token: token } = JSON.parse((await post('/tokens', { email, password }, json)).body);
  const own = { ...json, Authorization: `Bearer ${token}` };
  const creates = Array.from({ length: itemsCount }, (_, index) =>
    post('/items', itemAt(index), own));
  for (const { status, body } of await Promise.all(creates)) if (status !== 201) throw new Error(body);
  await app.close();
}

function itemAt(index: number): { name: string; price: number } {
  return { name: `A thing to be sold, number ${index}`, price: (index * 7919) % 1000 };
}

/** Replaces the placeholders for credentials in a request. */
async function signedIn(port: number, request: string): Promise<string> {
  const body = JSON.stringify({ email, password });
  const fields = `${host}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  if (request.includes('{cookie}')) {
    return request.replace('{cookie}', /sid=([^;]+)/.exec(await sendRequest(port, `POST /login ${fields}`))?.[1] ?? '');
  }
  if (!request.includes('{known}')) return request;
  const tokens = await sendRequest(port, `POST /tokens ${fields}`);
  const known = request.replace('{known}', /"access_token":"([^"]+)/.exec(tokens)?.[1] ?? '');
  if (!known.includes('{cursor}')) return known;
  const before = await sendRequest(port, known.replace('limit=20&cursor={cursor}', 'limit=40'));
  return known.replace('{cursor}', /[?&]cursor=([^&>]+)[^,]*>; rel="next"/.exec(before)?.[1] ?? '');
}

/**
 * A server with the same response as `model` to everything, except that it serializes the records of a list each time.
 * One with a log appends each body to a file with group commit before it responds, and announces it on its feeds.
 */
export function bare(model: Contender, work: string, hasLog = false): Contender {
  const orders = new Map<string, BareOrder>();
  const learn = async (one: Case): Promise<BareOrder> => {
    const server = await model.start(one);
    const request = (await model.signIn(server.port, one)).replace('{token}', 'x');
    const reply = await sendRequest(server.port, request);
    server.process.kill('SIGKILL');
    const body = contentOf(reply);
    const log = hasLog ? { log: join(work, 'bare.jsonl') } : {};
    const isList = body.startsWith('[');
    return { status: one.request.startsWith('POST') ? 201 : 200, body: isList ? JSON.parse(body) : body, ...log };
  };
  return {
    name: hasLog ? 'bare log' : 'bare',
    takes: ({ request, listeners }) => hasLog ? request.startsWith('POST') : listeners === undefined,
    start: async (one) => {
      const order = orders.get(one.name) ?? (await learn(one));
      orders.set(one.name, order);
      return startBare(work, order, starterOf(one));
    },
    signIn: (_, { request }) => Promise.resolve(request),
  };
}

/** Returns the body of a response, even in chunks (RFC 9112 §7.1). */
function contentOf(reply: string): string {
  const [head = ''] = reply.split('\r\n\r\n', 1);
  const rest = reply.slice(head.length + 4);
  if (!/^transfer-encoding: chunked$/im.test(head)) return rest;
  let [content, at] = ['', 0];
  for (;;) {
    const start = rest.indexOf('\r\n', at) + 2;
    const length = Number.parseInt(rest.slice(at, start), 16);
    if (!(length > 0)) return content;
    content += rest.slice(start, start + length);
    at = start + length + 2;
  }
}

/** The previous release: a folder, or a name that `git` knows, which is built next to the data. */
export async function former(name: string, project: string, work: string, title?: string): Promise<Contender> {
  const label = title ?? `former (${name})`;
  if (existsSync(name)) return cairn(label, resolve(name), work);
  const folder = mkdtempSync(join(work, 'former-'));
  run(project, 'git', 'archive', '--output', join(folder, 'source.tar'), name);
  run(folder, 'tar', '-xf', 'source.tar');
  const [ours, its] = [project, folder].map((each) => readFileSync(join(each, 'package-lock.json'), 'utf8'));
  if (ours === its) symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'), 'junction');
  else run(folder, 'npm', 'ci', '--no-audit', '--no-fund');
  run(folder, 'npm', 'run', '--silent', 'build');
  return cairn(label, folder, work);
}

/** Editions that users have or had, for comparison. */
const editions = {
  'first edition': 'b26cdaa', 'second edition': '379e817', 'third edition': '131bbb8', 'release 0.3': '1b98ef7',
};

/** The last commit if anything has changed since, else the commit before it. */
export function parent(project: string, work: string): Promise<Contender | undefined> {
  const { stdout } = spawnSync('git', ['status', '--porcelain', '--', 'src'], { cwd: project, encoding: 'utf8' });
  return orSay('the parent', () => former(stdout === '' ? 'HEAD^' : 'HEAD', project, work, 'parent'));
}

/** The parent and the editions, as far as git's history and npm provide them. */
export async function ancestors(project: string, work: string): Promise<Contender[]> {
  const found = [await parent(project, work)];
  for (const [label, commit] of Object.entries(editions)) {
    found.push(await orSay(`the ${label}`, () => former(commit, project, work, label)));
  }
  const compared = /^(a read|the dashboard|a create|a page of 20)(, 1 connection|, by (cookie|cursor|number))*$/;
  const takes = ({ name }: Case): boolean => compared.test(name);
  return found.flatMap((each) => (each === undefined ? [] : [{ ...each, takes }]));
}

async function orSay<T>(what: string, make: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await make();
  } catch (error) {
    process.stderr.write(`Not to be had: ${what}: ${error instanceof Error ? error.message.trim() : String(error)}\n`);
    return undefined;
  }
}

const packages = ['fastify@5', '@fastify/jwt@10', 'better-sqlite3@12', 'json-server@0.17.4'];

/** Fastify with its JWT plug-in over better-sqlite3, and json-server, if npm has them. */
export async function peers(work: string): Promise<Contender[]> {
  return (await orSay('other servers', () => installPeers(work))) ?? [];
}

function installPeers(work: string): Contender[] {
  const folder = join(work, 'peers');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  process.stderr.write(`Installing ${packages.join(', ')}\n`);
  run(folder, 'npm', 'install', '--no-audit', '--no-fund', ...packages);
  const items = Array.from({ length: itemsCount }, (_, index) => ({ id: index + 1, ...itemAt(index) }));
  writeFileSync(join(folder, 'items.json'), JSON.stringify({ items }));
  cpSync(join(import.meta.dirname, 'peers.js'), join(folder, 'peers.js'));
  const peer = (name: string, which: string, isMissing: RegExp): Contender => ({
    name,
    takes: ({ name: what }) => !isMissing.test(what),
    start: (one) => starterOf(one)(folder, [join(folder, 'peers.js'), which, join(folder, 'items.json'), secret]),
    signIn: async (port, { request }) => {
      const [, token = ''] = (await sendRequest(port, `POST /tokens ${host}Content-Length: 0\r\n\r\n`)).split(
        '\r\n\r\n',
      );
      return request.replace('{known}', token).replace('cursor={cursor}', 'after=40');
    },
  });
  return [
    peer('Fastify, JWT, SQLite', 'fastify', /new tokens|dashboard|feeds/),
    peer('json-server (no sign-in, no sync)', 'json-server', /new tokens|dashboard|feeds/),
  ];
}
