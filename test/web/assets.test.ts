import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { contentSecurityPolicy, pageRoutes } from '../../src/features/page/assets.ts';
import { projectDirectory } from '../support/source.ts';
import { createApp } from '../support/inside.ts';

const folder = join(projectDirectory, 'src', 'web');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
/** `types.js` has only comments, for the type checker. */
const pageFiles = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => /\.(html|css|js|svg)$/.test(name) && name !== 'types.js');
/** The path of a module that another one imports. */
const resolved = (from: string, target: string): string => posix.join(posix.dirname(from), target);
const lineWidthMax = 120;
/** Compressed. The first list and the description of the server come in addition: 130 kB in all. */
const coldBytesMax = 70_000;

test('every file of the page is served unchanged with its own strong entity tag', async (t) => {
  const app = await createApp();
  t.after(() => app.close());
  assert.equal(pageRoutes(false).length, pageFiles.length);
  const tags = new Set<string>();
  for (const name of pageFiles) {
    const { body, fields } = await app.inject({ target: name === 'index.html' ? '/' : `/-/page/${name}` });
    assert.equal(body, read(name), name);
    assert.match(fields.get('etag') ?? '', /^"[\w-]{22}"$/);
    tags.add(fields.get('etag') ?? '');
  }
  assert.equal(tags.size, pageFiles.length);
});

test('public files are compressed for callers that accept gzip, with their own entity tag', async (t) => {
  const app = await createApp();
  t.after(() => app.close());
  const zipped = ['gzip', 'gzip, deflate, br', 'br;q=1, GZIP; q=0.5', 'deflate,gzip;q=1'];
  const plain = ['', 'br', 'gzip;q=0', 'gzip; q=0.000', 'x-gzip', 'gzip2', 'identity'];
  for (const target of ['/-/page/page.css', '/openapi.json']) {
    const ask = (coding: string) => app.inject({ target, fields: { 'accept-encoding': coding } });
    const tags = new Map<string | undefined, string | undefined>();
    for (const coding of [...zipped, ...plain]) {
      const { fields } = await ask(coding);
      const encoding = fields.get('content-encoding');
      assert.equal(encoding, zipped.includes(coding) ? 'gzip' : undefined, coding);
      tags.set(encoding, fields.get('etag'));
      assert.equal(tags.get(encoding), fields.get('etag'));
      const tag = fields.get('etag') ?? '';
      const again = await app.inject({ target, fields: { 'accept-encoding': coding, 'if-none-match': tag } });
      assert.equal(again.status, 304);
    }
    assert.notEqual(tags.get('gzip'), tags.get(undefined), 'a tag is of one form');
  }
});

