import { resolve } from 'node:path';
import { reasonOf, type ExitCode } from '../base/errors.ts';
import { readSecret } from '../config/read.ts';
import type { SharedTools } from '../api/shared-place.ts';
import { openData } from '../app/data.ts';
import { keyFile, readKeyRing } from '../app/key-file.ts';
import { defaultOptions } from '../app/options.ts';
import { OptionError, options } from '../config/options.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { journalNumbers } from '../store/format/journal.ts';
import type { StoreStatus } from '../store/store.ts';
import { unfinishedName } from '../store/recovery/recover.ts';
import {
  clusterAccess,
  clusterOf,
  dataDirectory,
  declarationsOf,
  existingDirectory,
  storeAccess,
  type Call,
  type Command,
  type Terminal,
} from './command.ts';
import {
  credentials,
  directoryPlace,
  loadOffline,
  newPlaceOf,
  offlineOptions,
  placeOf,
  type Place,
} from './place.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import { brokenRules } from '../collections/file-records.ts';
import { checkDirectory, failure, ok, problemsOf, warning, type Finding } from './findings.ts';
import { storeOf, undeclared } from './store.ts';

/**
 * The commands for the data directory as a whole. What they do without a server is in
 * `src/options/offline`.
 */
export const commands: readonly Command[] = [
  {
    name: 'check',
    summary:
      'Verifies every data file, its permissions and the keys, or a cluster; also beside servers',
    ...storeAccess(options.collections),
    run: check,
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
    summary:
      'Copies the data, keys included, to a new or empty directory; also beside running servers',
    operands: ['DIR'],
    ...storeAccess(),
    run: backup,
  },
  {
    name: 'restore',
    summary:
      'Copies a backup to a new or empty data directory, or cluster; everybody has to sign in again',
    operands: ['DIR'],
    ...storeAccess(),
    run: restore,
  },
  {
    name: 'cluster new-epoch',
    summary:
      'After a restore of etcd, or before other collections: ends running nodes and all entity tags',
    ...clusterAccess,
    async run(call) {
      const cluster = await clusterOf(call);
      if (cluster === undefined) {
        throw new OptionError('Cannot renew the epoch: --cluster must name the cluster');
      }
      await cluster.renewEpoch();
      call.terminal.out('The cluster has a new epoch: start its nodes\n');
    },
  },
];

/**
 * Includes the keys of retries: a replayed answer must not show a record that was lost.
 */
const endedByLoss = {
  ...credentials,
  collections: [...credentials.collections, 'idempotency-keys'],
};
const signInAgain =
  'Everybody has to sign in again: there are no sessions and API keys, and the next start makes a signing key; ' +
  'replace a CAIRN_SECRET too\n';

async function check(call: Call): Promise<ExitCode> {
  const { checkStore } = await loadOffline();
  const { terminal } = call;
  const file = call.read(options.collections);
  const declared = file === undefined ? undefined : await declarationsOf(file);
  const cluster = await clusterOf(call, declared);
  if (cluster !== undefined) return checkCluster(terminal, cluster, declared);
  const directory = dataDirectory(call);
  const secret = readSecret('CAIRN_SECRET', call.given);
  offlineOptions(terminal).onProgress(`checking ${directory}`);
  const { store, registry } = openData({ ...defaultOptions, directory, ...declared });
  const found = await checkStore(new NodeFiles(directory), store.freshTables);
  const findings = [
    ...problemsOf(found.damage).map(failure),
    ...found.notices.map(warning),
    ...undeclared(store, found.collections).map(warning),
    ...brokenRules(registry, found.tables ?? new Map()).map(staysUntilWritten),
    ...counts(found.collections).map(ok),
    ...checkDirectory(directory),
    await checkKeys(directory, secret),
  ];
  show(terminal, findings);
  for (const remedy of new Set(found.damage.map(({ remedy }) => remedy))) {
    terminal.out(`To mend it: ${remedy}\n`);
  }
  const hasFailed = findings.some(({ level }) => level === 'failure');
  return hasFailed ? 78 : 0;
}

const staysUntilWritten = (line: string): Finding =>
  warning(`${line}: it stays until it is written again`);

/**
 * Reads a cluster as a node with these collections does that starts now, and writes nothing.
 * @throws ClusterError where such a node would not start
 */
