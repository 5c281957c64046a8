import { PassThrough } from 'node:stream';
import type { ExitCode } from '../../../src/base/errors.ts';
import type { Command, Terminal } from '../../../src/cli/command.ts';
import { run } from '../../../src/cli/commands.ts';
import type { Environment } from '../../../src/config/read.ts';

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
