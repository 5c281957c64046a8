import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { readHandbook, projectDirectory } from '../source.ts';
import { isLockedRun } from '../basics.ts';

/** A `cairn` process and what it wrote so far. */
export interface Running {
  readonly child: ChildProcess;
  readonly out: string;
  readonly err: string;
  /** Resolves with the first match in what it writes to standard output; rejects when it ends before. */
  find(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
}

/** Truthy if this Node.js runs TypeScript itself; Node.js 20 needs tsx. */
const typeStripping: unknown = Reflect.get(process.features, 'typescript');

/** The flags with which this Node.js runs TypeScript. */
export const loaderFlags = typeStripping ? [] : ['--import', 'tsx'];

/** The arguments of `node` that start Cairn from its source. */
export const sourceArguments = [...loaderFlags, join(projectDirectory, 'src', 'main.ts')];

/** The arguments of `node` that start a program, such as `.ci/bench/main`: the built one if the tests are built. */
export function programArguments(path: string): string[] {
  const ending = extname(import.meta.filename);
  return [...(ending === '.ts' ? loaderFlags : []), join(import.meta.dirname, '..', '..', '..', path + ending)];
}

/** Runs a program of the tests with these flags of Node.js and parses the JSON that it prints. */
export async function runJson(path: string, ...flags: string[]) {
  const words = [...flags, ...programArguments(path)];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: projectDirectory });
  return JSON.parse(stdout);
}

/** Starts Cairn from its source, or from the build if the tests are built. */
const program = programArguments('src/main');

/** Cheap hashes and an administrator with a known password, for a quick start. */
export const testEnvironment = { CAIRN_SCRYPT_COST: '14', CAIRN_ADMIN_PASSWORD: 'correct horse battery' };

/** Starts `cairn` with these words; it is killed when the test ends. */
export function startCairn(
  t: TestContext,
  words: readonly string[],
  environment: NodeJS.ProcessEnv = testEnvironment,
): Running {
  const valuesOf = (flag: RegExp): string[] =>
    words.flatMap((word, index) => (flag.test(word) ? words.slice(index + 1, index + 2) : []));
  const [directory = 'data'] = valuesOf(/^--data$/);
  const files = valuesOf(/^--(tls-(cert|key)|collections)$/).map((file) => resolve(projectDirectory, file));
  const reads = [...new Set(files)].map((file) => `--allow-fs-read=${file}`);
  // The flags in the manual lock a server of a directory; `cairn db.json` is for trying things out.
  const isLocked = isLockedRun && !/\.json$/.test(words[0] ?? '');
  const flags = isLocked ? [...lockedFlags(join(projectDirectory, 'src'), directory), ...reads] : [];
  // Each start reuses the code compiled by an earlier one. A locked-down run may not write there.
  const cache = isLocked ? {} : { NODE_COMPILE_CACHE: join(projectDirectory, '.cache') };
  return startProcess(t, [...flags, ...program, ...words], { ...cache, ...environment });
}

/** The flags of the reference's line for this Node.js, for a program and its data in these directories. */
export function lockedFlags(programDirectory: string, dataDirectory: string): string[] {
  const [, common = ''] = /^FLAGS="(.*?)"$/ms.exec(readHandbook()) ?? [];
  const lines = [...readHandbook().matchAll(/^node (.*) \$FLAGS dist\/main\.js serve # Node\.js ([\d and]+)$/gm)];
  const major = String(Number.parseInt(process.versions.node, 10));
  const [, own = ''] = lines.find(([, , versions = '']) => versions.split(' and ').includes(major)) ?? [];
  assert.ok(common !== '' && own !== '' && lines.length === 3, 'the reference has the four lines');
  const flags = `${own} ${common.replace(/\\\n */g, '')}`.replaceAll('$PWD/dist', programDirectory);
  return flags.replaceAll('$CAIRN_DATA', resolve(projectDirectory, dataDirectory)).split(' ');
}

/** Starts Node.js, or another command, with these words; it is killed when the test ends. */
export function startProcess(
  t: TestContext,
  words: readonly string[],
  environment: NodeJS.ProcessEnv = testEnvironment,
  command = process.execPath,
): Running {
  const child = spawn(command, words, {
    cwd: projectDirectory,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const written = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (written.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (written.err += text));
  const ended = once(child, 'close').then(([code]: unknown[]) => (typeof code === 'number' ? code : null));
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    ended,
    get out() {
      return written.out;
    },
    get err() {
      return written.err;
    },
    find: createFind(written, (look) => child.stdout.on('data', look), ended),
  };
}

/** Returns the `find` of a process: `onOut` has a function called whenever `written.out` has grown. */
export function createFind(
  written: Pick<Running, 'out' | 'err'>,
  onOut: (look: () => void) => void,
  ended: Running['ended'],
): Running['find'] {
  return (pattern) =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(written.out);
        if (match !== null) resolve(match);
      };
      onOut(look);
      void ended.then((code) => reject(new Error(`ended with ${code} before ${pattern}: ${written.err}`)));
      look();
    });
}

/** An empty directory that goes with the test. */
export function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-test-'));
  // A process that still runs may make a file in it meanwhile.
  t.after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  return directory;
}
