import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { flagOnly, optional, text, UsageError } from '../options.ts';
import type { Call, Terminal } from './command.ts';

export const passwordFile = flagOnly(
  optional('password-file', 'read the password from a file, or from standard input with -', text('FILE')),
);

/**
 * The password that this call is about: from `--password-file`, from a terminal without echo (asked for twice), or
 * from standard input where that is no terminal. One line end behind it is not part of it.
 * @throws UsageError when there is none, or the two differ
 */
export async function readPassword(call: Call): Promise<string> {
  const { terminal } = call;
  const file = call.read(passwordFile);
  let password: string;
  if (file !== undefined && file !== '-') password = await readFile(file, 'utf8');
  else if (file === '-' || terminal.input.isTTY !== true) password = await readAll(terminal.input);
  else {
    password = await readHidden(terminal, 'Password: ');
    const again = await readHidden(terminal, 'Once more: ');
    if (again !== password) throw new UsageError('Cannot set the password: the two were not the same');
  }
  password = password.replace(/\r?\n$/, '');
  if (password === '') throw new UsageError('Cannot set the password: it is empty');
  return password;
}

/** Reads a line of which the terminal shows nothing: what it would show is thrown away. */
async function readHidden({ input, err }: Terminal, prompt: string): Promise<string> {
  err(prompt);
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output, terminal: true, historySize: 0 });
  try {
    return await new Promise((resolve, reject) => {
      // Ctrl-C, and Ctrl-D on an empty line, close it.
      lines.once('line', resolve).once('close', () => reject(new UsageError('Cannot set the password: interrupted')));
    });
  } finally {
    lines.close();
    err('\n');
  }
}