async function checkCluster(
  terminal: Terminal,
  cluster: SharedTools,
  declared?: Partial<Declarations>,
): Promise<ExitCode> {
  const { store, registry } = openData({ ...defaultOptions, ...declared }, undefined, cluster);
  await store.start();
  const { collections, sequence } = store.status();
  const stored = new Map(Array.from(registry, ([name, { records }]) => [name, records]));
  const broken = declared === undefined ? [] : brokenRules(registry, stored);
  const room = await cluster.testRoom().then(
    () => ok('etcd accepts writes'),
    (error: Error) => failure(`No write succeeds: ${error.message}`),
  );
  await store.close();
  const fit = ok('The declared collections fit the others, and all records');
  const unknown = warning('No collections are compared with the others; use --collections');
  const place = ok(`${cluster.prefix} in etcd holds all commits up to ${sequence}`);
  const records = [...broken.map(staysUntilWritten), ...counts(collections).map(ok)];
  show(terminal, [...records, declared ? fit : unknown, place, room]);
  return room.level === 'failure' ? 78 : 0;
}

/**
 * Checks the key ring. A finding names the rule that a ring breaks, and never shows its
 * content.
 */
async function checkKeys(directory: string, secret: string | undefined): Promise<Finding> {
  if (secret !== undefined) return ok('The key is configured');
  const files = new NodeFiles(directory);
  try {
    const ring = await readKeyRing(files);
    if (ring !== undefined) return ok(`Of the keys, 1 signs and ${ring.keys.length - 1} verify`);
  } catch (error) {
    return failure(reasonOf(error));
  }
  const names = await files.list();
  if (names.includes(unfinishedName)) return ok('There are no keys before the copy is complete');
  if (journalNumbers(names).length === 0) {
    return warning('No store is here yet: the first start makes it, and a key');
  }
  return warning(
    `There is no ${keyFile} beside the data: without CAIRN_SECRET, a start makes new keys`,
  );
}

async function repair(call: Call): Promise<ExitCode> {
  const { repairStore } = await loadOffline();
  const { terminal } = call;
  const source = dataDirectory(call);
  const target = targetOf(call, directoryPlace(source, terminal));
  const store = storeOf(source, await declarationsOf(call.read(options.collections)));
  const found = await repairStore(new NodeFiles(source), new NodeFiles(target), store.freshTables, {
    ...offlineOptions(terminal),
    credentials: endedByLoss,
  });
  const warnings = [...problemsOf(found.damage), ...undeclared(store, found.collections)];
  show(terminal, [...warnings.map(warning), ...counts(found.collections).map(ok)]);
  if (found.damage.length === 0) terminal.out('Nothing is damaged, and nothing was written\n');
  else terminal.out(`The store is repaired in ${target}; ${source} stays as it is\n`);
  if (!found.isLossy) return 0;
  terminal.out(`Something is lost, as is said above. ${signInAgain}`);
  return 78;
}

async function backup(call: Call): Promise<void> {
  const source = await placeOf(call);
  const target = directoryPlace(targetOf(call, source), call.terminal);
  const copy = await source.read();
  await target.write(() => Promise.resolve(copy));
  showCopy(call.terminal, copy, target);
}

async function restore(call: Call): Promise<void> {
  const backup = existingDirectory('the backup', operandOf(call));
  const source = directoryPlace(backup, call.terminal, true);
  const target = await newPlaceOf(call);
  showCopy(call.terminal, await target.write(source.read), target);
  call.terminal.out(signInAgain);
}

function showCopy(
  terminal: Terminal,
  copy: Awaited<ReturnType<Place['read']>>,
  { name: target }: Place,
): void {
  const collections = copy.image.views.map(({ name, size }) => ({ name, records: size }));
  for (const line of counts(collections)) terminal.out(`${line}\n`);
  const advice = `; ${keyFile} signs tokens: keep the copy as secret as the data`;
  terminal.out(`Copied to ${target}${copy.keys === undefined ? '' : advice}\n`);
}

type Counts = StoreStatus['collections'];

function operandOf({ operands: [operand = ''] }: Call): string {
  return resolve(operand);
}

/**
 * Returns the directory to write to.
 * @throws OptionError if it is in the place that is read
 */
function targetOf(call: Call, source: Place): string {
  const target = operandOf(call);
  if (!source.holds(target)) return target;
  throw new OptionError(`Cannot copy to ${JSON.stringify(target)}: it is in the data directory`);
}

function counts(collections: Counts): string[] {
  return collections.map(
    ({ name, records }) => `${name}: ${records} ${records === 1 ? 'record' : 'records'}`,
  );
}

function show({ out }: Terminal, findings: readonly Finding[]): void {
  for (const { level, text } of findings) out(`${level.padEnd(8)} ${text}\n`);
}
