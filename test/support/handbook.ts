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
      'src/config/options.ts': 'the allowed values of each option, and defaults that keep a server closed',
      'src/config/read.ts': 'the sources of options and secrets; `--auth none` works only on loopback',
      'src/app/options.ts': 'the options of an app, and its defaults',
      'src/base/system.ts': "the system's random numbers, from which every secret, salt and id comes, and its clock",
      'src/base/limits.ts': 'how long sessions and tokens last, the minimum key length, and every other limit',
      'src/app/app.ts': 'every request takes the pipeline; a first start first creates its administrator',
      'src/app/data.ts': 'how the services are put together',
      'src/app/route-table.ts': 'the complete list of routes',
      'src/app/administrator.ts': 'when the first administrator is created',
      'src/app/key-file.ts': 'who can read the key file, and what makes a start fail',
      'src/http/server.ts': 'what the server accepts, and what never becomes a request',
      'src/http/server-options.ts': 'the state that all connections share',
      'src/http/connection.ts': 'one request at a time; anything else gets a response and ends the connection',
      'src/http/closing.ts': 'which responses end a connection, so that nothing after a refused head is parsed',
      'src/http/exchange.ts': "which of a request's claims are trusted: its id, its address, the length of its body",
      'src/http/message.ts': 'what a handler sees of a request',
      'src/http/head.ts': 'where one request ends and the next begins, and its host',
      'src/http/fields.ts': 'repeated header fields, and cookies',
      'src/base/network.ts': 'loopback, trusted proxies, and which addresses share a limit',
      'src/api/pipeline.ts': 'no request skips a step',
      'src/http/router.ts': 'the route of a path, as it was sent and never normalised',
      'src/api/routes.ts': 'the access rules for users, and the bodies of collections',
      'src/api/call.ts': 'a row of the route table, and the arguments of a handler',
      'src/api/authenticate.ts': 'which credentials count; the cross-site rule comes first',
      'src/http/cross-site.ts': 'how a browser says where a request comes from',
      'src/http/content-type.ts': "no body that another site's form could send is read as JSON",
      'src/auth/access.ts': 'roles, `self` and `owner`',
      'src/auth/jws.ts': 'HS256 and nothing else; it does not know any claim',
      'src/auth/claims.ts': 'claims; it does not know any key',
      'src/auth/tokens.ts': 'the key ring, and the cache of verified tokens',
      'src/auth/keys.ts': 'which keys sign and verify, and when a retired key ends',
      'src/auth/secrets.ts': 'session secrets, when they end, and what a refresh token allows',
      'src/auth/passwords.ts': 'how passwords are hashed and compared, and how many at once',
      'src/auth/password-rules.ts': 'which passwords are too easy to guess',
      'src/auth/throttle.ts': 'how many attempts each caller and each account has',
      'src/api/sign-in.ts': 'what a sign-in returns, and to pages of which origins',
      'src/accounts/sign-in.ts': 'the password is compared, and checked again where the session begins',
      'src/accounts/sessions.ts': 'how sessions begin, are renewed and end',
      'src/accounts/invitations.ts': 'how a user without a password gets one, and when an invitation ends',
      'src/accounts/records.ts': 'what is stored of users and sessions: only hashes',
      'src/accounts/user-fields.ts': 'which fields of a user are visible, and who may change a role',
      'src/accounts/users.ts': "what ends a user's sessions; the last administrator stays",
      'src/accounts/principal.ts': 'callers are looked up again in each transaction that writes users or sessions',
      'src/api/invitations.ts': 'who may invite, and pages of which origins may use an invitation',
      'src/api/account.ts': "the caller's own account and sessions",
      'src/accounts/dashboard.ts': 'what callers see of their own session',
      'src/api/health.ts': 'the routes that need no credentials',
      'src/api/body.ts': 'the rules for each body',
      'src/base/json.ts': 'how a body is parsed: duplicate names and numbers that would change are refused',
      'src/schema/validate.ts': 'undeclared and read-only fields are refused',
      'src/schema/setters.ts': 'a field with `set` is changed only by callers it names',
      'src/schema/record.ts': 'write-only and undeclared fields are never shown',
      'src/schema/field.ts': 'the definition of a field',
      'src/base/record-id.ts': "a record's public id, and its number in the store",
      'src/base/uuid.ts': 'how text ids are generated, and how much of them can be guessed',
      'src/http/query.ts': 'a query is parsed once',
      'src/api/operations.ts': 'the operations on records, for requests and programs, and their order',
      'src/api/collections.ts': 'how requests become operations, and what each response shows',
      'src/collections/permissions.ts': 'what a caller may do with records; nothing else decides it',
      'src/collections/reader.ts': 'which records a caller sees, also in lists and embedded',
      'src/collections/indexed-reader.ts': 'how indexes find the records that name the caller',
      'src/collections/resource.ts': 'the only check of ownership, inside the transaction',
      'src/collections/registry.ts': 'what a served collection consists of; a removed user cannot create records',
      'src/collections/writes.ts': 'where transactions that change records for a caller begin',
      'src/collections/idempotency.ts': 'a stored response is returned only to the caller who got it first',
      'src/collections/declared-rules.ts': 'the rules for declared records, and how their ids are stored',
      'src/collections/declare.ts': 'the meaning of a declaration, and who sees its lists',
      'src/collections/items.ts': 'the default access, and that of items',
      'src/collections/served.ts': 'which collections are served together',
      'src/api/replies.ts': 'which responses may be cached',
      'src/log/log.ts': 'no caller can forge a line',
      'src/store/store.ts': 'the promises of the store, which the other list keeps',
    },
    needs: {},
  },
  disk: {
    files: {
      'src/store/open-store.ts': 'which files a store has',
      'src/store/writer.ts': 'a write is decided, logged, synced, published and acknowledged, in this order',
      'src/store/log.ts': 'what a log promises to the writer',
      'src/store/disk/file-log.ts': 'how one process keeps these promises, and when snapshots replace its journals',
      'src/store/disk/files.ts': 'what the store needs from a file system: whole writes, replaced files',
      'src/store/disk/node-files.ts': 'the same in calls of Node.js: modes, O_NOFOLLOW, every sync',
      'src/store/disk/lock.ts': 'only one process uses the directory',
      'src/store/disk/fence.ts': 'a process that lost the lock writes nothing more',
      'src/store/format/journal-file.ts': 'the only file that is appended to, and its syncs',
      'src/store/format/journal.ts': 'the format of a line, what makes it valid, and when a journal is trusted',
      'src/store/format/snapshot.ts': 'the same for a snapshot',
      'src/store/format/damage.ts': 'what counts as damage; damage ends a start',
      'src/store/recovery/cases.ts': 'the table of what a start may find on disk, and what it does',
      'src/store/recovery/recover.ts': 'how a start decides which case it is',
      'src/store/memory/transaction.ts': 'what a transaction sees, and how a commit from a file is applied',
      'src/store/memory/table.ts': 'how a record from a file becomes visible',
      'src/store/memory/record-index.ts': 'the indexes of ids, e-mail addresses and hashes of secrets',
    },
    needs: {
      'src/base/json.ts': 'for the disk list: whether a value is an object; `JSON.parse` parses the lines',
      'src/base/limits.ts': 'for the disk list: when a checkpoint begins, and how much may wait',
      'src/base/network.ts': 'for the disk list: which callers share one turn to write',
      'src/base/record-id.ts': 'for the disk list: which member of a record is its id',
      'src/base/system.ts': 'for the disk list: the timers',
    },
  },
};

