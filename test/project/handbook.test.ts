import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { extname, join, posix } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { CairnError, FatalError } from '../../src/base/errors.ts';
import { toFailure } from '../../src/cli/failure.ts';
import { refusals, type RefusalLabel } from '../../src/store/recovery/cases.ts';
import { StoreDamageError } from '../../src/store/recovery/damage-error.ts';
import { loaderFlags, temporaryDirectory } from '../support/cli/spawn.ts';
import { drawFloors, listFiles, listPages, projectDirectory } from '../support/source.ts';
import { examples, readPage, splitBlock, readProjectFile, generateBlocks } from '../support/handbook.ts';

/** Compares README.md and the pages of the manual with the code. */
const all = listPages().map(readProjectFile).join('\n');

test('the table of what slows down attempts says what the code says', () => {
  const table = /\| Counted .*\n\|-.*\n((?:\|.*\n)+)/.exec(all)?.[1] ?? '';
  const told = [...table.matchAll(/\| (\d+) \| ([\d.]+) (s|min) \|$/gm)].map(([, burst, every, unit]) =>
    [Number(burst), Number(every) * (unit === 'min' ? 60 : 1)]);
  const code = readProjectFile('src/auth/throttle.ts').matchAll(/^  \w+: \[(\d+), ([\d.]+)\],$/gm);
  assert.deepEqual(told, Array.from(code, ([, burst, every]) => [Number(burst), Number(every)]));
  assert.equal(told.length, 4);
});

