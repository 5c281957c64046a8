import { readFile } from 'node:fs/promises';
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
  else if (file === undefined && terminal.input.isTTY === true) password = await ask(terminal);
  else password = await readAll(terminal.input);
  password = password.replace(/\r?\n$/, '');
  if (password === '') throw new UsageError('Cannot set the password: it is empty');
  return password;
}

async function ask(terminal: Terminal): Promise<string> {
  const password = await readHidden(terminal, 'Password: ');
  if (await readHidden(terminal, 'Once more: ') !== password) {
    throw new UsageError('Cannot set the password: the two were not the same');
  }
  return password;
}

async function readAll(input: NodeJS.ReadableStream): Promise<string> {
  let all = '';
  for await (const chunk of input.setEncoding('utf8')) all += String(chunk);
  return all;
}

/** Ctrl-C and Ctrl-D, which mean nothing by themselves in raw mode. */
const endings: ReadonlySet<string> = new Set(['\u0003', '\u0004']);

/** Reads a line in raw mode, in which the terminal itself shows nothing of what is typed. */
function readHidden({ input, err }: Terminal, prompt: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = '';
    const finish = (error?: UsageError): void => {
      input.off('data', receive);
      input.setRawMode?.(false);
      input.pause();
      err('\n');
      if (error === undefined) resolve(line);
      else reject(error);
    };
    const receive = (chunk: Buffer | string): void => {
      for (const character of chunk.toString()) {
        if (character === '\r' || character === '\n') return finish();
        if (endings.has(character)) return finish(new UsageError('Cannot set the password: interrupted'));
        if (character === '\u007f' || character === '\b') line = [...line].slice(0, -1).join('');
        else if (character >= ' ') line += character;
      }
    };
    err(prompt);
    input.setRawMode?.(true);
    input.setEncoding('utf8');
    input.on('data', receive);
    input.resume();
  });
}