/** Files that a list may import without naming them: they decide nothing and trust nothing. */
export const decidesNothing: Reading = {
  'src/base/manual.ts': 'where the manual is',
  'src/app/parts.ts': 'the parts that `import()` loads: the appendices',
  'src/auth/common-passwords.ts': 'a list of words',
  'src/api/links.ts': 'links to the other pages of a list',
  'src/api/versions.ts': 'whether a caller has the current version',
  'src/collections/named-users.ts': 'which blocks are skipped; the reader checks each record of the others',
  'src/base/budget.ts': 'who waits when memory is short, by the same rule for every caller',
  'src/base/errors.ts': 'error codes and their status',
  'src/base/heap.ts': 'how much memory Node.js may use',
  'src/base/search.ts': 'binary search',
  'src/base/turns.ts': 'turns between callers',
  'src/base/version.ts': 'the version',
  'src/http/idempotency-key.ts': 'the syntax of an idempotency key',
  'src/http/preconditions.ts': 'whether a caller knows the version it changes',
  'src/http/read-sockets.ts': 'the order in which sockets are read, by the same rule for every network',
  'src/http/request-ids.ts': 'ids for the log; they can be guessed, and protect nothing',
  'src/lists/filters.ts': 'which of the visible records match a filter',
  'src/lists/kept-orders.ts': 'the order of records',
  'src/lists/list-pool.ts': 'how many lists are in progress at once',
  'src/lists/list.ts': 'pages and streams of the records in a plan',
  'src/lists/order.ts': 'the order of records',
  'src/lists/plan.ts': 'the cheapest way to the records of a list; it asks the reader which are visible',
  'src/lists/query.ts': 'the meaning of a query over visible fields',
  'src/lists/search.ts': 'text search',
  'src/lists/sorted-blocks.ts': 'the order of records',
  'src/log/line-queue.ts': 'lines that wait for their output',
  'src/log/standard-streams.ts': 'standard output and error',
  'src/schema/kinds.ts': 'the values of each kind of field',
  'src/schema/rules.ts': 'the rules for texts',
  'src/schema/stored.ts': 'whether the fields of a stored record have the right types',
  'src/schema/declared-record.ts': 'the same for renamed fields and ids from callers',
  'src/store/recovery/damage-error.ts': 'how damage is reported to the operator',
  'src/store/memory/blocks.ts': 'how records are laid out in memory',
  'src/store/memory/memory.ts': 'how much memory records may take',
  'src/store/memory/size.ts': 'how much memory a record takes',
};

