import { userFields } from '../accounts/user-fields.ts';
import { takenNames } from '../api/taken-names.ts';
import { yieldedPaths } from '../api/routes.ts';
import { openData, type Data } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import { loadReferences } from '../app/parts.ts';
import { localAdministrator, type Principal } from '../auth/access.ts';
import { CairnError, FatalError } from '../base/errors.ts';
import { servedCollections } from '../collections/served.ts';
import {
  choice,
  clusterOptions,
  flagOnly,
  option,
  OptionError,
  options,
  text,
  toggle,
} from '../config/options.ts';
import { namesDirectory } from '../config/read.ts';
import type { TableRules } from '../collections/declared.ts';
import { silentLog } from '../log/log.ts';
import { emailKey } from '../schema/field.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { takeImage } from '../store/format/snapshot.ts';
import { MemoryFullError } from '../store/memory/memory.ts';
import type { MadeDeclaration } from '../options/transfer/declare.ts';
import { readUndamaged } from '../store/recovery/read-store.ts';
import {
  dataDirectory,
  loadDeclarations,
  type Invocation,
  type Command,
  type Terminal,
} from './command.ts';
import { describeRecords } from './findings.ts';
import { prepareStore, undeclared } from './store.ts';

const owner = flagOnly(
  option(
    'owner',
    'e-mail address of the user who owns the records; without it only administrators change them',
    text('EMAIL'),
    undefined,
  ),
);

const strict = flagOnly(toggle('strict', 'guesses tight rules, for a server with users'));

const format = flagOnly(
  option(
    'format',
    'json prints a file that can be imported, ndjson a line for each record',
    choice(['json', 'ndjson']),
    'json',
  ),
);

const withUsers = flagOnly(toggle('users', 'prints users too, without passwords'));

/**
 * Commands that import collections from a file or export them to one. They open the store; the
 * transfer itself is in `src/options/transfer`, which only they load.
 */
export const commands: readonly Command[] = [
  {
    name: 'declare',
    summary: 'Prints a declaration for --collections that fits a json-server file',
    operands: ['FILE'],
    options: [strict],
    run: printDeclaration,
  },
  {
    name: 'import',
    summary: 'Adds the records of a json-server file, all or none, and keeps their ids',
    operands: ['FILE'],
    options: [options.directory, options.collections, options.memoryMax, owner],
    run: importFile,
  },
  {
    name: 'export',
    summary: 'Prints all collections as a json-server file; also works while a server runs',
    options: [options.directory, options.collections, format, withUsers],
    run: exportAll,
  },
];

async function printDeclaration({
  terminal,
  operands: [file = ''],
  read,
}: Invocation): Promise<void> {
  const isStrict = read(strict);
  const { declaration, notes } = await declared(file, isStrict, namesWithoutDialect(isStrict));
  terminal.out(declaration);
  for (const line of notes) terminal.err(`${line}\n`);
}

const namesWithoutDialect = (users: boolean | undefined): string[] => [
  ...takenNames(users),
  ...yieldedPaths.map((path) => path.slice(1)),
];

/** Also returns the changes that an import makes. */
export async function declared(
  file: string,
  isStrict = false,
  taken = takenNames(false),
): Promise<MadeDeclaration> {
  const { readMembers } = await import('../options/transfer/file.ts');
  const { declareMembers } = await import('../options/transfer/declare.ts');
  return declareMembers(readMembers(file), taken, isStrict);
}

async function importFile(call: Invocation): Promise<void> {
  refuseCluster(call, 'import into a directory, and "cairn restore" that to a new cluster');
  const [file = ''] = call.operands;
  const collections = call.read(options.collections);
  const directory = call.read(options.directory);
  const added = await importInto(directory, file, {
    collections,
    memoryMax: call.read(options.memoryMax),
    owner: call.read(owner),
    err: call.terminal.err,
  });
  const { out } = call.terminal;
  for (const [name, count] of added) await out(`${name}: ${describeRecords(count)} added\n`);
  if (added.size === 0) await out('Nothing in the file is new\n');
}