/** The sizes of files change with every commit: the test of the trusted path asks whether they are about right. */
const withoutSizes = (block = ''): string => block.replace(/^(\| (?:`src\/[^`]+`|together) \|) [\d,]+ \|/gm, '$1 n |');

for (const [name, block] of await generateBlocks()) {
  test(`the block "${name}" says what the code says`, () => {
    const [, found] = splitBlock(readPage(name), name) ?? [];
    assert.equal(withoutSizes(found), withoutSizes(block), 'renew it by "node .ci/programs/manual.ts"');
  });
}

test('the picture of the floors is made from the imports', () => {
  assert.equal(readProjectFile('src/docs/architecture.svg'), drawFloors(), 'renew it by "node .ci/programs/manual.ts"');
});

/** Includes the pages outside the manual. */
const linked = [...listPages(), 'src/README.md', 'test/README.md', '.github/CONTRIBUTING.md', '.github/SECURITY.md'];

test('no line of a page is wider than 140 columns, but for rows of tables and answers of the server', () => {
  const wide = linked.flatMap((page) => readProjectFile(page).split('\n').flatMap((line, index) =>
    line.length > 140 && !/^ *\||^\[\{"/.test(line) ? [`${page}:${index + 1}`] : []));
  assert.deepEqual(wide, []);
});

test('every file, test and link that the pages name is there', () => {
  const wrong: string[] = [];
  for (const page of linked) {
    const text = readProjectFile(page);
    for (const [, path = ''] of text.matchAll(/`((?:src|test|\.ci)\/[\w./-]+)`/g)) {
      if (!existsSync(join(projectDirectory, path))) wrong.push(`${page}: ${path}`);
    }
    for (const [, target = ''] of text.matchAll(/\]\(((?!http)[^)#]+)(?:#[^)]*)?\)/g)) {
      if (!existsSync(join(projectDirectory, page, '..', target))) wrong.push(`${page}: ${target}`);
    }
    // A claim that names its test, `test/auth/jws.test.ts` "how a title begins": of a test, or of a row of its table.
    for (const [, path = '', title = ''] of text.matchAll(/`((?:test|\.ci)\/[\w./-]+\.ts)` "([^"]+)"/g)) {
      const escaped = title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
      const titled = new RegExp(`(?:\\b(?:test|it|refuses|answers)\\(|[[{]\\s*)['"\`]${escaped}`);
      if (!titled.test(readProjectFile(path))) wrong.push(`${page}: ${path} has no "${title}"`);
    }
  }
  assert.deepEqual(wrong, []);
});

/** The anchors of a page, as GitHub makes them of its headings. */
const anchorsOf = (page: string): string[] => Array.from(
  readProjectFile(page).replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm),
  ([, heading = '']) => heading.toLowerCase().replace(/[^\w -]/g, '').replaceAll(' ', '-'),
);

test('every place of a page that a link names is there', () => {
  const wrong = linked.flatMap((page) =>
    Array.from(readProjectFile(page).matchAll(/\]\(([^)#]*)#([^)]*)\)/g), ([, path = '', anchor = '']) =>
      ({ page, path, anchor })))
    .filter(({ page, path, anchor }) =>
      !path.startsWith('http') && !anchorsOf(path === '' ? page : posix.join(page, '..', path)).includes(anchor));
  assert.deepEqual(wrong, []);
});

const [, atNight = ''] = /^## At night\n(.*?)^## /ms.exec(all) ?? [];
const screens = atNight.split(/^### /m).slice(1);

test('each of the eleven screens says what is seen, what it means and what to type, and fits a screen', () => {
  assert.equal(screens.length, 11);
  for (const screen of screens) {
    const [title] = screen.split('\n');
    for (const part of [/\bmeans?\b/, /\*\*To type[:,]/, /^```sh\n.+/m]) assert.match(screen, part, title);
    assert.ok(screen.trim().split('\n').length <= 36, `${title} is longer than a screen`);
  }
});

test('every line that ends a process ends in the address of its screen, but for a wrong call', () => {
  const full = Object.assign(new Error('ENOSPC: no'), { code: 'ENOSPC', syscall: 'open' });
  const labels = Object.keys(refusals) as RefusalLabel[];
  const failures: (readonly [error: unknown, screen: string])[] = [
    ...([70, 74, 75, 78] as const).map((code) => [new FatalError(code, 'Cannot'), 'does-not-start'] as const),
    ...labels.map((label) => [new StoreDamageError('d', { label, file: 'f' }, refusals[label]), 'damaged'] as const),
    [full, 'disk-is-full'], [new CairnError('storage_full', 'Cannot'), 'disk-is-full'],
    [new TypeError('x'), 'does-not-start'], ['x', 'does-not-start'],
  ];
  for (const [error, screen] of failures) {
    assert.ok(toFailure(error)[1].endsWith(` (see src/docs/troubleshooting.md#${screen})`), toFailure(error)[1]);
    assert.ok(anchorsOf('src/docs/troubleshooting.md').includes(screen), screen);
  }
  for (const path of ['src/main.ts', 'src/cli/serve.ts']) {
    assert.ok(/troubleshooting\.md#does-not-start/.test(readProjectFile(path)), path);
  }
  for (const code of [64, 65] as const) assert.deepEqual(toFailure(new FatalError(code, 'Cannot')), [code, 'Cannot']);
});

/** True if tsx has to translate the source. */
const isTranslated = loaderFlags.length > 0 && extname(import.meta.filename) === '.ts';

/** Recipes with packages of others are run by the release suite. */
const alone = examples.filter(({ packages }) => packages.length === 0);
for (const { title, code, promised } of alone) {
  const skip = isTranslated && code.includes('new Worker') && 'tsx translates nothing for a worker';
  test(`an example prints what it promises: ${title}`, { skip }, async (t) => {
    const file = join(temporaryDirectory(t), 'example.mjs');
    const entrance = join(import.meta.dirname, '..', '..', 'src', `index${extname(import.meta.filename)}`);
    writeFileSync(file, code.replaceAll("'cairn-api'", JSON.stringify(entrance)));
    const printed: string[] = [];
    const log = t.mock.method(console, 'log', (...values: unknown[]) => void printed.push(values.join(' ')));
    await import(pathToFileURL(file).href);
    for (let waited = 0; printed.length < promised.length && waited < 1500; waited += 1) await delay(20);
    log.mock.restore();
    assert.deepEqual(printed, promised);
  });
}

test('the systemd unit is one', (t) => {
  const unit = /^```ini\n(\[Unit\]\nDescription=Cairn\n.*?)^```$/ms.exec(all)?.[1];
  assert.ok(unit);
  const file = join(temporaryDirectory(t), 'cairn.service');
  writeFileSync(file, unit);
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('there is no systemd here');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /cairn\.service/);
});

test('the alert rules are rules, and ask for figures that there are', async (t) => {
  const rules = /^```yaml\n(groups:\n.*?)^```$/ms.exec(all)?.[1] ?? '';
  assert.equal(rules.match(/- alert:/g)?.length, 10);
  const figures = listFiles('src', '.ts').map(readProjectFile).join();
  for (const [name] of rules.matchAll(/cairn_\w+/g)) assert.ok(figures.includes(`'${name}'`), name);
  const file = join(temporaryDirectory(t), 'rules.yml');
  writeFileSync(file, rules);
  const { error, status, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('promtool is not to be had here');
  assert.equal(status, 0, stderr);
});

test('every test that is named stands in a file that the test script runs', () => {
  const run = listFiles('test', '.test.ts');
  const named = [...all.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map(([, path = '']) => path);
  assert.deepEqual(named.filter((path) => !run.includes(path)), []);
});
