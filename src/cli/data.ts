import { resolve } from 'node:path';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config.ts';
import { keyFile, openData, readKeyRing } from '../data.ts';
import { flagOnly, toggle, UsageError } from '../settings.ts';
import { journalNumbers } from '../store/journal-format.ts';
import { systemProcesses } from '../store/lock.ts';
import { NodeFiles } from '../store/node-files.ts';
import { checkFiles, copyStore } from '../store/offline.ts';
import { repairFiles } from '../store/repair.ts';
import type { StoreStatus } from '../store/store.ts';
import { dataDirectory, existingDirectory, exitCodes, isWithin, remedyOf } from './command.ts';
import type { Call, Command, ExitCode, Terminal } from './command.ts';
import {
  checkAlgorithms, checkDirectory, checkNodeVersion, checkSecret, checkTls, failure, ok, warning, type Finding,
} from './findings.ts';

const repair = flagOnly(toggle('repair', 'keep what can be read, hand edits included; damaged files are kept aside'));

const credentials = { collections: ['sessions'], files: [keyFile] };
const ended =
  'Everybody has to sign in again: there are no sessions, and the next start makes a key; replace a CAIRN_SECRET too\n';

/** What looks after the data directory as a whole. */
export const dataCommands: readonly Command[] = [
  {
    name: 'check',
    summary: 'Verifies every data file and what is around them; also beside a running server, without --repair',
    options: [options.directory, options.tlsCert, options.tlsKey, repair],
    secrets: ['CAIRN_SECRET'],
    async run(call) {
      const directory = await dataDirectory(call);
      const { secret, tls } = call.config();
      const now = systemClock.now();
      // A repair writes files anew, and may remove the keys.
      const around = [checkNodeVersion(process.version), ...checkAlgorithms(), ...checkDirectory(directory, now)];
      const code = await checkStore(directory, call.terminal, call.read(repair));
      around.push(await checkKeys(directory, secret), ...(tls === undefined ? [] : [await checkTls(tls, now)]));
      for (const finding of around) tell(call.terminal, finding);
      return around.some(({ level }) => level === 'failure') ? exitCodes.config : code;
    },
  },
  {
    name: 'backup',
    summary: 'Copies the data, keys included, to a new or empty directory; also beside a running server',
    operands: ['DIR'],
    options: [options.directory],
    async run(call) {
      const [source, target] = [await dataDirectory(call), operandOf(call)];
      if (!isWithin(source, target)) return copy(call, source, target, false);
      throw new UsageError(`Cannot copy to ${JSON.stringify(target)}: it is in the data directory`);
    },
  },
  {
    name: 'restore',
    summary: 'Copies a backup to a new or empty data directory; everybody has to sign in again',
    operands: ['DIR'],
    options: [options.directory],
    async run(call) {
      const source = await existingDirectory('the backup', operandOf(call));
      return copy(call, source, call.read(options.directory), true);
    },
  },
];

/** A ring that cannot be used is told by the rule that it breaks, never by what is in it. */
async function checkKeys(directory: string, secret: string | undefined): Promise<Finding> {
  if (secret !== undefined) return checkSecret(secret);
  const files = new NodeFiles(directory);
  try {
    const ring = await readKeyRing(files);
    if (ring !== undefined) return ok(`Of the keys, 1 signs and ${ring.keys.length - 1} verify`);
    const journals = journalNumbers(await files.list());
    if (journals.length === 0) return warning('No store is here yet: the first start makes it, and a key');
    return warning(`There is no ${keyFile} beside the data: without CAIRN_SECRET, a start makes new keys`);
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
}

async function checkStore(directory: string, terminal: Terminal, repairs: boolean): Promise<ExitCode> {
  const { freshTables } = openData({ directory }).store;
  const files = new NodeFiles(directory);
  const options = offlineOptions(terminal);
  if (!repairs) options.onProgress(`checking ${directory}`);
  const report = repairs
    ? await repairFiles(files, freshTables, options)
    : { ...(await checkFiles(files, freshTables)), lost: [], aside: [] };
  const { damage, notices, lost, aside, collections } = report;
  for (const { message } of damage) tell(terminal, (repairs ? warning : failure)(message));
  for (const text of notices) tell(terminal, { level: 'warning', text });
  for (const text of lost) tell(terminal, warning(`lost: ${text}`));
  for (const name of aside) tell(terminal, ok(`kept as it was: ${name}`));
  for (const collection of collections) tell(terminal, ok(counted(collection)));
  const sound = damage.length === 0;
  if (repairs) terminal.out(sound ? 'Nothing was damaged, and nothing is changed\n' : 'The store is repaired\n');
  if (lost.length > 0) terminal.out(ended);
  if (sound || (repairs && lost.length === 0)) return exitCodes.done;
  if (!repairs && damage.every(({ repairable }) => repairable)) {
    const remedies = new Set(damage.map(remedyOf));
    for (const remedy of remedies) terminal.out(`To mend it: ${remedy}; a server that is running has to stop first\n`);
  }
  return exitCodes.config;
}

async function copy({ terminal }: Call, source: string, target: string, restores: boolean): Promise<void> {
  const options = { ...offlineOptions(terminal), restores };
  const { collections, alongside } = await copyStore(new NodeFiles(source), new NodeFiles(target), options);
  for (const collection of collections) terminal.out(`${counted(collection)}\n`);
  const keys = alongside.includes(keyFile) ? `; ${keyFile} signs tokens: keep the copy as secret as the data` : '';
  terminal.out(`Copied to ${target}${keys}\n${restores ? ended : ''}`);
}

const operandOf = ({ operands: [operand = ''] }: Call): string => resolve(operand);

function counted({ name, records }: StoreStatus['collections'][number]): string {
  return `${name}: ${records} ${records === 1 ? 'record' : 'records'}`;
}

function offlineOptions({ interactive, err }: Terminal) {
  /** What takes long says so, where a person waits. */
  const onProgress = (step: string): void => (interactive ? err(`${step} …\n`) : undefined);
  return { clock: systemClock, random: systemRandom, processes: systemProcesses, credentials, onProgress };
}

function tell({ out }: Terminal, { level, text }: Finding): void {
  out(`${level.padEnd(8)} ${text}\n`);
}