interface ImportOptions {
  readonly collections: string | undefined;
  readonly memoryMax?: number | undefined;
  /** A dialect's additions. */
  readonly rules?: TableRules | undefined;
  /** The e-mail address of the records' owner; without it, they have none. */
  readonly owner?: string | undefined;
  /** Gets the changes that the import makes, and the store's messages. */
  readonly err: Terminal['err'];
}

/**
 * Adds the records of a file to the store in a directory, and returns their numbers by collection.
 * @throws FatalError with all mistakes; then nothing was written
 */
export async function importInto(
  directory: string,
  file: string,
  { collections, memoryMax, owner, rules, err }: ImportOptions,
): Promise<ReadonlyMap<string, number>> {
  const { readMembers } = await import('../options/transfer/file.ts');
  const { importMembers } = await import('../options/transfer/import.ts');
  const { named } = await import('../options/transfer/declare.ts');
  const declarations = await loadDeclarations(collections);
  const references = await loadReferences(servedCollections(declarations));
  const message = (_level: string, line: string): void => err(`${line}\n`);
  const log = { ...silentLog, message };
  const settings = { ...defaultOptions.settings, memoryMax };
  const complete = { ...defaultOptions, settings, ...declarations, references, log };
  const open = (at?: string): Data =>
    openData({ ...complete, directory: at }, undefined, undefined, rules);
  const data = open(directory);
  const taken = namesWithoutDialect(declarations.users);
  const members = named(readMembers(file), taken);
  const startAndImport = async (data: Data) => {
    await data.store.start();
    return importMembers(file, members, { ...data, principal: findOwner(data, owner) });
  };
  try {
    // A file with mistakes must not leave a store behind, so a first import is tried in memory.
    if (!(await data.store.exists())) await startAndImport(open());
    const { added, notes } = await startAndImport(data);
    for (const line of notes) err(`${line}\n`);
    return added;
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    const exitCode = error instanceof MemoryFullError ? 65 : 74;
    throw new FatalError(exitCode, `Cannot import ${file}: ${error.message}; nothing was written`);
  } finally {
    await data.store.close();
  }
}

/** @throws OptionError for an unknown address */
function findOwner({ users }: Data, email: string | undefined): Principal {
  if (email === undefined) return localAdministrator;
  const user = users.records.find('email', emailKey(email));
  if (user !== undefined) return { ...localAdministrator, userId: user.id };
  throw new OptionError(
    `Cannot use --owner: no user has the address ${JSON.stringify(email)}; see "cairn user list"`,
  );
}

async function exportAll(call: Invocation): Promise<65 | void> {
  refuseCluster(call, 'export a directory that "cairn backup" has made of it');
  const { exportJson, exportLines } = await import('../options/transfer/export.ts');
  const { out, err } = call.terminal;
  const declarations = await loadDeclarations(call.read(options.collections));
  const directory = dataDirectory(call);
  const { tables, epoch, sequence } = await readUndamaged(new NodeFiles(directory));
  const image = takeImage(tables.values(), epoch, sequence);
  // A server without users may have a collection of this name.
  const hasUsers = call.read(withUsers) && declarations.users !== false;
  const users = hasUsers ? [{ name: 'users', fields: userFields }] : [];
  const exported = [...users, ...servedCollections(declarations)];
  await (call.read(format) === 'json' ? exportJson : exportLines)(exported, image, out);
  const counts = image.views.map(({ name, size }) => ({ name, records: size }));
  const leftOut = undeclared(prepareStore(directory, declarations), counts);
  for (const text of leftOut) err(`Left out: ${text}\n`);
  return leftOut.length === 0 ? undefined : 65;
}

/** @throws OptionError if CAIRN_CLUSTER names a cluster and --data is not typed */
export function refuseCluster(
  { command: { name }, given, read }: Invocation,
  remedy: string,
): void {
  if (namesDirectory(given) || read(clusterOptions.members) === undefined) return;
  throw new OptionError(`Cannot ${name} together with CAIRN_CLUSTER: unset it and ${remedy}`);
}