/** Where the lists meet: the last file of the first list, whose promises the second list keeps. */
export const cut = 'src/store/store.ts';

/**
 * Files, by the start of their path, that `import()` or programs load and that decide access, or trust an address, a
 * file or another machine. Most servers load only the first three.
 */
export const appendices: Reading = {
  'src/features/feed/': 'who may follow the change feed, checked again before each event',
  'src/features/keys/': 'how API keys are created and end, and who has one',
  'src/features/page/': 'the page, with `src/web`; it has the same origin, and it sees passwords',
  'src/store/recovery/salvage.ts': 'what is recovered from damaged data, by `cairn repair` or after a refused start',
  'src/options/references/': 'which records a caller may refer to, what is removed with a record, and what is embedded',
  'src/options/singles/': 'who may read and set a single resource',
  'src/options/proxies/': 'whose `X-Forwarded-For` is trusted',
  'src/options/local/': 'who is served without authentication: this machine, or private networks with `--share`',
  'src/options/cors/': 'which other origins may read a response',
  'src/options/readable-log/': "how a caller's input is shown on a terminal",
  'src/options/tls/': 'which certificate is served',
  'src/options/cluster/': 'what a node trusts from etcd and from other nodes',
  'src/programs/': 'what an embedding program may do: it acts as an administrator',
  'src/cli/': 'the commands, which act as an administrator for anyone who can read the directory, and where the first' +
    ' password is printed',
  'src/options/offline/': 'what is trusted in a backup',
  'src/options/dialect/': 'what requests from clients of json-server do, only with `--auth none`',
  'src/options/transfer/': 'what is trusted in an imported file',
};

/** Files that `import()` loads and that do neither. */
export const harmlessParts: Reading = {
  'src/collections/nouns.ts': 'guesses the singular of a name',
  'src/http/handshakes.ts': 'the order of TLS handshakes, by the same rule for every network',
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
