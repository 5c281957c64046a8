import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { projectDirectory } from '../source.ts';
import { isLockedRun } from '../support/locked.ts';

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

/** Whether this Node.js runs the source as it stands; 20 needs tsx. */
const typeStripping: unknown = Reflect.get(process.features, 'typescript');

/** What Node.js needs to run TypeScript. */
export const loader = typeStripping ? [] : ['--import', 'tsx'];

/** What starts Cairn: its source, or in a locked-down run what was built of it. */
export const program = isLockedRun
  ? [join(projectDirectory, 'src', 'main.js')]
  : [...loader, join(projectDirectory, 'src', 'main.ts')];
/** Cheap hashes and an administrator with a known password, so that a start takes no longer than it must. */
const cheap = { CAIRN_SCRYPT_COST: '14', CAIRN_ADMIN_PASSWORD: 'correct horse battery' };

/** Starts `cairn` with these words; it is killed when the test ends. */
export function cairn(t: TestContext, words: readonly string[], environment: NodeJS.ProcessEnv = cheap): Running {
  return run(t, [...(isLockedRun ? lockedFlags(words) : []), ...program, ...words], environment);
}

/** The flags of Node.js that `cairn flags` prints for a server with these words. */
export function lockedFlags(words: readonly string[], [main = ''] = program): string[] {
  const files = words.flatMap((word, index) =>
    /^--(data|tls-cert|tls-key)$/.test(word) ? words.slice(index, index + 2) : [],
  );
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'flags', ...files], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim().split('\n');
}

/** Starts Node.js, or another command, with these words; it is killed when the test ends. */
export function run(
  t: TestContext,
  words: readonly string[],
  environment: NodeJS.ProcessEnv = cheap,
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
    find: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(written.out);
          if (match !== null) resolve(match);
        };
        child.stdout.on('data', look);
        void ended.then((code) => reject(new Error(`ended with ${code} before ${pattern}: ${written.err}`)));
        look();
      }),
  };
}

/** An empty directory that goes with the test. */
export function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-test-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
