import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../src/base/system.ts';
import { defineCollection } from '../../src/collections/define.ts';
import { temporaryDirectory } from './cli/spawn.ts';
import { createApp } from './inside.ts';
import { handbook } from './source.ts';

/** Loads a file of packages. */
export type Load = (path: string) => Promise<ReturnType<typeof Object>>;

/** Packages of npm, each with its version. */
type Packages = Readonly<Record<string, string>>;

/** Installs packages in a directory; skips the test and returns nothing where they are not to be had. */
export function install(t: TestContext, packages: Packages): string | undefined {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, dependencies: packages }));
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const { error, status, stderr } = spawnSync('npm', words, { cwd: directory, encoding: 'utf8', timeout: 240_000 });
  if (error !== undefined || status !== 0) {
    t.skip(`not to be had from npm: ${Object.keys(packages).join(', ')} ${error?.message ?? stderr.split('\n')[0]}`);
    return undefined;
  }
  return directory;
}

/** Installs packages, and returns what loads their files. */
export function bring(t: TestContext, packages: Packages): Load | undefined {
  const directory = install(t, packages);
  if (directory === undefined) return undefined;
  return (path) => import(pathToFileURL(join(directory, 'node_modules', path)).href);
}

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
