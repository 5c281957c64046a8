import { resolve } from 'node:path';
import type { ExitCode } from '../base/errors.ts';
import { keyFile } from '../app/key-file.ts';
import { OptionError, options } from '../config/options.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import {
  clusterAccess,
  loadDeclarations,
  existingDirectory,
  dataDirectory,
  joinGivenCluster,
  storeAccess,
  type Invocation,
  type Command,
  type Terminal,
} from './command.ts';
import { describeCounts, ok, describeDamage, warning, type Finding } from './findings.ts';
import {
  credentials,
  directoryPlace,
  findPlace,
  loadOffline,
  newDirectory,
  offlineOptions,
  type Place,
} from './place.ts';
import { prepareStore, undeclared } from './store.ts';

/**
 * Commands for a whole data directory. Their work without a server is in `src/options/offline`.
 */
export const commands: readonly Command[] = [
  {
    name: 'check',
    summary:
      'Verifies every data file, its permissions and the keys, or a cluster; also works while servers run',
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
      'Copies the data, keys included, to a new or empty directory; also works while servers run',
    operands: ['DIR'],
    ...storeAccess(),
    run: backup,
  },
  {
    name: 'restore',
    summary:
      'Copies a backup to a new or empty data directory or cluster; everyone has to sign in again',
    operands: ['DIR'],
    ...storeAccess(),
    run: restore,
  },
  {
    name: 'cluster new-epoch',
    summary:
      'Stops running nodes and invalidates all entity tags, after a restore of etcd or before a change of collections',
    ...clusterAccess,
    async run(call) {
      const cluster = await joinGivenCluster(call);
      if (cluster === undefined) {
        throw new OptionError('Cannot renew the epoch: --cluster must name the cluster');
      }
      await cluster.renewEpoch();
      call.terminal.out('The cluster has a new epoch: start its nodes\n');
    },
  },
];

/** Includes the keys of retries: a replayed response must not show a record that was lost. */
const endedByLoss = {
  ...credentials,
  collections: [...credentials.collections, 'idempotency-keys'],
};
const signInAgain =
  'Everybody has to sign in again: there are no sessions and API keys, and the next start makes a signing key; ' +
  'replace a CAIRN_SECRET too\n';

async function check(call: Invocation): Promise<ExitCode> {
  const file = call.read(options.collections);
  const declared = file === undefined ? undefined : await loadDeclarations(file);
  const place = await findPlace(call, { declared });
  const { findings, remedies } = await place.check(call, declared);
  show(call.terminal, findings);
  for (const remedy of remedies) call.terminal.out(`To fix it: ${remedy}\n`);
  return findings.some(({ level }) => level === 'failure') ? 78 : 0;
}

async function repair(call: Invocation): Promise<ExitCode> {
  const { repairStore } = await loadOffline();
  const { terminal } = call;
  const source = dataDirectory(call);
  const target = findTarget(call, directoryPlace(source, terminal));
  const store = prepareStore(source, await loadDeclarations(call.read(options.collections)));
  const found = await repairStore(new NodeFiles(source), new NodeFiles(target), store.freshTables, {
    ...offlineOptions(terminal),
    credentials: endedByLoss,
  });
  const warnings = [...describeDamage(found.damage), ...undeclared(store, found.collections)];
  show(terminal, [...warnings.map(warning), ...describeCounts(found.collections).map(ok)]);
  if (found.damage.length === 0) terminal.out('Nothing is damaged, and nothing was written\n');
  else terminal.out(`The store is repaired in ${target}; ${source} stays as it is\n`);
  if (!found.isLossy) return 0;
  terminal.out(`Some data are lost, as listed above. ${signInAgain}`);
  return 78;
}

async function backup(call: Invocation): Promise<void> {
  const source = await findPlace(call);
  const target = directoryPlace(findTarget(call, source), call.terminal);
  const copy = await source.read();
  await target.write(() => Promise.resolve(copy));
  showCopy(call.terminal, copy, target);
}

async function restore(call: Invocation): Promise<void> {
  const backup = existingDirectory('the backup', resolveOperand(call));
  const source = directoryPlace(backup, call.terminal, true);
  const target = await findPlace(call, { findDirectory: newDirectory });
  showCopy(call.terminal, await target.write(source.read), target);
  call.terminal.out(signInAgain);
}

function showCopy(
  terminal: Terminal,
  copy: Awaited<ReturnType<Place['read']>>,
  { name: target }: Place,
): void {
  const collections = copy.image.views.map(({ name, size }) => ({ name, records: size }));
  for (const line of describeCounts(collections)) terminal.out(`${line}\n`);
  const advice = `; ${keyFile} signs tokens: keep the copy as secret as the data`;
  terminal.out(`Copied to ${target}${copy.keys === undefined ? '' : advice}\n`);
}

function resolveOperand({ operands: [operand = ''] }: Invocation): string {
  return resolve(operand);
}

/**
 * Returns the directory to write to.
 * @throws OptionError if it is inside the source
 */
function findTarget(call: Invocation, source: Place): string {
  const target = resolveOperand(call);
  if (!source.holds(target)) return target;
  throw new OptionError(`Cannot copy to ${JSON.stringify(target)}: it is in the data directory`);
}

function show({ out }: Terminal, findings: readonly Finding[]): void {
  for (const { level, text } of findings) out(`${level.padEnd(8)} ${text}\n`);
}
