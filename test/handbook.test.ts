import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, posix } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { exitMeanings } from '../src/base/errors.ts';
import { routeTable } from '../src/api/routes.ts';
import { limits } from '../src/base/limits.ts';
import { allCommands } from '../src/cli/commands.ts';
import { options, secrets } from '../src/config/config.ts';
import { settings } from '../src/config/settings.ts';
import { refusals } from '../src/store/recovery/cases.ts';
import { temporaryDirectory } from './.support/cli/spawn.ts';
import { filesBelow, projectDirectory, readSource, tokensOf } from './.support/source.ts';

/**
 * What README.md and src/README.md tell is held against the code. Blocks between `<!-- name -->` and `<!-- /name -->`
 * are made from it: HANDBOOK=write writes them anew.
 */
const pages = ['README.md', 'src/README.md'].filter((path) => existsSync(join(projectDirectory, path)));
const textOf = (page: string): string => readFileSync(join(projectDirectory, page), 'utf8');
const all = pages.map(textOf).join('\n');

const mostUsed = [
  'port', 'host', 'directory', 'collections', 'registration', 'tlsCert', 'tlsKey', 'trustedProxies', 'opsPort',
  'corsOrigins',
] as const;
const commands = await allCommands();
const made: Readonly<Record<string, () => readonly string[]>> = {
  routes: () => [
    '| Method and path | Who | What |',
    '|---|---|---|',
    ...Array.from(routeTable().values(), ({ method, path, access, summary }) =>
      row(`\`${method} ${path}\``, access, summary)),
  ],
  paths: () => [
    '| Path | Methods, and who may use them |',
    '|---|---|',
    ...Array.from(new Set(Array.from(routeTable().values(), ({ path }) => path)), (path) => {
      const routes = [...routeTable().values()].filter((route) => route.path === path);
      return row(`\`${path}\``, routes.map(({ method, access }) => `${method} ${access}`).join(', '));
    }),
  ],
  'most-used': () => [
    '| Option | Default | What it is for |',
    '|---|---|---|',
    ...mostUsed.map((key) => options[key]).map(({ name, placeholder, defaultText, help }) =>
      row(`\`--${name} ${placeholder}\``, defaultText, help)),
  ],
  options: () => [
    '| Option | Default | Allowed | What it is for |',
    '|---|---|---|---|',
    ...Object.entries(options).map(([key, { name, variable, placeholder, allowed, defaultText, help }]) => {
      const flag = placeholder === '' ? `--${name}` : `--${name} ${placeholder}`;
      const names = [flag, variable, ...(key in settings ? [key] : [])].map((text) => `\`${text}\``);
      return row(names.join(' '), defaultText, allowed, help);
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
    ...Object.entries(exitMeanings).map((cells) => row(...cells)),
  ],
  recovery: () => [
    '| Code | What was found | What to do |',
    '|---|---|---|',
    ...Object.entries(refusals).map(([label, { found, remedy }]) => row(label, found, remedy('DATA'))),
  ],
  limits: () => ['| Limit | Value | What it bounds |', '|---|---|---|', ...limitRows()],
};

/** Each limit with the comment that stands before it in its file. */
function limitRows(): string[] {
  const text = textOf('src/base/limits.ts');
  return Object.entries(limits).map(([name, value]) => {
    const pattern = new RegExp(`/\\*\\*\\s(?:\\s+\\* )?((?:(?!\\*/)[^])*?)\\s*\\*/\n  ${name}:`);
    const comment = pattern.exec(text)?.[1] ?? '';
    assert.ok(comment !== '', `${name} has no comment`);
    return row(`\`${name}\``, value.toLocaleString('en'), comment.replace(/\s*\n\s*\* /g, ' '));
  });
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

test('the table of what slows down attempts says what the code says', () => {
  const table = /\| Counted .*\n\|-.*\n((?:\|.*\n)+)/.exec(all)?.[1] ?? '';
  const told = [...table.matchAll(/\| (\d+) \| ([\d.]+) (s|min) \|$/gm)].map(([, burst, every, unit]) =>
    [Number(burst), Number(every) * (unit === 'min' ? 60 : 1)]);
  const code = textOf('src/auth/throttle.ts').matchAll(/new Rate\((\d+), ([\d.]+)\)/g);
  assert.deepEqual(told, Array.from(code, ([, burst, every]) => [Number(burst), Number(every)]));
  assert.equal(told.length, 11);
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

test('the trusted path has the size that is stated, and needs nothing of what may be skipped', () => {
  const block = /<!-- trusted-path -->\n(.*?)\n<!-- \/trusted-path -->\n\n(.*?)\n\n/s;
  const [, table = '', skipped = ''] = block.exec(all) ?? [];
  const named = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path = '']) => path);
  const closed = new Set(named);
  for (const path of closed) {
    const imports = readSource(path).imports.filter((specifier) => specifier.startsWith('.'));
    for (const specifier of imports) closed.add(posix.join(path, '..', specifier));
  }
  const sizeOf = (paths: Iterable<string>): number =>
    Array.from(paths, (path) => tokensOf(textOf(path))).reduce((sum, size) => sum + size, 0);
  const stated = [...all.matchAll(/(?:at most|are at most) ([\d,]+)(?: tokens\. With|\.\n\n<!-- trusted-path)/g)];
  const [bound, closedBound] = stated.map(([, figure = '']) => Number(figure.replace(',', '')));
  assert.ok(sizeOf(named) <= (bound ?? 0), `${sizeOf(named)} tokens are named`);
  assert.ok(sizeOf(closed) <= (closedBound ?? 0), `${sizeOf(closed)} tokens with all imports`);
  const folders = Array.from(skipped.matchAll(/`(src\/[\w/]+)`/g), ([, folder]) => `${folder}/`);
  assert.equal(folders.length, 6);
  assert.deepEqual([...closed].filter((path) => folders.some((folder) => path.startsWith(folder))), []);
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

/** Loads a program in TypeScript: by the loader that runs this test, or by tsx where the test is built. */
async function load(file: string): Promise<void> {
  const url = pathToFileURL(file).href;
  if (import.meta.filename.endsWith('.ts')) await import(url);
  else await (await import('tsx/esm/api')).tsImport(url, import.meta.url);
}

/** Whole programs: what an embedder would copy. They run as they stand, but for the package's name. */
const examples = [...all.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
for (const [index, code] of examples.entries()) {
  const [title = ''] = code.split('\n');
  test(`example ${index + 1} prints what it promises: ${title}`, async (t) => {
    const file = join(temporaryDirectory(t), 'example.mts');
    const entrance = join(import.meta.dirname, '..', 'src', `index${extname(import.meta.filename)}`);
    writeFileSync(file, code.replaceAll("'cairn-api'", JSON.stringify(entrance)));
    const promised = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, output = '']) => output);
    const printed: string[] = [];
    const log = t.mock.method(console, 'log', (...values: unknown[]) => void printed.push(values.join(' ')));
    await load(file);
    for (let waited = 0; printed.length < promised.length && waited < 100; waited += 1) await delay(20);
    log.mock.restore();
    assert.deepEqual(printed, promised);
  });
}

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

test('the alert rules are rules, and ask for figures that there are', async (t) => {
  const rules = /^```yaml\n(.*?)^```$/ms.exec(all)?.[1] ?? '';
  assert.equal(rules.match(/- alert:/g)?.length, 8);
  const figures = filesBelow('src', '.ts').map(textOf).join();
  for (const [name] of rules.matchAll(/cairn_\w+/g)) assert.ok(figures.includes(`'${name}'`), name);
  const file = join(temporaryDirectory(t), 'rules.yml');
  writeFileSync(file, rules);
  const { error, status, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('promtool is not to be had here');
  assert.equal(status, 0, stderr);
});

test('every test that is named stands in a file that the test script runs', () => {
  const run = filesBelow('test', '.test.ts');
  const named = [...all.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map(([, path = '']) => path);
  assert.deepEqual(named.filter((path) => !run.includes(path)), []);
});
