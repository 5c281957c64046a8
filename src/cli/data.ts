import { resolve } from 'node:path';
import { systemClock, systemRandom } from '../base/system.ts';
import { options } from '../config/config.ts';
import { keyFile, openData, readKeyRing } from '../app/data.ts';
import { completeOptions } from '../app/options.ts';
import { UsageError } from '../config/settings.ts';
import { systemMachine } from '../store/disk/lock.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { journalNumbers } from '../store/journal/journal-format.ts';
import {
  checkStore, readCopy, repairStore, writeCopy, type Copy, type Held, type OfflineOptions,
} from '../store/recovery/offline.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import {
  clusterOf, clusterOptions, clusterSecrets, dataDirectory, declarationsOf, existingDirectory, exitCodes, isWithin,
} from './command.ts';
import type { Call, Command, ExitCode, Terminal } from './command.ts';
import {
  checkDirectory, checkSecret, checkTls, failure, ok, warning, type Finding,
} from './findings.ts';

const credentials = { collections: ['sessions'], files: [keyFile] };
/** Also ended where a repair loses something: a replay must not tell of a record that is lost. */
const endedByLoss = { ...credentials, collections: [...credentials.collections, 'idempotency-keys'] };
const signInAgain =
  'Everybody has to sign in again: there are no sessions, and the next start makes a key; replace a CAIRN_SECRET too\n';

