import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { networkInterfaces } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { loadOption, optionalParts } from '../app/parts.ts';
import type { ExitCode } from '../base/errors.ts';
import { systemClock } from '../base/system.ts';
import { flagOnly, OptionError, options, toggle } from '../config/options.ts';
import type { Invocation, Command, Terminal } from './command.ts';
import { describeRecords } from './findings.ts';
import { serveUntilStopped } from './serve.ts';
import { declared, importInto, refuseCluster } from './transfer.ts';

const watch = flagOnly(toggle('watch', 'does nothing: the file is imported once'));

/**
 * `cairn db.json` serves a file, as json-server does. The first start declares and imports it;
 * after that the data are in a directory next to it, and the file stays unchanged.
 */
export const commands: readonly Command[] = [
  {
    name: 'open',
    summary:
      'Serves a json-server file to everyone on this machine; "cairn db.json" is short for it',
    operands: ['FILE'],
    options: [
      options.port,
      options.host,
      options.share,
      options.shareHosts,
      options.log,
      options.logLevel,
      watch,
    ],
    run: openFile,
  },
];

/** Such as `db.json`, `db.collections.json` and `db.data`. */
interface Place {
  readonly file: string;
  readonly collections: string;
  readonly directory: string;
}

async function openFile(call: Invocation): Promise<ExitCode> {
  refuseCluster(call, 'open the file');
  const { terminal, given } = call;
  const [file = ''] = call.operands;
  const base = file.replace(/\.json$/i, '');
  const place: Place = {
    file,
    collections: `${base}.collections.json`,
    directory: `${base}.data`,
  };
  if (call.read(watch))
    terminal.err(
      `--watch does nothing: ${file} is imported once, and ${place.directory} has the data\n`,
    );
  if (existsSync(place.directory)) tellOfChanges(place, terminal);
  else {
    refuseMissing(file);
    await importFile(place, terminal);
  }
  const chosen = {
    auth: 'none',
    data: place.directory,
    collections: place.collections,
    'cors-origin': 'http://localhost:*,http://127.0.0.1:*,https://localhost:*',
    dialect: 'json-server',
  };
  const flags = new Map([...given.flags, ...Object.entries(chosen)]);
  flags.delete(watch.name);
  const isShared = call.read(options.share);
  return serveUntilStopped({ terminal, given: { ...given, flags } }, (url, collections) => {
    for (const name of collections) void terminal.out(`${url}/${name}\n`);
    if (isShared) tellOfSharing(url, terminal);
  });
}

/** Refuses a missing file before anything is created next to it. @throws OptionError */
function refuseMissing(file: string): void {
  if (/^[a-z]+:\/\//i.test(file))
    throw new OptionError(
      `Cannot open ${file}: it is an address; download it first, as with curl -o db.json`,
    );
  if (!existsSync(file)) throw new OptionError(`Cannot open ${file}: there is no such file`);
}

function tellOfSharing(url: string, { out }: Terminal): void {
  void out('Every device on your networks can read and change all data: --share\n');
  const { port } = new URL(url);
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (const { address, family, internal } of all)
    if (family === 'IPv4' && !internal) void out(`On another device: http://${address}:${port}\n`);
  void out(`In an Android emulator: http://10.0.2.2:${port}\n`);
  void out(`In a container: http://host.docker.internal:${port}\n`);
}

/**
 * Declares and imports the file into a directory, which gets its name when it is complete. If
 * another process was faster, uses its directory.
 */
async function importFile(place: Place, { out, err }: Terminal): Promise<void> {
  const { file, collections, directory } = place;
  const isDeclared = existsSync(collections);
  if (!isDeclared) {
    const { declaration, notes } = await declared(file);
    for (const line of notes) err(`${line}\n`);
    writeWhole(collections, declaration, 0o666);
  }
  removeRemains(directory);
  const made = mkdtempSync(`${directory}${unfinished}`);
  try {
    const digest = digestFile(file);
    const { rules } = await loadOption(optionalParts.dialect, '--dialect');
    const added = await importInto(made, file, { collections, rules, err: () => undefined });
    const count = [...added.values()].reduce((sum, one) => sum + one, 0);
    writeWhole(join(made, digestName), digest, 0o600);
    moveTo(made, directory);
    const records = describeRecords(count);
    await out(`Imported ${records} of ${file} into ${directory}; ${collections} declares them\n`);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (existsSync(directory)) return;
    // The corrected file may have other collections.
    if (!isDeclared) rmSync(collections, { force: true });
    throw error;
  }
}

/** Ends the name of an incomplete directory, before a random part. */
const unfinished = '.unfinished-';

/** Removes directories of killed imports. No import takes an hour. */
function removeRemains(directory: string): void {
  const parent = dirname(directory);
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(directory)}${unfinished}`)) continue;
    const path = join(parent, name);
    const { mtimeMs = Infinity } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs > systemClock.now() - 3_600_000) continue;
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // Another user's.
    }
  }
}

/** Atomic, even if the power fails. */
function writeWhole(path: string, text: string, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { mode, flush: true });
  moveTo(temporary, path);
}

/** Renames durably. */
function moveTo(from: string, to: string): void {
  renameSync(from, to);
  // Windows cannot open directories.
  if (process.platform === 'win32') return;
  const parent = openSync(dirname(to), 'r');
  try {
    fsyncSync(parent);
  } finally {
    closeSync(parent);
  }
}

/** The name of the file that holds the digest of the imported file. No collection's file has it. */
const digestName = 'imported.sha256';

const digestFile = (file: string): string =>
  createHash('sha256').update(readFileSync(file)).digest('hex');

function tellOfChanges({ file, directory, collections }: Place, { err }: Terminal): void {
  const imported = join(directory, digestName);
  const known = existsSync(imported) ? readFileSync(imported, 'utf8') : '';
  if (!existsSync(file) || known === digestFile(file)) return;
  const remedy = `to begin anew, stop Cairn and type: mv ${directory} ${directory}.old; rm ${collections}`;
  err(
    `${file} has changed since it was imported; ${directory} has the data that are served; ${remedy}\n`,
  );
}
