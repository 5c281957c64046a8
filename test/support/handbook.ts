/**
 * The blocks of the README and of the manual that are made from the code. Each stands between `<!-- name -->` and
 * `<!-- /name -->`, and `node .ci/programs/manual.ts` writes them anew.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { exitMeanings } from '../../src/base/errors.ts';
import { limits } from '../../src/base/limits.ts';
import { systemClock } from '../../src/base/system.ts';
import { allCommands } from '../../src/cli/commands.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { clusterOptions, options, settings } from '../../src/config/options.ts';
import { secrets } from '../../src/config/read.ts';
import { describe } from '../../src/features/openapi/operations.ts';
import { refusals } from '../../src/store/recovery/cases.ts';
import { temporaryDirectory } from './cli/spawn.ts';
import { allRoutes } from './contract.ts';
import { createApp } from './inside.ts';
import { listFiles, readHandbook, listPages, projectDirectory, readSource, countTokens } from './source.ts';

export const readProjectFile = (path: string): string => readFileSync(join(projectDirectory, path), 'utf8');

/** A page in three parts: up to a block, the block, and the rest. */
export function splitBlock(page: string, name: string): readonly [string, block: string, string] | undefined {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const [text, start] = [readProjectFile(page), readProjectFile(page).indexOf(open)];
  const end = text.indexOf(close, start);
  if (start === -1 || end === -1) return undefined;
  const begin = start + open.length;
  return [text.slice(0, begin), text.slice(begin, end), text.slice(end)];
}

/** The only page with a block. */
export function readPage(name: string): string {
  const [page, ...others] = listPages().filter((each) => splitBlock(each, name) !== undefined);
  assert.ok(page !== undefined && others.length === 0, `one page has the block "${name}"`);
  return page;
}

const mostUsed = [
  'port', 'host', 'directory', 'collections', 'registration', 'tlsCert', 'tlsKey', 'trustedProxies',
  'corsOrigins',
] as const;
/** Sources of blocks that take time to compute. */
interface Made {
  readonly commands: Awaited<ReturnType<typeof allCommands>>;
  readonly routes: Awaited<ReturnType<typeof allRoutes>>;
}

/** The paths that have the same methods for the same callers. */
function pathsByMethods(routes: Made['routes']): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const path of new Set(routes.map((route) => route.path))) {
    const own = routes.filter((route) => route.path === path);
    const methods = own.map(({ method, access }) => `${method} ${[access].flat().join(' or ')}`).join(', ');
    found.set(methods, [...(found.get(methods) ?? []), path]);
  }
  return found;
}