test('every reference in a file leads to an asset', () => {
  const assets = new Set(pageRoutes(false).map(({ path }) => path));
  const missing: string[] = [];
  for (const name of pageFiles) {
    for (const [, target = ''] of read(name).matchAll(/(?:src|href)="(page\/[^"]*)"/g)) {
      if (!assets.has(`/${target}`)) missing.push(`${name}: ${target}`);
    }
    for (const [, target = ''] of read(name).matchAll(/(?:\bfrom |\bimport\()'(\.[^']*)'/g)) {
      const path = resolved(name, target);
      if (path !== 'types.js' && !assets.has(`/-/page/${path}`)) missing.push(`${name}: ${target}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('the page never turns text into markup, and has no inline script or style', () => {
  const script = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|\.style\b/;
  for (const name of pageFiles) {
    const text = read(name);
    if (name.endsWith('.js')) {
      assert.doesNotMatch(text, script, name);
      assert.match(text, /^\/\/ @ts-check\n/, name);
    }
    if (/\.(html|svg)$/.test(name)) assert.doesNotMatch(text, /<style|\sstyle=|\son\w+=|javascript:|<script>/i, name);
  }
});

test('the content security policy allows only this server, and no script sinks', () => {
  const directives = contentSecurityPolicy.split('; ');
  assert.equal(directives[0], "default-src 'none'");
  assert.ok(directives.includes("require-trusted-types-for 'script'"));
  assert.doesNotMatch(contentSecurityPolicy, /unsafe|\*|data:|blob:|https?:/);
});

test('only a declaration with images lets the page load them from other hosts', async (t) => {
  const policyOf = async (format: 'image' | undefined, isNested = false): Promise<string | undefined> => {
    const photo = { kind: 'url', optional: true, ...(format && { format }) } as const;
    const field = isNested ? ({ kind: 'object', fields: { photo } } as const) : photo;
    const app = await createApp({ collections: [{ name: 'photos', fields: { field } }] });
    t.after(() => app.close());
    return (await app.inject({ target: '/' })).fields.get('content-security-policy');
  };
  assert.match((await policyOf('image')) ?? '', /img-src 'self' https:;/);
  assert.match((await policyOf('image', true)) ?? '', /img-src 'self' https:;/);
  assert.equal(await policyOf(undefined), contentSecurityPolicy);
});

test('the files of the first view stay small', () => {
  const needed = new Set(['index.html', 'page.css', 'icon.svg', 'app.js', 'views/keys.js']);
  for (const name of needed) {
    for (const [, module = ''] of read(name).matchAll(/^import [^']*'(\.[^']*)'/gm)) needed.add(resolved(name, module));
  }
  const bytes = [...needed].reduce((sum, name) => sum + gzipSync(read(name)).length, 0);
  assert.ok(bytes <= coldBytesMax, `the first view needs ${bytes} bytes`);
  const preloaded = [...read('index.html').matchAll(/modulepreload" href="-\/page\/([^"]*)"/g)].map(([, name]) => name);
  const modules = [...needed].filter((name) => name.endsWith('.js') && !['app.js', 'views/keys.js'].includes(name));
  assert.deepEqual(preloaded.sort(), modules.sort(), 'all of them are asked for at once');
});

test('no line of the page is longer than an editor shows', () => {
  const lines = pageFiles.flatMap((name) => read(name).split('\n').map((line) => ({ name, line })));
  assert.deepEqual(lines.filter(({ line }) => line.length > lineWidthMax), []);
});

test('every view of the route table can be drawn, and opened and closed if it keeps state', () => {
  const [table = ''] = /^const record =[^]*?^};/m.exec(read('app.js')) ?? [];
  const views = ['views/list.js', ...[...table.matchAll(/'\.\/(views\/.*?)'/g)].map(([, name = '']) => name)];
  assert.equal(views.length, 7);
  for (const name of views) {
    // The schema is only drawn, and the documentation stays as it was left.
    const lacking = { 'views/schema.js': ['open', 'close'], 'views/guide.js': ['close'] }[name] ?? [];
    for (const part of ['open', 'view', 'close'].filter((each) => !lacking.includes(each))) {
      const exported = new RegExp(`^export (?:const|function) ${part}\\b|^export \\{.*\\b${part}\\b[^\\w].*from`, 'm');
      assert.match(read(name), exported, `${name} has ${part}`);
    }
  }
});

test('each module with state of a person takes it back when the person signs out', () => {
  const states = pageFiles.filter((name) => name.startsWith('state/') && name !== 'state/reset.js');
  const without = states.filter((name) => !/^export (?:const|function) reset\b/m.test(read(name)));
  assert.deepEqual(without, ['state/change.js', 'state/changes.js'], 'only these have no state');
  const all = states.filter((name) => !without.includes(name)).map((name) => posix.basename(name, '.js')).sort();
  const imports = read('state/reset.js').matchAll(/^import \* as (\w+) from '\.\/\1\.js';$/gm);
  const imported = [...imports].map(([, name]) => name);
  assert.deepEqual(imported, all);
});

test('a module of the page imports only from its own floor and those below it, in no circle', () => {
  const floors = ['lib', 'api', 'state', 'views', '.'];
  const modules = pageFiles.filter((name) => name.endsWith('.js'));
  const importsOf = (name: string): string[] =>
    [...read(name).matchAll(/(?:^import [^;]*from |\bimport\()'(\.[^']*\.js)'(?!\)\.)/gm)]
      .map(([, target = '']) => resolved(name, target))
      .filter((target) => target !== 'types.js');
  const floorOf = (name: string): number => floors.indexOf(posix.dirname(name));
  const upward = modules.flatMap((name) =>
    importsOf(name).filter((target) => floorOf(target) > floorOf(name)).map((target) => `${name} imports ${target}`));
  assert.deepEqual(upward, []);
  const inCircle = modules.filter((name) => {
    const reached = new Set(importsOf(name));
    for (const each of reached) for (const next of importsOf(each)) reached.add(next);
    return reached.has(name);
  });
  assert.deepEqual(inCircle, []);
});
