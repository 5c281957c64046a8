import { takenNames } from '../api/routes.ts';
import { openData, type Data } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import { CairnError, FatalError } from '../base/errors.ts';
import { servedCollections } from '../collections/served.ts';
import { clusterOptions, flagOnly, option, OptionError, options, text } from '../config/options.ts';
import { silentLog } from '../log/log.ts';
import { emailKey } from '../schema/field.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { imageOf } from '../store/format/snapshot.ts';
import { MemoryFullError } from '../store/memory/memory.ts';
import { readUndamaged } from '../store/recovery/read-store.ts';
import { dataDirectory, declarationsOf, type Call, type Command } from './command.ts';
import { storeOf, undeclared } from './store.ts';

const owner = flagOnly(
  option(
    'owner',
    'e-mail address of the user who owns the records; without it only administrators change them',
    text('EMAIL'),
    undefined,
  ),
);

/**
 * Commands that bring collections in from a file, and out to one. They open the store; what is
 * done with it is in `src/options/transfer`, which only they load.
 */
export const commands: readonly Command[] = [
  {
    name: 'declare',
    summary: 'Prints a declaration that fits a file such as json-server has, for --collections',
    operands: ['FILE'],
    options: [],
    run: printDeclaration,
  },
  {
    name: 'import',
    summary: 'Adds the records of a file such as json-server has, all or none, and keeps their ids',
    operands: ['FILE'],
    options: [options.directory, options.collections, options.memoryMax, owner],
    run: importFile,
  },
  {
    name: 'export',
    summary: 'Prints all collections but users as such a file; also beside a running server',
    options: [options.directory, options.collections],
    run: exportAll,
  },
];

async function printDeclaration({ terminal, operands: [file = ''] }: Call): Promise<65 | void> {
  const { declareFile } = await import('../options/transfer/declare.ts');
  const { json, mistakes } = declareFile(file, takenNames());
  terminal.out(json);
  if (mistakes.length === 0) return;
  for (const line of mistakes) terminal.err(`Cannot represent ${line}\n`);
  terminal.err(`Change ${file} there, and declare it again: cairn import refuses it, too\n`);
  return 65;
}

async function importFile(call: Call): Promise<void> {
  const {
    terminal,
    operands: [file = ''],
  } = call;
  refuseCluster(call, 'import into a directory, and "cairn restore" that to a new cluster');
  const { readMembers } = await import('../options/transfer/file.ts');
  const { checkMembers, writeArrivals } = await import('../options/transfer/import.ts');
  const declarations = await declarationsOf(call.read(options.collections));
  const message = (_level: string, line: string): void => terminal.err(`${line}\n`);
  const directory = call.read(options.directory);
  const log = { ...silentLog, message };
  const settings = { ...defaultOptions.settings, memoryMax: call.read(options.memoryMax) };
  const data = openData({ ...defaultOptions, settings, directory, ...declarations, log });
  const members = readMembers(file);
  if (!(await data.store.exists())) {
    // A mistake makes no store. Without one, no user can be the owner.
    ownerOf(data, call.read(owner));
    checkMembers(file, members, data);
  }
  await data.store.start();
  try {
    const ownerId = ownerOf(data, call.read(owner));
    const added = await writeArrivals(checkMembers(file, members, data), data, ownerId);
    for (const [name, count] of added) {
      const records = count === 1 ? '1 record' : `${count.toLocaleString('en')} records`;
      terminal.out(`${name}: ${records} added\n`);
    }
    if (added.size === 0) terminal.out('Nothing in the file is new\n');
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    const exitCode = error instanceof MemoryFullError ? 65 : 74;
    throw new FatalError(exitCode, `Cannot import ${file}: ${error.message}; nothing was written`);
  } finally {
    await data.store.close();
  }
}

/** @throws OptionError where no user has the address */
function ownerOf({ users }: Data, email: string | undefined): number {
  if (email === undefined) return 0;
  const user = users.records.find('email', emailKey(email));
  if (user !== undefined) return user.id;
  throw new OptionError(`Cannot use --owner: no user has the address ${JSON.stringify(email)}`);
}

async function exportAll(call: Call): Promise<65 | void> {
  refuseCluster(call, 'export a directory that "cairn backup" has made of it');
  const { exportCollections } = await import('../options/transfer/export.ts');
  const { out, err } = call.terminal;
  const declarations = await declarationsOf(call.read(options.collections));
  const directory = dataDirectory(call);
  const { tables, epoch, sequence } = await readUndamaged(new NodeFiles(directory));
  const image = imageOf(tables.values(), epoch, sequence);
  await exportCollections(servedCollections(declarations), image, out);
  const counts = image.views.map(({ name, size }) => ({ name, records: size }));
  const leftOut = undeclared(storeOf(directory, declarations), counts);
  for (const text of leftOut) err(`Left out: ${text}\n`);
  return leftOut.length === 0 ? undefined : 65;
}

/** @throws OptionError where CAIRN_CLUSTER names a cluster, whose data are not in the directory */
function refuseCluster({ command: { name }, read }: Call, remedy: string): void {
  if (read(clusterOptions.members) === undefined) return;
  throw new OptionError(`Cannot ${name} beside CAIRN_CLUSTER: unset it and ${remedy}`);
}
