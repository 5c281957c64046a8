import { PassThrough } from 'node:stream';
import type { TestContext } from 'node:test';
import type { ExitCode } from '../../../src/base/errors.ts';
import type { Command, Terminal } from '../../../src/cli/command.ts';
import { run } from '../../../src/cli/commands.ts';
import { serve } from '../../../src/cli/serve.ts';
import type { Environment } from '../../../src/config/read.ts';
import { isLockedRun } from '../basics.ts';
import { type Running, startCairn, testEnvironment, createFind } from './spawn.ts';

export interface Outcome {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs one of `commands` in this process, with `input` on its standard input. */
export async function runCommand(
  commands: readonly Command[],
  words: readonly string[],
  input: string | Terminal['input'] = '',
  environment: Environment = {},
  interactive = false,
): Promise<Outcome> {
  const outcome = { out: '', err: '' };
  const terminal: Terminal = {
    input: typeof input === 'string' ? new PassThrough().end(input) : input,
    environment,
    interactive,
    out: (text) => void (outcome.out += text),
    err: (text) => void (outcome.err += text),
  };
  const code = await run(commands, words, terminal);
  return { code, ...outcome };
}

/** A server and what it wrote so far. */
export interface Server extends Omit<Running, 'child'> {
  /** Stops it as SIGTERM does, and resolves with its exit code. */
  stop(): Promise<number | null>;
}

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'] as const;
process.setMaxListeners(100);

/**
 * Runs `cairn serve` without a log in this process, which is cheaper than another one, or in a locked-down one. It is
 * stopped when the test ends.
 */
export function startServer(
  t: TestContext,
  words: readonly string[],
  environment: NodeJS.ProcessEnv = testEnvironment,
): Server {
  const all = ['serve', '--log=none', ...words];
  const server = isLockedRun ? stoppable(startCairn(t, all, environment)) : serveInProcess(all, environment);
  t.after(() => server.stop());
  return server;
}

function stoppable(running: Running): Server {
  const stop = (): Running['ended'] => {
    running.child.kill('SIGTERM');
    return running.ended;
  };
  return {
    ended: running.ended,
    find: running.find,
    stop,
    get out() {
      return running.out;
    },
    get err() {
      return running.err;
    },
  };
}

function serveInProcess(words: readonly string[], environment: NodeJS.ProcessEnv): Server {
  const written = { out: '', err: '' };
  const looks = new Set<() => void>();
  const terminal = {
    input: new PassThrough().end(),
    environment,
    interactive: false,
    out(text: string): void {
      written.out += text;
      for (const look of looks) look();
    },
    err: (text: string): void => void (written.err += text),
  };
  const others = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const code = run([serve], words, terminal);
  // The signals are its own: the test runner listens for them, too.
  const own = signals.flatMap((signal) =>
    process.listeners(signal).filter((listener) => others.get(signal)?.includes(listener) !== true)
      .map((listener) => ({ signal, listener })));
  const ended = code.finally(() => own.forEach(({ signal, listener }) => process.off(signal, listener)));
  return {
    ended,
    get out() {
      return written.out;
    },
    get err() {
      return written.err;
    },
    find: createFind(written, (look) => looks.add(look), ended),
    stop() {
      for (const { signal, listener } of own) if (signal === 'SIGTERM') listener(signal);
      return ended;
    },
  };
}
