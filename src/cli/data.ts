import { resolve } from 'node:path';
import { parseKeyRing } from '../auth/keys.ts';
import { systemClock } from '../base/clock.ts';
import { invariant, InvariantError } from '../base/invariant.ts';
import { systemRandom } from '../base/random.ts';
import { options } from '../config.ts';
import { openData } from '../data.ts';
import { keyFile } from '../key-file.ts';
import { flagOnly, toggle } from '../options.ts';
import { readWhole } from '../store/files.ts';
import { systemProcesses } from '../store/lock.ts';
import { NodeFiles } from '../store/node-files.ts';
import { backupDirectory, restoreDirectory } from '../store/offline.ts';
import type { OfflineStore } from '../store/open-store.ts';
import { exitCodes, type Call, type Command, type ExitCode, type Terminal } from './command.ts';
import { checkAlgorithms, checkDirectory, checkNodeVersion, checkSecret, type Finding } from './findings.ts';
import { dataDirectory } from './offline.ts';

const repair = flagOnly(toggle('repair', 'keep what can be read, hand edits included; damaged files are kept aside'));

/** What looks after the data directory as a whole. */
export const dataCommands: readonly Command[] = [
  {
    name: 'check',
    summary: 'Verifies every data file and what is around them; also beside a running server, without --repair',
    operands: [],
    options: [options.data, repair],
    usesSecrets: true,
    async run(call) {
      const directory = await dataDirectory(call);
      const { store } = openData({ directory }, noRing);
      const around = [checkNodeVersion(process.version), ...checkAlgorithms()];
      around.push(...(await checkDirectory(directory, systemClock.now())));
      around.push(await checkKeys(directory, call.config().secret));
      const code = call.read(repair) ? await repairStore(store, call.terminal) : await checkStore(store, call.terminal);
      for (const finding of around) tell(call.terminal, finding);
      return around.some(({ level }) => level === 'failure') ? exitCodes.config : code;
    },
  },
  {
    name: 'backup',
    summary: 'Copies the data, keys included, to a new or empty directory; also beside a running server',
    operands: ['DIR'],
    options: [options.data],
    run: async (call) => {
      const source = await dataDirectory(call);
      return copy(call, source, operandOf(call), backupDirectory);
    },
  },
  {
    name: 'restore',
    summary: 'Copies a backup to a new or empty data directory',
    operands: ['DIR'],
    options: [options.data],
    run: (call) => copy(call, operandOf(call), call.read(options.data), restoreDirectory),
  },
];

/** A ring that cannot be used is told by the rule that it breaks, never by what is in it. */
async function checkKeys(directory: string, secret: string | undefined): Promise<Finding> {
  if (secret !== undefined) return checkSecret(secret);
  const content = await readWhole(new NodeFiles(directory), keyFile);
  if (content === undefined) return { level: 'ok', text: 'There are no keys yet: the first start makes one' };
  try {
    const { keys } = parseKeyRing(content.toString('utf8'));
    return { level: 'ok', text: `Of the keys, 1 signs and ${keys.length - 1} verify` };
  } catch (error) {
    return { level: 'failure', text: error instanceof Error ? error.message : 'The keys cannot be read' };
  }
}

async function checkStore(store: OfflineStore, terminal: Terminal): Promise<ExitCode> {
  const { damage, notices, collections } = await store.check();
  for (const { name, records } of collections) tell(terminal, { level: 'ok', text: `${name}: ${records} records` });
  for (const text of notices) tell(terminal, { level: 'warning', text });
  for (const { message } of damage) tell(terminal, { level: 'failure', text: message });
  if (damage.length === 0) return exitCodes.done;
  terminal.out('"cairn check --repair" keeps what can be read; a server that is running has to stop first\n');
  return exitCodes.config;
}

async function repairStore(store: OfflineStore, terminal: Terminal): Promise<ExitCode> {
  const { found, lost, aside, collections } = await store.repair(progress(terminal));
  for (const { message } of found.damage) tell(terminal, { level: 'warning', text: message });
  for (const text of lost) tell(terminal, { level: 'warning', text: `lost: ${text}` });
  for (const name of aside) tell(terminal, { level: 'ok', text: `kept as it was: ${name}` });
  for (const { name, records } of collections) tell(terminal, { level: 'ok', text: `${name}: ${records} records` });
  terminal.out(found.damage.length === 0 ? 'Nothing was damaged, and nothing is changed\n' : 'The store is repaired\n');
  return exitCodes.done;
}

async function copy(
  call: Call,
  source: string,
  target: string,
  copyDirectory: typeof backupDirectory,
): Promise<ExitCode> {
  const { terminal } = call;
  const common = { clock: systemClock, random: systemRandom, processes: systemProcesses };
  const { collections, alongside } = await copyDirectory(new NodeFiles(source), new NodeFiles(target), {
    ...common,
    alongside: [keyFile],
    onProgress: progress(terminal),
  });
  for (const { name, records } of collections) terminal.out(`${name}: ${records} records\n`);
  const keys = alongside.includes(keyFile) ? `; ${keyFile} signs tokens: keep the copy as secret as the data` : '';
  terminal.out(`Copied to ${target}${keys}\n`);
  return exitCodes.done;
}

function operandOf({ operands: [operand] }: Call): string {
  invariant(operand !== undefined, 'a command was called without the operand that it names');
  return resolve(operand);
}

/** What takes long says so, where a person waits. */
function progress({ interactive, err }: Terminal): (step: string) => void {
  return (step) => {
    if (interactive) err(`${step} …\n`);
  };
}

function tell({ out }: Terminal, { level, text }: Finding): void {
  out(`${level.padEnd(8)} ${text}\n`);
}

function noRing(): never {
  throw new InvariantError('a store that is checked has no keys');
}
