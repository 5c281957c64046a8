import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  appendices,
  cut,
  decidesNothing,
  harmlessParts,
  readImports,
  lists,
  listLazyModules,
  readPage,
  splitBlock,
  measureFile,
} from '../support/handbook.ts';

/** The imports of values by `files` that `isAllowed` does not allow. */
function escaping(files: readonly string[], isAllowed: (path: string) => boolean): string[] {
  return files.flatMap((path) =>
    readImports(path).values.filter((target) => !isAllowed(target)).map((target) => `${path} → ${target}`));
}

const access = Object.keys(lists.access.files);
const disk = Object.keys(lists.disk.files);
const nothing = Object.keys(decidesNothing);

test('who may do what: the list needs nothing that it does not name, but the store and what decides nothing', () => {
  const known = new Set([...access, ...disk, ...nothing]);
  assert.deepEqual(escaping(access, (path) => known.has(path)), []);
  assert.deepEqual(access.filter((path) => path.startsWith('src/store/')), [cut]);
});

test('what is believed of a disk: the list needs nothing that it does not name, but the same', () => {
  const needs = Object.keys(lists.disk.needs);
  const known = new Set([cut, ...disk, ...needs, ...nothing]);
  assert.deepEqual(needs.filter((path) => !access.includes(path) || disk.includes(path)), []);
  assert.deepEqual(escaping(disk, (path) => known.has(path)), []);
});

test('what decides nothing is needed, and needs nothing beyond both lists', () => {
  const known = new Set([...access, ...disk, ...nothing]);
  assert.deepEqual(escaping(nothing, (path) => known.has(path)), []);
  assert.deepEqual(nothing.filter((path) => access.includes(path) || disk.includes(path)), []);
  const needed = new Set([...known].flatMap((path) => readImports(path).values));
  assert.deepEqual(nothing.filter((path) => !needed.has(path)), []);
});

test('whatever is loaded by import() or by programs is on a list, an appendix, or decides nothing', () => {
  const parts = [...access, ...disk, ...nothing, ...Object.keys(appendices), ...Object.keys(harmlessParts)];
  const later = listLazyModules();
  assert.deepEqual(later.filter((path) => !parts.some((part) => path.startsWith(part))), []);
  const named = Object.keys({ ...appendices, ...harmlessParts });
  assert.deepEqual(named.filter((part) => !later.some((path) => path.startsWith(part))), []);
});

test('an import of values is told from one of types, and from one that comes later', () => {
  assert.ok(readImports('src/api/authenticate.ts').values.includes('src/auth/access.ts'));
  assert.ok(!readImports('src/api/pipeline.ts').values.includes('src/http/message.ts'), 'types alone');
  assert.ok(readImports('src/store/recovery/recover.ts').later.includes('src/store/recovery/salvage.ts'));
});

test('the sizes that the reference states are about right', () => {
  for (const name of ['trusted-access', 'trusted-disk', 'trusted-appendices']) {
    const [, block = ''] = splitBlock(readPage(name), name) ?? [];
    for (const [, path = '', stated = ''] of block.matchAll(/^\| `(src\/[^`]+)` \| ([\d,]+) \|/gm)) {
      const size = measureFile(path);
      const off = Math.abs(Number(stated.replaceAll(',', '')) - size);
      assert.ok(off <= Math.max(200, size / 5), `${path} has ${size}: renew it by "node .ci/programs/manual.ts"`);
    }
  }
});
