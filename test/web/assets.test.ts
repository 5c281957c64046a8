import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { createApp } from '../../src/app.ts';
import { contentSecurityPolicy, pageEndpoints } from '../../src/web/assets.ts';

const folder = new URL('../../src/web/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
const pageFiles = readdirSync(folder).filter((name) => /\.(html|css|js|svg)$/.test(name));
const lineWidthMax = 120;
const linesMax = 900;

test('every file of the page is served once, byte for byte, with a strong entity tag of its own', async (t) => {
  const app = await createApp();
  t.after(() => app.close());
  assert.equal(pageEndpoints(false).length, pageFiles.length);
  const tags = new Set<string>();
  for (const name of pageFiles) {
    const { body, fields } = await app.inject({ target: name === 'index.html' ? '/' : `/page/${name}` });
    assert.equal(body, read(name), name);
    assert.match(fields.get('etag') ?? '', /^"[\w-]{22}"$/);
    tags.add(fields.get('etag') ?? '');
  }
  assert.equal(tags.size, pageFiles.length);
});

test('what a file refers to is an asset', () => {
  const assets = new Set(pageEndpoints(false).map(({ route }) => route.path));
  const missing: string[] = [];
  for (const name of pageFiles) {
    for (const [, target = ''] of read(name).matchAll(/(?:src=|src: |href=|href: )["'](\/[^"']*)["']/g)) {
      if (!assets.has(target)) missing.push(`${name}: ${target}`);
    }
    for (const [, target = ''] of read(name).matchAll(/\bfrom '\.\/([^']*)'/g)) {
      if (!assets.has(`/page/${target}`)) missing.push(`${name}: ${target}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('the page makes no markup from text, and has no inline script or style', () => {
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

test('the policy allows this server alone, and no sinks', () => {
  const directives = contentSecurityPolicy.split('; ');
  assert.equal(directives[0], "default-src 'none'");
  assert.ok(directives.includes("require-trusted-types-for 'script'"));
  assert.doesNotMatch(contentSecurityPolicy, /unsafe|\*|data:|blob:|https?:/);
});

test('the page stays small enough to be read', () => {
  const lines = pageFiles.flatMap((name) => read(name).split('\n').slice(0, -1).map((line) => ({ name, line })));
  assert.ok(lines.length < linesMax, `the page has ${lines.length} lines`);
  assert.deepEqual(lines.filter(({ line }) => line.length > lineWidthMax), []);
});
