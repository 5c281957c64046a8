/** Serves some requests without records, and prints the used heap. Run with --expose-gc. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../../test/support/inside.ts';

const directory = mkdtempSync(join(tmpdir(), 'cairn-empty-'));
const administrator = { email: 'admin@example.org', password: 'correct horse battery' };
const app = await createApp({ directory, administrator, scryptCost: 1 });
const fields = { 'content-type': 'application/json' };
const { body } = await app.inject({ method: 'POST', target: '/tokens', fields, body: JSON.stringify(administrator) });
const authorization = `Bearer ${JSON.parse(String(body)).access_token}`;
for (const target of ['/items', '/status', '/openapi.json', '/', '/items?limit=5&sort=price', '/users']) {
  const { status } = await app.inject({ target, fields: { authorization } });
  if (status !== 200) throw new Error(`${target}: ${status}`);
}
global.gc?.();
global.gc?.();
process.stdout.write(String(process.memoryUsage().heapUsed));
await app.close();
rmSync(directory, { recursive: true });
