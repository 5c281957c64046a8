import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { version } from '../../src/base/version.ts';
import {
  listFiles, findFloor, readHandbook, listImports, parts, projectDirectory, readSource, resolveImport, toRoom,
  removeLiterals,
} from '../support/source.ts';

const lineWidthMax = 120;

/** Code that may stand in only one file, so that a test can replace it there. */
const reserved: readonly { what: string; pattern: RegExp; only: string }[] = [
  { what: 'Date.now', pattern: /\bDate\s*\.\s*now\b|\bnew Date\(\s*\)|\bDate\(\s*\)/, only: 'src/base/system.ts' },
  { what: 'performance', pattern: /\bperformance\s*\.|\bhrtime\b/, only: 'src/base/system.ts' },
  { what: 'randomness', pattern: /\bMath\s*\.\s*random\b/, only: 'src/base/system.ts' },
  {
    what: 'randomness',
    pattern: /\b(randomBytes|randomUUID|randomInt|randomFill|randomFillSync|getRandomValues|generateKeySync)\b/,
    only: 'src/base/system.ts',
  },
  {
    what: 'a timer',
    pattern: /(?<![\w.#])(set|clear)(Timeout|Interval|Immediate)\b(?!:)|['"]node:timers\b/,
    only: 'src/base/system.ts',
  },
  {
    what: 'process.env',
    pattern: /\bprocess\s*(\.\s*env\b|\[)|\{[^}]*\benv\b[^}]*\}\s*from\b/,
    only: 'src/config/read.ts',
  },
];

/** Escapes that make strict types worthless. `text` includes comments. */
const banned: readonly { what: string; pattern: RegExp; in: 'code' | 'text' }[] = [
  { what: 'any', pattern: /[:<,|&=(\[]\s*any\b(?!\s*([:(]|=>))/, in: 'code' },
  { what: 'a cast', pattern: /[\w)\]}'"`]\s+as\s+(?!const\b)/, in: 'code' },
  { what: 'a cast in angle brackets', pattern: /[=(,:]\s*<[\w.[\]]+>\s*[A-Za-z_$[{]/, in: 'code' },
  { what: 'a non-null assertion', pattern: /[\w)\]]!(?=[.,;)\]\s[(}])(?!\s*==?)/, in: 'code' },
  { what: 'eval', pattern: /\beval\(|\bnew Function\b/, in: 'code' },
  { what: 'a compiler switch', pattern: /@ts-(ignore|expect-error|nocheck)/, in: 'text' },
  { what: 'a barrel', pattern: /^\s*export\s+(type\s+)?(\*|\{[^}]*\})\s*(as\s+\w+\s+)?from\b/m, in: 'code' },
  { what: 'an enum', pattern: /^\s*(export\s+)?(declare\s+)?(const\s+)?(enum|namespace)\s+\w/m, in: 'code' },
];

/** The casts, by file. A comment above each says why it holds. */
const casts: Readonly<Record<string, number>> = {
  'src/base/record-id.ts': 1,
  'src/config/options.ts': 1,
  'src/store/memory/transaction.ts': 1,
  'src/programs/app.ts': 1,
  'src/programs/hooks.ts': 2,
  'src/programs/routes.ts': 1,
  'src/programs/write.ts': 1,
  'src/collections/define.ts': 2,
  'src/collections/declaration-file.ts': 1,
  'src/schema/stored.ts': 1,
  'src/schema/validate.ts': 1,
  'src/schema/declaration.ts': 1,
  'src/schema/record.ts': 1,
};

/** Folders whose code runs for callers, not only for the operator, who has the files. */
const serving = /^src\/(api|lists|features|options)\/(?!(cluster|offline|transfer)\/)/;

/** The reads of tables there that do not go through `collections/reader.ts`, by file. */
const roundTheReader: Readonly<Record<string, number>> = {
  // They apply the test of the reader to what they read.
  'src/lists/kept-orders.ts': 2,
  'src/lists/plan.ts': 4,
  // A removal takes along what is hidden from its caller, too; names in queries are known by all records.
  'src/options/references/references.ts': 1,
  'src/options/dialect/json-server.ts': 1,
  'src/options/dialect/relations.ts': 2,
  // A change of what no record decides about.
  'src/options/singles/singles.ts': 1,
  // The caller, and its keys.
  'src/api/account.ts': 1,
  'src/features/feed/feed.ts': 1,
  'src/features/keys/api-keys.ts': 7,
  'src/features/keys/keys.ts': 2,
};

/** Counts the places where code reads a table: its published records, or a view of them in a transaction. */
function tableReads(code: string): number {
  const names = Array.from(code.matchAll(/\bconst (\w+) = tx\s*\.of\(/g), ([, name]) => name);
  const tables = ['\\w*[rR]ecords', 'apiKeys', 'users', 'published', 'tx\\s*\\.of\\([^()]*\\)', ...names].join('|');
  const methods = 'get|withId|find|members|latest|view|referring|countAtMost|follow';
  return [...code.matchAll(new RegExp(`(?<!\\w)#?(?:${tables})\\s*\\??\\.\\s*(?:${methods})\\(`, 'g'))].length;
}

/** Has no values, which could be cast: its members are renamed by `as`. */
const onlyTypes = 'src/programs/types.ts';

const source = listFiles('src', '.ts').map(readSource);
const byPath = new Map(source.map((file) => [file.path, file]));

test('every source file stands on a floor', () => {
  const homeless = source.map((file) => toRoom(file.path)).filter((room) => findFloor(room) === undefined);
  assert.deepEqual(homeless, []);
});

test('imports go to a lower floor, or stay in the folder', () => {
  const wrong: string[] = [];
  for (const file of source) {
    for (const target of listImports(file)) {
      const [from, to] = [toRoom(file.path), toRoom(target)];
      const [floorFrom, floorTo] = [findFloor(from) ?? 0, findFloor(to) ?? 0];
      if (from !== to && floorTo >= floorFrom) wrong.push(`${file.path} → ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('imports name a file that exists, a part of Node.js with "node:", and no package', () => {
  const wrong: string[] = [];
  for (const file of source) {
    for (const specifier of file.imports) {
      const good = specifier.startsWith('.')
        ? byPath.has(resolveImport(file, specifier))
        : specifier.startsWith('node:') && isBuiltin(specifier);
      if (!good) wrong.push(`${file.path}: ${specifier}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('no import cycles, those of types included', () => {
  assert.deepEqual(findCycle(new Map(source.map((file) => [file.path, listImports(file)]))), []);
  assert.deepEqual(findCycle(new Map([['a', ['b']], ['b', ['c']], ['c', ['b']]])), ['b', 'c', 'b']);
});

test('a part of the options or features is named in one place alone, types included', () => {
  const named = new Set<string>();
  for (const file of source) {
    for (const target of listImports(file)) {
      const room = toRoom(target);
      if (parts.test(room) && room !== toRoom(file.path)) named.add(`${file.path} → ${room}`);
    }
  }
  const rooms = new Set(source.map(({ path }) => toRoom(path)).filter((room) => parts.test(room)));
  // Work that only commands do is imported only by the file of these commands.
  const ofCommands = new Map([['src/options/transfer', 'cli/transfer'], ['src/options/offline', 'cli/place']]);
  const wanted = Array.from(rooms, (room) => `src/${ofCommands.get(room) ?? 'app/parts'}.ts → ${room}`);
  assert.deepEqual([...named].sort(), wanted.sort());
});

test('a reader of one machine meets no word of a cluster, but for the options and commands that name one', () => {
  const allowed = /^src\/(options\/cluster|config|cli)\/|^src\/(app|programs)\/(options|parts|part-types)\.ts$/;
  const word = /[Cc]luster|etcd|\bnodes\b|\b([Aa]n?|any|another|each|every|no|one|other|[Tt]he|this) node\b/;
  const files = source.filter(({ path }) => !allowed.test(path));
  assert.deepEqual(files.filter(({ text }) => word.test(text)).map(({ path }) => path), []);
});

test('every file is reached from main.ts or index.ts', () => {
  const roots = ['src/main.ts', 'src/index.ts'];
  const reached = new Set(roots);
  for (const path of reached) {
    for (const target of listImports(byPath.get(path))) reached.add(target);
  }
  assert.deepEqual(source.map((file) => file.path).filter((path) => !reached.has(path)), []);
});

test('time, randomness and the environment are asked for in one file each', () => {
  const wrong: string[] = [];
  for (const { what, pattern, only } of reserved) {
    for (const file of source) {
      const line = lineOf(file.code, pattern);
      if (file.path !== only && line > 0) wrong.push(`${file.path}:${line}: ${what} belongs in ${only}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('files are listed and looked at without fs/promises, whose denials end Node.js 22.18', () => {
  const ending = /import [^;]*\b(copyFile|readdir|stat|statfs)\b[^;]*from 'node:fs\/promises'/;
  const files = source.filter(({ path }) => path !== 'src/store/disk/node-files.ts');
  assert.deepEqual(files.filter(({ text }) => ending.test(text)).map(({ path }) => path), []);
});

test('nothing weakens the types', () => {
  const wrong: string[] = [];
  for (const rule of banned) {
    for (const file of source) {
      const line = lineOf(rule.in === 'text' ? file.text : withoutRenames(file.code), rule.pattern);
      // The package's entrance is there to re-export.
      if (rule.what === 'a barrel' && file.path === 'src/index.ts') continue;
      if (rule.what === 'a cast' && (file.path in casts || file.path === onlyTypes)) continue;
      if (line > 0) wrong.push(`${file.path}:${line}: ${rule.what}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('a cast that cannot be proven says why it holds, and there are no others', () => {
  const pattern = new RegExp(banned.find(({ what }) => what === 'a cast')?.pattern ?? '', 'g');
  for (const [path, count] of Object.entries(casts)) {
    const file = byPath.get(path);
    assert.ok(file, path);
    // `as unknown as T` is one cast.
    const code = withoutRenames(file.code).replaceAll('as unknown as', 'as');
    const found = [...code.matchAll(pattern)].map(({ index, 0: text }) => code.slice(0, index + text.length));
    assert.equal(found.length, count, path);
    for (const before of found) {
      const line = before.split('\n').length;
      assert.match(file.text.split('\n')[line - 2] ?? '', /^\s*\/\/ /, `${path}:${line}`);
    }
  }
});

test('where callers are served, records are reached by the reader that knows what they may see', () => {
  const found = source.filter(({ path }) => serving.test(path))
    .map(({ path, code }) => [path, tableReads(code)] as const).filter(([, count]) => count > 0);
  assert.deepEqual(Object.fromEntries(found), roundTheReader);
  const reads = [
    'records.get(1)', 'of.records.withId(id)', 'tx.of(to.records).find(a, b)', 'const own = tx.of(all); own.members(a)',
    'records.view().blocks', 'tx\n  .of(records)\n  .referring(a, b)', 'collection.records.latest(3)',
  ];
  for (const code of reads) assert.equal(tableReads(code), 1, code);
  for (const code of ['reader.withId(id)', 'fields.get(a)', 'makeReader(of, by, a).members(a)', 'names.find(isOwn)'])
    assert.equal(tableReads(code), 0, code);
});

test('the rules themselves catch what they name, and let pass what is fine', () => {
  const caught: readonly [string, string][] = [
    ['any', 'const a: any = 1;'], ['any', 'let b: Map<string, any>;'], ['a cast', 'const c = d as string;'],
    ['a cast', 'f(x as unknown as Y)'], ['a cast in angle brackets', 'const e = <Foo>bar;'],
    ['a non-null assertion', 'a.b!.c'], ['a non-null assertion', 'f(x[0]!)'], ['eval', 'eval("1")'],
    ['a compiler switch', '// @ts-ignore'], ['a barrel', "export * from './a.ts';"],
    ['a barrel', "export { a } from './a.ts';"], ['an enum', 'export const enum A {}'],
  ];
  for (const [what, text] of caught) {
    const code = withoutRenames(removeLiterals(text));
    assert.ok(banned.some((rule) => rule.what === what && rule.pattern.test(rule.in === 'text' ? text : code)), text);
  }
  const fine = [
    'const a = [1] as const;', "import { a as b } from './a.ts';", 'if (a !== b && !c) d();', "const s = 'x as y';",
    '// as any, as ever', 'const f = <T>(x: T) => x;', '/a as b/.test(s)', '`${a} as ${b}`', 'x satisfies Y',
    'a != null',
  ];
  for (const text of fine) {
    const code = withoutRenames(removeLiterals(text));
    const trips = banned.filter((rule) => rule.pattern.test(rule.in === 'text' ? text : code));
    assert.deepEqual(trips.map((rule) => rule.what), [], text);
  }
  const calls = ['Date.now()', 'new Date()', 'performance.now()', 'Math.random()', 'randomUUID()', 'process.env.X'];
  for (const text of calls) {
    assert.ok(reserved.some((rule) => rule.pattern.test(text)), text);
  }
});

test('no line is wider than a screen', () => {
  const files = [...source, ...listFiles('test', '.ts').map(readSource)];
  const wide = files.flatMap((file) => file.text.split('\n')
    .flatMap((line, index) => (line.length > lineWidthMax ? [`${file.path}:${index + 1}`] : [])));
  assert.deepEqual(wide, []);
});

test('no packages at run time, and three to develop with', () => {
  const manifest: unknown = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8'));
  assert.ok(typeof manifest === 'object' && manifest !== null);
  assert.deepEqual('dependencies' in manifest ? manifest.dependencies : {}, {});
  for (const kind of ['optionalDependencies', 'peerDependencies', 'bundleDependencies', 'bundledDependencies']) {
    assert.ok(!(kind in manifest), kind);
  }
  assert.ok('devDependencies' in manifest && typeof manifest.devDependencies === 'object');
  assert.deepEqual(Object.keys(manifest.devDependencies ?? {}).sort(), ['@types/node', 'tsx', 'typescript']);
  assert.ok('scripts' in manifest && typeof manifest.scripts === 'object');
  const runUnasked = /^(pre|post)?(install|publish)|^prepare/; // packing writes the licence, and is asked for
  assert.deepEqual(Object.keys(manifest.scripts ?? {}).filter((name) => runUnasked.test(name)), []);
});

test('the version in the code is the one of the package, of the README and of the newest changes', () => {
  const manifest: unknown = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8'));
  assert.equal(Object(manifest).version, version);
  assert.ok(readHandbook().includes(`npm install ./cairn-api-${version}.tgz`));
  assert.ok(readHandbook().includes(`\n## ${version}\n`));
});

test('the top of the project holds what was agreed, and nothing else', (t) => {
  const agreed = ['src', 'test', 'data', 'package.json', 'package-lock.json', 'tsconfig.json', 'README.md'];
  // Files that somebody has added, such as the README's examples, are not in git.
  const { status, stdout } = spawnSync('git', ['ls-files'], { cwd: projectDirectory, encoding: 'utf8' });
  if (status !== 0) return t.skip('this is no clone');
  const names = [...new Set(stdout.trim().split('\n').map((path) => path.split('/')[0] ?? ''))];
  assert.deepEqual(names.filter((name) => !name.startsWith('.') && !agreed.includes(name)), []);
  assert.deepEqual(agreed.filter((name) => !names.includes(name)), []);
});

/** The first cycle of the graph as a path that ends where it began; empty where there is none. */
function findCycle(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]): string[] => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (done.has(node)) return [];
    for (const next of edges.get(node) ?? []) {
      const cycle = visit(next, [...path, node]);
      if (cycle.length > 0) return cycle;
    }
    done.add(node);
    return [];
  };
  for (const node of edges.keys()) {
    const cycle = visit(node, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

/** `import { a as b }`, `import * as a` and `[K in keyof T as …]` rename; they cast nothing. */
function withoutRenames(code: string): string {
  return code.replace(/\bimport\b[^;'"]*?\bfrom\b|\bin keyof \w+ as\b/g, (clause) => clause.replace(/\bas\b/g, '  '));
}

/** The number of the first line where `pattern` begins; 0 where it does not occur. */
function lineOf(text: string, pattern: RegExp): number {
  const match = pattern.exec(text);
  return match === null ? 0 : text.slice(0, match.index).split('\n').length;
}
