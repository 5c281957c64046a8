import { fstatSync, write } from 'node:fs';
import { tolerateErrors, waitingMax, type LogSink } from './line-queue.ts';

let unwrittenErrors = 0;

/**
 * Writes text to standard error. If its reader has left or stalled, or its disk is full, the text
 * is counted, and the next text that can be written is followed by the number.
 */
export function writeError(text: string): void {
  if (process.stderr.writableLength > waitingMax) {
    unwrittenErrors += 1;
    return;
  }
  tolerateErrors(process.stderr);
  process.stderr.write(text, (error) => {
    if (error) {
      unwrittenErrors += 1;
    } else if (unwrittenErrors > 0) {
      const count = unwrittenErrors;
      unwrittenErrors = 0;
      writeError(`${count} earlier messages could not be written to standard error\n`);
    }
  });
}

/**
 * Returns standard output as a sink that never blocks the event loop. Node.js blocks on files and
 * terminals, so those are written in the thread pool.
 */
export function standardOutput(): LogSink {
  const kind = fstatSync(1);
  if (kind.isFIFO() || kind.isSocket()) return process.stdout;
  return { write: (bytes, done) => write(1, bytes, done) };
}
