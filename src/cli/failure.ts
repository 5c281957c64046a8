import { CairnError, FatalError, problems, readReason, type ExitCode } from '../base/errors.ts';
import { inManual } from '../base/manual.ts';
import { errorCode } from '../store/disk/files.ts';
import { StoreDamageError } from '../store/recovery/damage-error.ts';

type Failure = readonly [code: ExitCode, message: string];

/**
 * Ends the message with the page of the manual that helps, unless the call was wrong (64 and 65).
 */
export function toFailure(error: unknown): Failure {
  const [code, message] = explain(error);
  const isFull = /^(ENOSPC|EDQUOT|storage_full)$/.test(errorCode(error) ?? '');
  const usual = isFull ? 'disk-is-full' : 'does-not-start';
  const screen = error instanceof StoreDamageError ? 'damaged' : usual;
  return [
    code,
    code < 70 ? message : `${message} (see ${inManual(`troubleshooting.md#${screen}`)})`,
  ];
}

function explain(error: unknown): Failure {
  if (!(error instanceof Error)) return [70, `Cannot go on: ${readReason(error)}`];
  const { message } = error;
  if (error instanceof FatalError) return [error.exitCode, message];
  if (error instanceof CairnError) {
    const [status] = problems[error.code];
    const issues = error.issues?.map(
      ({ pointer, detail }) => `Cannot use the ${pointer.slice(1)}: it ${detail}`,
    );
    return [status >= 500 ? 74 : 64, issues?.join('\n') ?? message];
  }
  const code = errorCode(error) ?? '';
  if ('syscall' in error || code === 'ERR_ACCESS_DENIED') {
    return [code === 'EADDRINUSE' ? 75 : 74, systemMessage(error, code)];
  }
  return [70, `Cannot go on, because of a bug in Cairn: ${error.stack}`];
}

/** Advice if the system refuses a file, a directory or a port. The message names it. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: '; run this as the owner of the files, or use another --data, or a --port above 1023',
  EADDRINUSE: '; use another --port, or stop the process that listens on it',
  EADDRNOTAVAIL: '; use a --host of this machine',
  ENOSPC: '; make room where this writes',
  ENOTDIR: '; it has to be a directory',
  ERR_ACCESS_DENIED: '; the flags of this locked-down run have to allow it',
  EROFS: '; the file system is read-only: use another --data',
};

function systemMessage(error: Error, code: string): string {
  const isDenied = code === 'ERR_ACCESS_DENIED' && 'resource' in error;
  const reason = isDenied ? `${JSON.stringify(error.resource)} is out of reach` : error.message;
  return `Cannot go on: ${reason}${remedies[code] ?? ''}`;
}