/** Makes the lines of each block. */
const blocks: Readonly<Record<string, (made: Made) => readonly string[]>> = {
  routes: ({ routes }) => [
    '| Method and path | Who | What |',
    '|---|---|---|',
    ...describe(routes).map(({ method, path, access, summary }) =>
      row(`\`${method} ${path}\``, [access].flat().join(', '), summary)),
  ],
  paths: ({ routes }) => [
    '| Path | Methods, and who may use them |',
    '|---|---|',
    ...Array.from(pathsByMethods(routes), ([methods, paths]) =>
      row(paths.map((path) => `\`${path}\``).join(', '), methods)),
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
  commands: ({ commands }) => [
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
    ...Object.entries(files).map(([path, what]) => row(`\`${path}\``, about(measureFile(path)), what)),
    row('together', about(measureFiles(files)), ''),
  ];
}

const about = (size: number): string => (Math.ceil(size / 100) * 100).toLocaleString('en');

/** Returns the text that each block should have. */
export async function generateBlocks(): Promise<ReadonlyMap<string, string>> {
  const made = { commands: await allCommands(), routes: await allRoutes() };
  const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
  return new Map(Object.entries(blocks).map(([name, make]) => [name, text(make(made))]));
}

/** Each limit with the comment before it, which no program can ask for. */
function limitRows(): string[] {
  const text = readProjectFile('src/base/limits.ts');
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

/**
 * The programs in README.md and in the reference: each whole, with its title as a comment in the first line,
 * and what it prints behind each `console.log`. They are JavaScript, also where they are TypeScript.
 */

export interface Example {
  readonly title: string;
  readonly code: string;
  /** Its output. */
  readonly promised: readonly string[];
  /** The packages of others that it imports. */
  readonly packages: readonly string[];
}

/** The files of the guide are compiled and run together, by the release suite. */
const fences = readHandbook().matchAll(/^```[tj]s\n(\/\/ (?![\w.]+\.ts\n).*?)^```$/gms);

export const examples: readonly Example[] = Array.from(fences, ([, code = '']) => ({
  title: code.split('\n')[0]?.replace('// ', '') ?? '',
  code,
  promised: Array.from(code.matchAll(/console\.log\(.*\/\/ (.*)$/gm), ([, output = '']) => output),
  packages: Array.from(code.matchAll(/^import .* from '((?!node:|cairn-api')[^']+)';$/gm), ([, name = '']) => name),
}));

/** The example whose title begins so. */
export function findExample(title: string): Example {
  const found = examples.find((example) => example.title.startsWith(title));
  if (found === undefined) throw new Error(`no example is titled "${title}"`);
  return found;
}

/**
 * The trusted path: two lists of files in the order in which to read them, cut at `src/store/store.ts`. An auditor of
 * one reads nothing else. `test/project/handbook-trusted-path.test.ts` holds that each list is closed, and the
 * reference shows it.
 */

/** Files in reading order, and what to look for in each. */
export type Reading = Readonly<Record<string, string>>;

export interface TrustedList {
  readonly files: Reading;
  /** Imports from the other list, and imports that decide nothing for this one. */
  readonly needs: Reading;
}

export const lists: Readonly<Record<'access' | 'disk', TrustedList>> = {
  access: {
    files: {
      'src/config/options.ts': 'which values each option may have, and the defaults, by which a server is closed',
      'src/config/read.ts': 'where an option or a secret comes from, and that `--auth none` is for loopback alone',
      'src/app/options.ts': 'what an app is opened with, and the defaults of an app that is given nothing',
      'src/base/system.ts': 'where every secret, salt and id comes from: random numbers of the system; and its clock',
      'src/base/limits.ts': 'how long what lets somebody in lasts, how short a key may be, and every other bound',
      'src/app/app.ts': 'requests go through the pipeline; a first start makes its administrator before any',
      'src/app/data.ts': 'what the services are made of',
      'src/app/route-table.ts': 'which routes there are',
      'src/app/administrator.ts': 'when the first administrator is made',
      'src/app/key-file.ts': 'who can read the file of the keys, and what a start refuses',
      'src/http/server.ts': 'what arrives, and what never becomes a request',
      'src/http/server-options.ts': 'what all connections share',
      'src/http/connection.ts': 'one request at a time; what is not a request is answered and ended',
      'src/http/closing.ts': 'after which replies a connection ends, so that nothing behind a refused head is parsed',
      'src/http/exchange.ts': 'what is believed of a request: its id, its address, the length of its body',
      'src/http/message.ts': 'what a handler is told of a request',
      'src/http/head.ts': 'where one request ends and the next begins, and which host it is for',
      'src/http/fields.ts': 'a field that is sent twice, and cookies',
      'src/base/network.ts': 'what loopback is, which proxies are trusted, who shares a limit',
      'src/api/pipeline.ts': 'no request gets around a step',
      'src/http/router.ts': 'which route a path has: as it was sent, never normalised',
      'src/api/routes.ts': 'who may do what with users, and which bodies collections have',
      'src/api/call.ts': 'a row of the route table, and what a handler is given',
      'src/api/authenticate.ts': 'which credentials count, and the cross-site rule before them',
      'src/http/cross-site.ts': 'what a browser says of where a request comes from',
      'src/http/content-type.ts': 'no body is taken for JSON that a form of another site could send',
      'src/auth/access.ts': 'the roles, `self`, `owner`',
      'src/auth/jws.ts': 'HS256 and nothing else; it knows no claim',
      'src/auth/claims.ts': 'claims; it knows no key',
      'src/auth/tokens.ts': 'the ring, and the memory of verified tokens',
      'src/auth/keys.ts': 'which keys sign and verify, and when a retired one ends',
      'src/auth/secrets.ts': 'secrets of sessions, when they end, and what a refresh token is good for',
      'src/auth/passwords.ts': 'how a password is hashed and compared, and how many at once',
      'src/auth/password-rules.ts': 'which passwords are too easy to guess',
      'src/auth/throttle.ts': 'how many attempts each caller and each account has',
      'src/api/sign-in.ts': 'what a sign-in gives, and to which pages',
      'src/accounts/sign-in.ts': 'the password is compared, and looked at again where the session begins',
      'src/accounts/sessions.ts': 'how sessions begin, go on and end',
      'src/accounts/invitations.ts': 'how somebody without a password gets one, and when an invitation ends',
      'src/accounts/records.ts': 'what is kept of users and sessions: hashes alone',
      'src/accounts/user-fields.ts': 'which fields of a user are shown, and who changes a role',
      'src/accounts/users.ts': 'what ends the sessions of a user, and the last administrator',
      'src/accounts/principal.ts': 'callers are looked up again inside the transaction that writes users or sessions',
      'src/api/invitations.ts': 'who invites, and to which pages an invitation is good',
      'src/api/account.ts': 'the own account and sessions of a caller',
      'src/accounts/dashboard.ts': 'what is shown of the own session',
      'src/api/health.ts': 'what everyone may ask',
      'src/api/body.ts': 'which rules a body is held against',
      'src/base/json.ts': 'how a body is read: no name twice, no number that changes',
      'src/schema/validate.ts': 'no field is set that is not declared, or is read-only',
      'src/schema/setters.ts': 'no field is set by a caller whom it does not name',
      'src/schema/record.ts': 'no field is shown that is write-only or not declared',
      'src/schema/field.ts': 'what a field is',
      'src/base/record-id.ts': 'the id that callers know of a record, and its number in the store',
      'src/base/uuid.ts': 'how an id is made that is a text: what of it can be guessed',
      'src/http/query.ts': 'a query is read once',
      'src/api/operations.ts': 'the operations on records, for requests and for programs, and their order',
      'src/api/collections.ts': 'what requests send to them, and what each reply shows',
      'src/collections/permissions.ts': 'what a caller may do with records: the one place that decides it',
      'src/collections/reader.ts': 'which records a caller sees, in lists and embedded ones too',
      'src/collections/indexed-reader.ts': 'how indexes find those that name the caller',
      'src/collections/resource.ts': 'the only check of ownership, inside the transaction',
      'src/collections/registry.ts': 'what belongs to a collection that is served; that a removed user creates nothing',
      'src/collections/writes.ts': 'where transactions begin that change records for a caller',
      'src/collections/idempotency.ts': 'a kept reply goes to nobody but its caller',
      'src/collections/declared-rules.ts': 'what declared records must fulfil, and how their ids are stored',
      'src/collections/declare.ts': 'what a declaration means, and who sees its lists',
      'src/collections/items.ts': 'the access of items, and of a collection that declares none',
      'src/collections/served.ts': 'which collections are served together',
      'src/api/replies.ts': 'which replies a cache may keep',
      'src/log/log.ts': 'nothing that a caller sends can forge a line',
      'src/store/store.ts': 'what is promised from here on: by the other list',
    },
    needs: {},
  },
  disk: {
    files: {
      'src/store/open-store.ts': 'which files a store has',
      'src/store/writer.ts': 'a write is decided, logged, synced, published and answered, in this order',
      'src/store/log.ts': 'what a log promises to the writer',
      'src/store/disk/file-log.ts': 'how a log of one process keeps that, and when snapshots replace its journals',
      'src/store/disk/files.ts': 'what is asked of a file system: whole writes, replaced files',
      'src/store/disk/node-files.ts': 'how Node.js is asked for it: modes, O_NOFOLLOW, every sync',
      'src/store/disk/lock.ts': 'one process has the directory',
      'src/store/disk/fence.ts': 'and a process that lost it writes nothing more',
      'src/store/format/journal-file.ts': 'the one file that is appended to, and its syncs',
      'src/store/format/journal.ts': 'what a line is, what makes it valid, and what is believed of a journal',
      'src/store/format/snapshot.ts': 'the same of a snapshot',
      'src/store/format/damage.ts': 'what is found to be wrong, and that it ends a start',
      'src/store/recovery/cases.ts': 'the table of what is found on disk, and what is done',
      'src/store/recovery/recover.ts': 'how a start finds that out',
      'src/store/memory/transaction.ts': 'what a transaction sees, and how a commit that was read is applied',
      'src/store/memory/table.ts': 'how a record that was read becomes one that is shown',
      'src/store/memory/record-index.ts': 'which record has an email, the hash of a secret or an id',
    },
    needs: {
      'src/base/json.ts': 'for a disk: whether a value is an object; lines are read by `JSON.parse`',
      'src/base/limits.ts': 'for a disk: when a checkpoint is made, and how much waits',
      'src/base/network.ts': 'for a disk: which callers share one turn to write',
      'src/base/record-id.ts': 'for a disk: which member of a record is its id',
      'src/base/system.ts': 'for a disk: the timers',
    },
  },
};

/** Files that a list may import without naming them: they let nobody in and believe nothing. */
export const decidesNothing: Reading = {
  'src/base/manual.ts': 'where the manual lies',
  'src/app/parts.ts': 'the table of what is loaded by `import()`: the appendices',
  'src/auth/common-passwords.ts': 'a list of words',
  'src/api/links.ts': 'where the other pages of a list are',
  'src/api/versions.ts': 'whether a caller has the version that it reads or changes',
  'src/collections/named-users.ts': 'which blocks are passed over; the reader tests each record of the others',
  'src/base/budget.ts': 'who waits while there is little room, for every caller alike',
  'src/base/errors.ts': 'codes and their status',
  'src/base/heap.ts': 'how much memory there is',
  'src/base/search.ts': 'binary search',
  'src/base/turns.ts': 'whose turn it is',
  'src/base/version.ts': 'the version',
  'src/http/idempotency-key.ts': 'how such a key is written',
  'src/http/preconditions.ts': 'whether a caller knows the version that it changes',
  'src/http/read-sockets.ts': 'from which sockets is read next, for every network alike',
  'src/http/request-ids.ts': 'ids for the log, which protect nothing: they can be guessed',
  'src/lists/filters.ts': 'which of the records that a handler gives are asked for',
  'src/lists/kept-orders.ts': 'the order of records',
  'src/lists/list-pool.ts': 'how many lists are made at once',
  'src/lists/list.ts': 'pages and streams of the records that a plan finds',
  'src/lists/order.ts': 'the order of records',
  'src/lists/plan.ts': 'the cheapest way to the records of a list, which asks the reader of the others',
  'src/lists/query.ts': 'what a query asks of the fields that are shown',
  'src/lists/search.ts': 'how a text is searched',
  'src/lists/sorted-blocks.ts': 'the order of records',
  'src/log/line-queue.ts': 'how lines wait for their output',
  'src/log/standard-streams.ts': 'standard output and error',
  'src/schema/kinds.ts': 'which values a field may have',
  'src/schema/rules.ts': 'which texts it may have',
  'src/schema/stored.ts': 'whether a record that was read has the types of its fields',
  'src/schema/declared-record.ts': 'the same of fields with earlier names, and of ids that callers gave',
  'src/store/recovery/damage-error.ts': 'how damage is told to an operator',
  'src/store/memory/blocks.ts': 'how records lie in memory',
  'src/store/memory/memory.ts': 'how much memory records may take',
  'src/store/memory/size.ts': 'how much one takes',
};

/** Where the lists meet: the last file of the one, on which the other one stands. */
export const cut = 'src/store/store.ts';

/**
 * Files, by the start of their path, that `import()` or programs load and that decide access, or believe an address, a
 * file or another machine. Most servers load only the first three.
 */
export const appendices: Reading = {
  'src/features/feed/': 'who may follow the changes, looked at again before each is sent',
  'src/features/keys/': 'how API keys are made and end, and who has one',
  'src/features/page/': 'the page, with `src/web`: of the same origin, and it sees passwords',
  'src/store/recovery/salvage.ts': 'what is read of damaged data, where a start was refused or `cairn repair` runs',
  'src/options/references/': 'which records a caller may refer to, what goes with a record, and what is embedded',
  'src/options/singles/': 'who may read and set a resource of its own',
  'src/options/proxies/': 'whose `X-Forwarded-For` is believed',
  'src/options/local/': 'who is served without authentication: this machine, or private networks with `--share`',
  'src/options/cors/': 'which pages of other sites read a reply',
  'src/options/readable-log/': 'how what a caller sent is shown on a terminal',
  'src/options/tls/': 'which certificate is served',
  'src/options/cluster/': 'what is believed of etcd and of other nodes',
  'src/programs/': 'what a program can do that embeds it: it acts as an administrator',
  'src/cli/': 'the commands: they act as an administrator, for anyone who can read the directory; and where the first' +
    ' password is printed',
  'src/options/offline/': 'what is believed of a backup',
  'src/options/dialect/': 'what becomes of requests of clients of json-server, only where nobody signs in',
  'src/options/transfer/': 'what is believed of a file that is imported',
};

/** Files that `import()` loads and that do neither. */
export const harmlessParts: Reading = {
  'src/collections/nouns.ts': 'guesses the singular of a name',
  'src/http/handshakes.ts': 'whose TLS handshake is next, for every network alike',
  'src/features/metrics/': 'shows figures to administrators',
  'src/features/openapi/': 'describes the API',
};

/** The values that a file imports from other files, now and later by `import()`. */
export function readImports(path: string): { readonly values: readonly string[]; readonly later: readonly string[] } {
  const { text } = readSource(path);
  const at = (specifier: string): string => posix.join(path, '..', specifier);
  const clauses = text.matchAll(/^(?:import|export)\b([^;']*?)\bfrom '(\.[^']+)'|^import '(\.[^']+)'/gm);
  const values = Array.from(clauses, ([, names = '', from = '', whole]) =>
    isOfTypes(names) ? [] : [at(whole ?? from)]).flat();
  return { values, later: Array.from(text.matchAll(/\bimport\('(\.[^']+)'\)/g), ([, from = '']) => at(from)) };
}

/** True if an import clause names only types. */
function isOfTypes(names: string): boolean {
  const [, braced] = /^\s*\{([^}]*)\}\s*$/.exec(names) ?? [];
  const all = braced?.split(',').map((name) => name.trim()).filter((name) => name !== '') ?? [names.trim()];
  return all.every((name) => /^type\b/.test(name));
}

/** The tokens of a file, or of all files of a part. */
export function measureFile(path: string): number {
  const files = listFiles('src', '.ts').filter((file) => (path.endsWith('/') ? file.startsWith(path) : file === path));
  return files.map((file) => countTokens(readSource(file).text)).reduce((sum, size) => sum + size, 0);
}

export const measureFiles = (files: Reading): number =>
  Object.keys(files).map(measureFile).reduce((sum, size) => sum + size, 0);

/** Every file that is loaded by `import()`, or by a program that embeds the package. */
export function listLazyModules(): string[] {
  const later = listFiles('src', '.ts').flatMap((path) => readImports(path).later);
  return [...new Set([...later, ...readImports('src/index.ts').values])].sort();
}

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
export function loadPackages(t: TestContext, packages: Packages): Load | undefined {
  const directory = install(t, packages);
  if (directory === undefined) return undefined;
  return (path) => import(pathToFileURL(join(directory, 'node_modules', path)).href);
}

/** The exports of a JavaScript file of the manual. */
export type Loaded = ReturnType<typeof Object>;

/** Loads a file of the reference, which its first line names. */
export async function loadReferenceFile(t: TestContext, name: string): Promise<Loaded> {
  const blocks = Array.from(readHandbook().matchAll(/^```ts\n(.*?)^```$/gms), ([, block = '']) => block);
  const found = blocks.find((block) => block.startsWith(`// ${name}: `));
  assert.ok(found, name);
  const file = join(temporaryDirectory(t), name.replace(/js$/, 'mjs'));
  writeFileSync(file, found);
  return import(pathToFileURL(file).href);
}

const credentials = { email: 'ada@example.org', password: 'correct horse battery' };

/** A blog on a port with an administrator, whose clock can be put forward, and what the reference's client needs. */
export async function startBlog(t: TestContext) {
  const posts = declareCollection({
    name: 'posts',
    additional: true,
    fields: {
      title: { kind: 'text', min: 1 },
      views: { kind: 'integer', min: 0, default: 0 },
      author: { kind: 'object', optional: true, fields: { name: { kind: 'text', min: 1 } } },
    },
  });
  const comments = declareCollection({
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
  const { cairnClient } = await loadReferenceFile(t, 'cairn-client.js');
  const client = cairnClient(`http://127.0.0.1:${port}`, storage);
  return { client, kept, credentials, later: (milliseconds: number) => void (ahead += milliseconds) };
}
