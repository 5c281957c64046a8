import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestContext } from 'node:test';
import { defineCollection } from '../../src/collections/define.ts';
import { systemClock } from '../../src/base/system.ts';
import { temporaryDirectory } from './cli/spawn.ts';
import { handbook } from './source.ts';
import { createApp } from './inside.ts';

/** What a file of the reference exports, which is JavaScript. */
export type Loaded = ReturnType<typeof Object>;

/** Loads a file of the reference, which its first line names. */
export async function fileOfReference(t: TestContext, name: string): Promise<Loaded> {
  const blocks = Array.from(handbook.matchAll(/^```ts\n(.*?)^```$/gms), ([, block = '']) => block);
  const found = blocks.find((block) => block.startsWith(`// ${name}: `));
  assert.ok(found, name);
  const file = join(temporaryDirectory(t), name.replace(/js$/, 'mjs'));
  writeFileSync(file, found);
  return import(pathToFileURL(file).href);
}

const credentials = { email: 'ada@example.org', password: 'correct horse battery' };

/** A blog on a port with an administrator, whose clock can be put forward, and what the reference's client needs. */
export async function openBlog(t: TestContext) {
  const posts = defineCollection({
    name: 'posts',
    additional: true,
    fields: {
      title: { kind: 'text', min: 1 },
      views: { kind: 'integer', min: 0, default: 0 },
      author: { kind: 'object', optional: true, fields: { name: { kind: 'text', min: 1 } } },
    },
  });
  const comments = defineCollection({
    name: 'comments',
    fields: { body: { kind: 'text' }, postId: { kind: 'reference', to: 'posts', onDelete: 'remove' } },
  });
  let ahead = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const app = await createApp({ collections: [posts, comments], scryptCost: 1, administrator: credentials, clock });
  t.after(app.close);
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  };
  const { cairnClient } = await fileOfReference(t, 'cairn-client.js');
  const client = cairnClient(`http://127.0.0.1:${port}`, storage);
  return { client, kept, credentials, later: (milliseconds: number) => void (ahead += milliseconds) };
}
