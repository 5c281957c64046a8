import { KeyRingError } from '../auth/keys.ts';
import { CairnError, type ErrorCode } from '../base/errors.ts';
import { UsageError, type Option } from '../config/settings.ts';
import { errorCode } from '../store/disk/files.ts';
import { ClusterError, LockedError, StoreDamageError } from '../store/store.ts';
import { exitCodes, isWithin, type Call, type ExitCode } from './command.ts';

/** The exit code and the message of an error that ends a command. */
export type Failure = readonly [code: ExitCode, message: string];

export function failureOf(error: unknown, call: Call | undefined): Failure {
  if (!(error instanceof Error)) return [exitCodes.bug, `Cannot go on: ${String(error)}`];
  const { message } = error;
  if (error instanceof UsageError) return [exitCodes.usage, message];
  if (error instanceof ClusterError) return [error.exitCode, message];
  if (error instanceof LockedError) return [exitCodes.busy, message];
  if (error instanceof KeyRingError) return [exitCodes.config, message];
  if (error instanceof StoreDamageError) return [exitCodes.config, `${message}; ${error.remedy}`];
  if (error instanceof CairnError) {
    const code = machineErrors.has(error.code) ? exitCodes.io : exitCodes.usage;
    const issues = error.issues?.map(
      ({ pointer, detail }) => `Cannot use the ${pointer.slice(1)}: it ${detail}`,
    );
    return [code, issues?.join('\n') ?? message];
  }
  const code = errorCode(error) ?? '';
  if ('syscall' in error || code === 'ERR_ACCESS_DENIED') {
    const exitCode = code === 'EADDRINUSE' ? exitCodes.busy : exitCodes.io;
    return [exitCode, message.startsWith('Cannot ') ? message : systemMessage(error, code, call)];
  }
  return [exitCodes.bug, `Cannot go on, because of a bug in Cairn: ${error.stack}`];
}

/** Errors that the machine caused. The other operating errors come from wrong input. */
const machineErrors: ReadonlySet<ErrorCode> = new Set([
  'outcome_unknown',
  'storage_full',
  'store_failed',
  'store_unavailable',
]);

/** What to do if the system refuses a file, a directory or a port. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: '; run this as the owner of the files, or use another place (for a port, one above 1023)',
  EADDRINUSE: '; use another port, or stop the process that listens on it',
  EADDRNOTAVAIL: '; use an address of this machine',
  ENOSPC: '; make room where this writes',
  ENOTDIR: '; it has to be a directory',
  ERR_ACCESS_DENIED: '; the flags of this locked-down run have to allow it',
  EROFS: '; the file system is read-only: use another place',
};

/** Names the option whose file, directory, port or address the system refused. */
function systemMessage(error: Error, code: string, call: Call | undefined): string {
  const details = Object.fromEntries(Object.entries(error));
  const { path, resource = path, port, hostname, address = hostname } = details;
  const isPortRefused = code === 'EADDRINUSE' || code === 'EACCES';
  const isRefused = (option: Option<unknown>): boolean => {
    const value = call?.read(option);
    if (option.placeholder === 'PORT') return isPortRefused && value === port;
    if (option.placeholder === 'ADDRESS') return !isPortRefused && value === address;
    if (!/^(DIRECTORY|FILE)$/.test(option.placeholder)) return false;
    if (typeof value !== 'string' || typeof resource !== 'string') return false;
    return isWithin(value, resource) || isWithin(resource, value);
  };
  const option = call?.command.options.find(isRefused);
  const what = option === undefined ? 'go on' : `use --${option.name}`;
  const isDenied = code === 'ERR_ACCESS_DENIED';
  const reason = isDenied ? `${JSON.stringify(resource)} is out of reach` : error.message;
  return `Cannot ${what}: ${reason}${remedies[code] ?? ''}`;
}
