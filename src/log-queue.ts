import { fstatSync, write } from 'node:fs';
import { Writable } from 'node:stream';

/** A `Writable`, or less: takes `bytes`, and says how many of them it took where that was not all. */
export interface LogSink {
  write(bytes: Uint8Array, done: (error?: Error | null, taken?: number) => void): unknown;
}

const logBytesMax = 1024 * 1024;
/** Security events are kept beyond that; a log that nobody takes for days must still not take all of the memory. */
const alwaysBytesMax = 16 * 1024 * 1024;
const flushBytes = 64 * 1024;
const batchBytes = 72 * 1024;
const retryMs = 1000;
/** How long lines are gathered after a write: one for each line would cost a lone caller more than its request. */
const flushMs = 20;

/**
 * Gathers lines and writes them one batch at a time. `always`: the line is kept even when too many wait. What the sink
 * does not take is offered again, from the byte on that it did not take.
 */
export function createQueue(sink: LogSink, tellDropped: (count: number) => void, tellFailure: (error: Error) => void) {
  // A stream that fails does not only tell its caller.
  if (sink instanceof Writable && !sink.listeners('error').includes(ignore)) sink.on('error', ignore);
  // Lines as bytes: text that grows line by line would be put together in the end, when no cache holds it any more.
  let batch = Buffer.allocUnsafe(batchBytes);
  let length = 0;
  let writing = false;
  /** Runs from each write on; where none does, nothing was written of late, and a line need not wait for others. */
  let timer: NodeJS.Timeout | undefined;
  let failed = false;
  let dropped = 0;
  let untold = 0;
  let whenEmpty: (() => void) | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (writing) return;
    if (length === 0) return whenEmpty?.();
    // A copy, since the sink may keep it.
    const lines = Buffer.from(batch.subarray(0, length));
    if (batch.length > batchBytes) batch = Buffer.allocUnsafe(batchBytes);
    length = 0;
    writing = true;
    offer(lines);
  };
  const offer = (lines: Buffer): void => {
    sink.write(lines, (error, taken = error instanceof Error ? 0 : lines.length) => {
      const rest = lines.subarray(taken);
      if (error instanceof Error) {
        if (!failed) tellFailure(error);
        failed = true;
        setTimeout(offer, retryMs, rest).unref();
        return;
      }
      failed = false;
      if (rest.length > 0) offer(rest);
      else written();
    });
  };
  const written = (): void => {
    writing = false;
    const lines = untold;
    untold = 0;
    if (lines > 0) tellDropped(lines);
    if (length >= flushBytes || whenEmpty !== undefined) flush();
    else timer ??= setTimeout(flush, flushMs);
  };
  return {
    add(line: string, always: boolean): void {
      if (length > (always ? alwaysBytesMax : logBytesMax)) {
        dropped += 1;
        untold += 1;
        return;
      }
      // UTF-8 takes at most three bytes for each unit of a string.
      const needed = length + 3 * line.length;
      if (needed > batch.length) batch = Buffer.concat([batch.subarray(0, length)], 2 * needed);
      length += batch.write(line, length);
      if (length >= flushBytes) flush();
      else if (!writing) timer ??= setTimeout(flush, 0);
    },
    get dropped(): number {
      return dropped;
    },
    close(timeoutMs: number): Promise<void> {
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        whenEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
        flush();
      });
    },
  };
}

/**
 * Standard output, without ever blocking the loop: Node.js writes to pipes and sockets without waiting, but to files
 * and terminals it waits, so those are written to in the thread pool.
 */
export function standardOutput(): LogSink {
  const kind = fstatSync(1);
  return kind.isFIFO() || kind.isSocket() ? process.stdout : { write: (bytes, done) => write(1, bytes, done) };
}

function ignore(): void {}
