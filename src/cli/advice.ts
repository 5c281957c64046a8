import { didYouMean, nearest } from '../base/likeness.ts';
import { inManual } from '../base/manual.ts';
import { OptionError } from '../config/options.ts';
import { knownVariables } from '../config/read.ts';
import type { Command } from './command.ts';

/**
 * Advice for unknown commands, options and environment variables. It is loaded only if one occurs.
 */

const watch = 'leave it out: a file is imported once, and its directory has the data from then on';
const files = 'let the server of your front end serve files';
const paths = 'let the proxy of your front end change paths';
const program = `write a program: ${inManual('programs.md#embedding')}`;
const delay = "slow the network down in your browser's developer tools";
const id = 'rename the member to id in the file';
const keys = 'end the names of references in Id';
const access = `declare the access: ${inManual('access.md#access')}`;

/** Advice for words of json-server and other tools. */
const habits: Readonly<Record<string, string>> = {
  update: `${inManual('operations.md#upgrade')} says how to upgrade`,
  start: 'type cairn serve, or cairn FILE.json',
  '-p': 'type --port',
  '-H': 'type --host',
  '-w': watch,
  '--watch': watch,
  '-q': 'type --log none',
  '--quiet': 'type --log none',
  '-s': files,
  '--static': files,
  '-r': paths,
  '--routes': paths,
  '-m': program,
  '--middlewares': program,
  '-d': delay,
  '--delay': delay,
  '-i': id,
  '--id': id,
  '--fks': keys,
  '--foreignKeySuffix': keys,
  '-S': 'copy the directory with cairn backup',
  '--snapshots': 'copy the directory with cairn backup',
  '--ro': access,
  '--read-only': access,
};

const oneListener =
  'read /metrics (with a key of "cairn user key --read-only"), /livez and /readyz at the port of the server';

/** Options of earlier versions, and the advice to give. */
const withdrawn: { readonly [name: string]: string } = {
  'ops-port': oneListener,
  'ops-host': oneListener,
  'at-rest': 'leave it out: an idle server writes small JSON files by itself',
  again: 'move the directory db.data aside, and start again',
};

const findWithdrawn = (name: string): string | undefined =>
  Object.hasOwn(withdrawn, name) ? withdrawn[name] : undefined;

/** Returns the warning about an unknown variable. */
export function warnOfVariable(variable: string): string {
  const name = variable.slice('CAIRN_'.length).toLowerCase().replaceAll('_', '-');
  const replacement = findWithdrawn(name);
  const advice =
    replacement === undefined ? didYouMean(variable, knownVariables()) : `; ${replacement}`;
  return `The variable ${variable} is not an option${advice}`;
}

/** Returns the error for words that name no command. */
export function unknownCommand(
  commands: readonly Command[],
  [word = '', second = '-']: readonly string[],
): OptionError {
  const said = second.startsWith('-') ? word : `${word} ${second}`;
  const names = commands.map(({ name }) => name);
  const isFamily = said === word && names.some((name) => name.startsWith(`${word} `));
  const meant = isFamily ? undefined : (nearest(said, names) ?? nearest(word, names));
  const help = isFamily ? `see cairn ${word} --help` : 'see cairn --help';
  const habit = Object.hasOwn(habits, word) ? habits[word] : undefined;
  const asJson = /\.(?:json5|[cm]?js)$/.test(word) ? 'save the data as a .json file' : undefined;
  const hint = habit ?? asJson ?? (meant === undefined ? help : `did you mean cairn ${meant}?`);
  return new OptionError(`Cannot run cairn ${JSON.stringify(said)}: no such command; ${hint}`);
}

/** Returns the error for an option that the command does not have. */
export function unknownOption(
  commands: readonly Command[],
  { name: command, options }: Command,
  { name, rawName }: { readonly name: string; readonly rawName: string },
): OptionError {
  const meant = nearest(
    name,
    options.map((option) => option.name),
  );
  const other = commands.find((each) => each.options.some((one) => one.name === name));
  const hint =
    findWithdrawn(name) ??
    (Object.hasOwn(habits, rawName) ? habits[rawName] : undefined) ??
    (other && `cairn ${other.name} has it`) ??
    (meant === undefined ? `see cairn ${command} --help` : `did you mean --${meant}?`);
  return new OptionError(`Cannot run cairn ${command}: it has no option ${rawName}; ${hint}`);
}
