/** An installed server in a process of its own, and requests to it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

import { RawClient, type RawReply } from '../../test/support/http/raw.ts';

export const password = 'administrator of the tests';
const host = 'HTTP/1.1\r\nHost: localhost\r\n';
export const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];

export interface Served {
  readonly pid: number;
  readonly port: number;
  /** The access token of the administrator. */
  readonly admin: string;
  /** Creates a user, and returns an access token. */
  signUp(name: string): Promise<string>;
  /** Sends a request on a new connection. */
  ask(request: string): Promise<RawReply>;
}

export function formatRequest(line: string, token: string, content?: unknown): string {
  const body = content === undefined ? '' : JSON.stringify(content);
  const bearer = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  const typed = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return `${line} ${host}${bearer}${typed}\r\n${body}`;
}

/** Starts a server with these collections and flags of Node.js, on data of its own. It has to end well. */
export async function startServer(
  context: TestContext, collections?: readonly object[], flags: readonly string[] = [],
): Promise<Served> {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-served-'));
  const main = join(import.meta.dirname, '../../src/main.ts');
  const words = [main, 'serve', '--port', '0', '--data', join(directory, 'data')];
  if (collections !== undefined) {
    const path = join(directory, 'collections.json');
    writeFileSync(path, JSON.stringify({ collections }));
    words.push('--collections', path);
  }
  const server = spawn(process.execPath, [...flags, ...typescript, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CAIRN_ADMIN_PASSWORD: password },
  });
  context.after(async () => {
    server.kill('SIGTERM');
    const [code] = await once(server, 'exit');
    rmSync(directory, { recursive: true });
    assert.equal(code, 0);
  });
  let output = '';
  const portIn = (form: RegExp): number => Number(form.exec(output)?.[1]);
  server.stdout.on('data', (chunk) => (output += String(chunk)));
  while (!output.includes('Cairn serves')) await once(server.stdout, 'data');
  const port = portIn(/Cairn serves http:\/\/127\.0\.0\.1:(\d+)/);
  const ask = async (request: string): Promise<RawReply> => {
    const client = new RawClient(port).send(request);
    const reply = await client.reply();
    client.socket.destroy();
    return reply;
  };
  const signIn = async (email: string): Promise<string> => {
    const { body } = await ask(formatRequest('POST /tokens', '', { email, password }));
    return /"access_token":"([^"]+)/.exec(body)?.[1] ?? '';
  };
  const admin = await signIn('admin@localhost.localdomain');
  return {
    pid: server.pid ?? 0,
    port,
    admin,
    async signUp(name) {
      const email = `${name}@example.org`;
      const { status } = await ask(formatRequest('POST /users', admin, { name, email, password, role: 'member' }));
      assert.equal(status, 201);
      return signIn(email);
    },
    ask,
  };
}
