import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { exitMeanings } from '../src/cli/command.ts';
import { routeTable } from '../src/api/routes.ts';
import { limits } from '../src/base/limits.ts';
import { commands } from '../src/cli/commands.ts';
import { options, secrets } from '../src/config.ts';
import { temporaryDirectory } from './cli/spawn.ts';
import { filesBelow, projectDirectory } from './source.ts';

/**
 * What README.md and src/README.md tell is held against the code. Blocks between `<!-- name -->` and `<!-- /name -->`
 * are made from it: HANDBOOK=write writes them anew.
 */
const pages = ['README.md', 'src/README.md'].filter((path) => existsSync(join(projectDirectory, path)));
const textOf = (page: string): string => readFileSync(join(projectDirectory, page), 'utf8');
const all = pages.map(textOf).join('\n');

const made: Readonly<Record<string, () => readonly string[]>> = {
  routes: () => [
    '| Method and path | Who | What |',
    '|---|---|---|',
    ...Array.from(routeTable().values(), ({ method, path, access, summary }) =>
      row(`\`${method} ${path}\``, access, summary)),
  ],
  options: () => [
    '| Option | Default | Allowed | What it is for |',
    '|---|---|---|---|',
    ...Object.values(options).map(({ name, variable, placeholder, defaultText, allowed, help }) => {
      const flag = placeholder === '' ? `--${name}` : `--${name} ${placeholder}`;
      return row(`\`${flag}\` \`${variable}\``, defaultText, allowed, help);
    }),
    ...Object.entries(secrets).map(([name, help]) =>
      row(`\`${name}\` \`${name}_FILE\``, '', 'a secret: no flag', help)),
  ],
  commands: () => [
    '| Command | What it does |',
    '|---|---|',
    ...commands.map(({ name, operands = [], summary }) =>
      row(`\`${['cairn', name, ...operands].join(' ')}\``, summary)),
  ],
  'exit-codes': () => [
    '| Exit code | What it means |',
    '|--:|---|',
    ...Array.from(exitMeanings, ([code, meaning]) => row(String(code), meaning)),
  ],
  limits: () => ['| Limit | Value | What it bounds |', '|---|---|---|', ...limitRows()],
  'trusted-path': () => {
    const table = /<!-- trusted-path -->\n(.*?)\n<!-- \/trusted-path -->/s.exec(all)?.[1]?.split('\n') ?? [];
    return table.map((line) => line.replace(/^\| `([^`]+)` \|[^|]*\|/, (_, path: string) =>
      `| \`${path}\` | ${linesOf(path)} |`));
  },
};

/** Each limit with the comment that stands before it in its file. */
function limitRows(): string[] {
  const text = textOf('src/base/limits.ts');
  return Object.entries(limits).map(([name, value]) => {
    const comment = new RegExp(`/\\*\\* ((?:(?!\\*/)[^])*) \\*/\n  ${name}:`).exec(text)?.[1] ?? '';
    return row(`\`${name}\``, value.toLocaleString('en'), comment.replace(/\s*\n\s*\* /g, ' '));
  });
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function linesOf(path: string): number {
  return textOf(path).split('\n').length - 1;
}

test('the table of what slows down attempts says what the code says', () => {
  const table = /\| Counted by .*\n\|-.*\n((?:\|.*\n)+)/.exec(all)?.[1] ?? '';
  const told = [...table.matchAll(/\| (\d+) \| ([\d.]+) (s|min) \|$/gm)].map(([, burst, every, unit]) =>
    [Number(burst), Number(every) * (unit === 'min' ? 60 : 1)]);
  const code = textOf('src/auth/throttle.ts').matchAll(/burst: (\d+), everySeconds: ([\d.]+)/g);
  assert.deepEqual(told, Array.from(code, ([, burst, every]) => [Number(burst), Number(every)]));
  assert.equal(told.length, 5);
});

for (const [name, make] of Object.entries(made)) {
  test(`the block "${name}" says what the code says`, () => {
    const pattern = new RegExp(`(<!-- ${name} -->\n)(.*?)(<!-- /${name} -->)`, 's');
    const page = pages.find((path) => pattern.test(textOf(path)));
    assert.ok(page, `there is no block "${name}"`);
    const expected = make().map((line) => `${line}\n`).join('');
    if (process.env['HANDBOOK'] === 'write') {
      const renewed = textOf(page).replace(pattern, (_, open: string, __, close: string) => open + expected + close);
      writeFileSync(join(projectDirectory, page), renewed);
    }
    assert.equal(pattern.exec(textOf(page))?.[2], expected, `run this test with HANDBOOK=write to renew ${page}`);
  });
}

test('the trusted path is at most 1,500 lines', () => {
  const table = /<!-- trusted-path -->\n(.*?)\n<!-- \/trusted-path -->/s.exec(all)?.[1] ?? '';
  const paths = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path = '']) => path);
  assert.ok(paths.length > 5);
  const total = paths.reduce((sum, path) => sum + linesOf(path), 0);
  assert.ok(total <= 1500, `${total} lines`);
});

