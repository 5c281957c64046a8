/**
 * The blocks of the README and of the manual that are made from the code. Each stands between `<!-- name -->` and
 * `<!-- /name -->`. As a program, this writes them anew: `node test/support/handbook.ts`.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exitMeanings } from '../../src/base/errors.ts';
import { allRoutes } from './routes.ts';
import { describe } from '../../src/features/openapi/summaries.ts';
import { limits } from '../../src/base/limits.ts';
import { allCommands } from '../../src/cli/commands.ts';
import { clusterOptions, options, settings } from '../../src/config/options.ts';
import { secrets } from '../../src/config/read.ts';
import { refusals } from '../../src/store/recovery/cases.ts';
import { pages, projectDirectory } from './source.ts';
import {
  appendices, decidesNothing, lists, sizeOf, sizeOfAll, type Reading,
} from './trusted-path.ts';

export const projectText = (path: string): string => readFileSync(join(projectDirectory, path), 'utf8');

/** A page in three parts: up to a block, the block, and the rest. */
export function partsOf(page: string, name: string): readonly [string, block: string, string] | undefined {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const [text, start] = [projectText(page), projectText(page).indexOf(open)];
  const end = text.indexOf(close, start);
  if (start === -1 || end === -1) return undefined;
  const begin = start + open.length;
  return [text.slice(0, begin), text.slice(begin, end), text.slice(end)];
}

/** The only page with a block. */
export function pageWith(name: string): string {
  const [page, ...others] = pages.filter((each) => partsOf(each, name) !== undefined);
  assert.ok(page !== undefined && others.length === 0, `one page has the block "${name}"`);
  return page;
}

const mostUsed = [
  'port', 'host', 'directory', 'collections', 'registration', 'tlsCert', 'tlsKey', 'trustedProxies',
  'corsOrigins',
] as const;
const commands = await allCommands();
const routes = allRoutes();

/** The paths that have the same methods for the same callers. */
function pathsByMethods(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const path of new Set(routes.map((route) => route.path))) {
    const own = routes.filter((route) => route.path === path);
    const methods = own.map(({ method, access }) => `${method} ${[access].flat().join(' or ')}`).join(', ');
    found.set(methods, [...(found.get(methods) ?? []), path]);
  }
  return found;
}

/** Makes the lines of each block. */
const blocks: Readonly<Record<string, () => readonly string[]>> = {
  routes: () => [
    '| Method and path | Who | What |',
    '|---|---|---|',
    ...describe(routes).map(({ method, path, access, summary }) =>
      row(`\`${method} ${path}\``, [access].flat().join(', '), summary)),
  ],
  paths: () => [
    '| Path | Methods, and who may use them |',
    '|---|---|',
    ...Array.from(pathsByMethods(), ([methods, paths]) => row(paths.map((path) => `\`${path}\``).join(', '), methods)),
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
    ...Object.entries({ ...options, ...clusterOptions }).map(([key, option]) => {
      const { name, variable, placeholder, allowed, defaultText, help } = option;
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
  'trusted-access': () => reading(lists.access.files),
  'trusted-disk': () => reading(lists.disk.files),
  'trusted-appendices': () => reading(appendices),
  'trusted-nothing': () => [
    '| File | What it does |',
    '|---|---|',
    ...Object.entries({ ...decidesNothing, ...lists.disk.needs }).map(([path, what]) => row(`\`${path}\``, what)),
  ],
  limits: () => ['| Limit | Value | What it bounds |', '|---|---|---|', ...limitRows()],
};

/** Files in the order in which to read them, with their sizes in hundreds, which not every commit changes. */
function reading(files: Reading): string[] {
  return [
    '| File | Tokens, about | What to look for |',
    '|---|--:|---|',
    ...Object.entries(files).map(([path, what]) => row(`\`${path}\``, about(sizeOf(path)), what)),
    row('together', about(sizeOfAll(files)), ''),
  ];
}

const about = (size: number): string => (Math.ceil(size / 100) * 100).toLocaleString('en');

/** What each block should say. */
export const wanted: ReadonlyMap<string, string> = new Map(
  Object.entries(blocks).map(([name, make]) => [name, make().map((line) => `${line}\n`).join('')]),
);

/** Each limit with the comment before it, which no program can ask for. */
function limitRows(): string[] {
  const text = projectText('src/base/limits.ts');
  return Object.entries(limits).map(([name, value]) => {
    const [before = ''] = text.split(`\n  ${name}:`);
    const comment = before.endsWith('*/') ? before.slice(before.lastIndexOf('/**')) : '';
    // Without the stars of its lines.
    const sentences = comment.split('\n').map((line) => line.replace(/^\s*\/?\*+\/?|\*\/$/g, '').trim());
    return row(`\`${name}\``, value.toLocaleString('en'), sentences.filter(Boolean).join(' '));
  });
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, block] of wanted) {
    const page = pageWith(name);
    const [before = '', , after = ''] = partsOf(page, name) ?? [];
    writeFileSync(join(projectDirectory, page), before + block + after);
  }
}