/** The commands for the data directory as a whole. */
export const dataCommands: readonly Command[] = [
  {
    name: 'check',
    summary: 'Verifies every data file and what is around them; also beside a running server',
    options: [options.directory, options.collections, options.tlsCert, options.tlsKey],
    secrets: ['CAIRN_SECRET'],
    async run(call) {
      const directory = dataDirectory(call);
      const { secret, tls, collections } = call.config();
      const now = systemClock.now();
      const code = await check(directory, await declarationsOf(collections), call.terminal);
      const around = [
        ...checkDirectory(directory, now),
        await checkKeys(directory, secret),
      ];
      if (tls !== undefined) around.push(await checkTls(tls, now));
      for (const finding of around) tell(call.terminal, finding);
      return around.some(({ level }) => level === 'failure') ? exitCodes.config : code;
    },
  },
  {
    name: 'repair',
    summary: 'Writes what can be read of damaged or hand-edited data to a new or empty directory',
    operands: ['NEW'],
    options: [options.directory, options.collections],
    run: repair,
  },
  {
    name: 'backup',
    summary: 'Copies the data, keys included, to a new or empty directory; also beside running servers',
    operands: ['DIR'],
    options: [options.directory, ...clusterOptions],
    secrets: clusterSecrets,
    async run(call) {
      const cluster = await clusterOf(call);
      if (cluster !== undefined) {
        const options = { ...offlineOptions(call.terminal), restores: false };
        const [target, copied] = [operandOf(call), await cluster.read()];
        await writeCopy(new NodeFiles(target), copied, options);
        return tellCopy(call, copied, target, false);
      }
      const [source, target] = await sourceAndTarget(call);
      return copy(call, source, target, false);
    },
  },
  {
    name: 'restore',
    summary: 'Copies a backup to a new or empty data directory, or cluster; everybody has to sign in again',
    operands: ['DIR'],
    options: [options.directory, ...clusterOptions],
    secrets: clusterSecrets,
    async run(call) {
      const source = existingDirectory('the backup', operandOf(call));
      const cluster = await clusterOf(call);
      if (cluster !== undefined) {
        const copied = await readCopy(new NodeFiles(source), { ...offlineOptions(call.terminal), restores: true });
        await cluster.write(copied.image);
        return tellCopy(call, copied, `${cluster.node.prefix} in etcd`, true);
      }
      return copy(call, source, resolve(call.read(options.directory)), true);
    },
  },
  {
    name: 'cluster new-epoch',
    summary: 'After a restore of etcd itself: ends the nodes that ran before, and all entity tags',
    options: clusterOptions,
    secrets: clusterSecrets,
    async run(call) {
      const cluster = await clusterOf(call);
      if (cluster === undefined) throw new UsageError('Cannot renew the epoch: --cluster must name the cluster');
      await cluster.renewEpoch();
      call.terminal.out('The cluster has a new epoch: start its nodes\n');
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

async function check(directory: string, declarations: Partial<Declarations>, terminal: Terminal): Promise<ExitCode> {
  offlineOptions(terminal).onProgress(`checking ${directory}`);
  const { freshTables } = openData(completeOptions({ directory, ...declarations })).store;
  const held = await checkStore(new NodeFiles(directory), freshTables);
  for (const { message } of held.damage) tell(terminal, failure(message));
  for (const text of held.notices) tell(terminal, warning(text));
  for (const line of counts(held)) tell(terminal, ok(line));
  for (const remedy of new Set(held.damage.map(({ remedy }) => remedy))) terminal.out(`To mend it: ${remedy}\n`);
  return held.damage.length === 0 ? exitCodes.done : exitCodes.config;
}

async function repair(call: Call): Promise<ExitCode> {
  const { terminal } = call;
  const [source, target] = await sourceAndTarget(call);
  const declarations = await declarationsOf(call.config().collections);
  const tables = openData(completeOptions({ directory: source, ...declarations })).store.freshTables;
  const options = { ...offlineOptions(terminal), credentials: endedByLoss };
  const held = await repairStore(new NodeFiles(source), new NodeFiles(target), tables, options);
  for (const { message } of held.damage) tell(terminal, warning(message));
  for (const line of counts(held)) tell(terminal, ok(line));
  if (held.damage.length === 0) terminal.out('Nothing is damaged, and nothing was written\n');
  else terminal.out(`The store is repaired in ${target}; what is in ${source} stays as it is\n`);
  if (!held.isLossy) return exitCodes.done;
  terminal.out(`Something is lost, as is said above. ${signInAgain}`);
  return exitCodes.config;
}

async function copy(call: Call, source: string, target: string, restores: boolean): Promise<void> {
  const options = { ...offlineOptions(call.terminal), restores };
  const copied = await readCopy(new NodeFiles(source), options);
  await writeCopy(new NodeFiles(target), copied, options);
  tellCopy(call, copied, target, restores);
}

function tellCopy({ terminal }: Call, { image, alongside }: Copy, target: string, restores: boolean): void {
  const collections = image.views.map(({ name, size }) => ({ name, records: size }));
  for (const line of counts({ collections })) terminal.out(`${line}\n`);
  const hasKeys = alongside.has(keyFile);
  const keys = hasKeys ? `; ${keyFile} signs tokens: keep the copy as secret as the data` : '';
  terminal.out(`Copied to ${target}${keys}\n${restores ? signInAgain : ''}`);
}

/** The data directory, and the new one that the operand names. @throws UsageError */
async function sourceAndTarget(call: Call): Promise<[source: string, target: string]> {
  const [source, target] = [dataDirectory(call), operandOf(call)];
  if (!isWithin(source, target)) return [source, target];
  throw new UsageError(`Cannot copy to ${JSON.stringify(target)}: it is in the data directory`);
}

const operandOf = ({ operands: [operand = ''] }: Call): string => resolve(operand);

function counts({ collections }: Pick<Held, 'collections'>): string[] {
  return collections.map(({ name, records }) => `${name}: ${records} ${records === 1 ? 'record' : 'records'}`);
}

function offlineOptions({ interactive, err }: Terminal): OfflineOptions {
  /** What takes long says so, where a person waits. */
  const onProgress = (step: string): void => (interactive ? err(`${step} …\n`) : undefined);
  return { clock: systemClock, random: systemRandom, machine: systemMachine, credentials, onProgress };
}

function tell({ out }: Terminal, { level, text }: Finding): void {
  out(`${level.padEnd(8)} ${text}\n`);
}