test('every file, test and link that the pages name is there', () => {
  const wrong: string[] = [];
  for (const page of pages) {
    const text = textOf(page);
    for (const [, path = ''] of text.matchAll(/`((?:src|test)\/[\w./-]+)`/g)) {
      if (!existsSync(join(projectDirectory, path))) wrong.push(`${page}: ${path}`);
    }
    for (const [, target = ''] of text.matchAll(/\]\(((?!http)[^)#]+)(?:#[^)]*)?\)/g)) {
      if (!existsSync(join(projectDirectory, page, '..', target))) wrong.push(`${page}: ${target}`);
    }
    // A claim that names its test, `test/auth/jws.test.ts` "how a title begins": of a test, or of a row of its table.
    for (const [, path = '', title = ''] of text.matchAll(/`(test\/[\w./-]+\.ts)` "([^"]+)"/g)) {
      const escaped = title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
      const titled = new RegExp(`(?:\\b(?:test|it|refuses|answers)\\(|[[{]\\s*)['"\`]${escaped}`);
      if (!titled.test(textOf(path))) wrong.push(`${page}: ${path} has no "${title}"`);
    }
  }
  assert.deepEqual(wrong, []);
});

/** Whole programs: what an embedder would copy. They run as they stand, but for the package's name. */
const examples = [...all.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
for (const [index, code] of examples.entries()) {
  const [title = ''] = code.split('\n');
  test(`example ${index + 1} prints what it promises: ${title}`, async (t) => {
    const file = join(temporaryDirectory(t), 'example.mts');
    writeFileSync(file, code.replaceAll("'cairn-api'", JSON.stringify(join(projectDirectory, 'src', 'index.ts'))));
    const promised = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, output = '']) => output);
    const printed: string[] = [];
    const log = t.mock.method(console, 'log', (...values: unknown[]) => void printed.push(values.join(' ')));
    await import(pathToFileURL(file).href);
    for (let waited = 0; printed.length < promised.length && waited < 100; waited += 1) await delay(20);
    log.mock.restore();
    assert.deepEqual(printed, promised);
  });
}

test('the table of what stops a start has each code of the store', () => {
  const thrown = filesBelow('src/store', '.ts').flatMap((path) =>
    [...textOf(path).matchAll(/'([A-Z]\d+)'/g)].map(([, code = '']) => code));
  const table = /^\| Code \| What was found .*\n\|[-|]*\n((?:\|.*\n)*)/m.exec(all)?.[1] ?? '';
  const told = [...table.matchAll(/^\| ([A-Z0-9 ]+) \|/gm)].flatMap(([, codes = '']) => codes.split(' '));
  assert.deepEqual(told.sort(), [...new Set(thrown)].sort());
});

test('the systemd unit is one', (t) => {
  const unit = /^```ini\n(.*?)^```$/ms.exec(all)?.[1];
  assert.ok(unit);
  const file = join(temporaryDirectory(t), 'cairn.service');
  writeFileSync(file, unit);
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('there is no systemd here');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /cairn\.service/);
});

test('every test that is named stands in a file that the test script runs', () => {
  const run = filesBelow('test', '.test.ts');
  const named = [...all.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map(([, path = '']) => path);
  assert.deepEqual(named.filter((path) => !run.includes(path)), []);
});
