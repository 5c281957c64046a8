/** Gathers lines, and writes them one batch at a time. */
import { Writable } from 'node:stream';
import { toError } from '../base/errors.ts';
import { timers } from '../base/system.ts';

/** The destination of lines, such as a `Writable`. */
export interface LogSink {
  /** Writes bytes and calls `done` once. */
  write(bytes: Uint8Array, done: (error?: Error | null) => void): unknown;
}

interface LineQueueOptions {
  readonly sink: LogSink;
  /** Called once each time the sink begins to fail. */
  readonly onError: (error: Error) => void;
  /** Called with the number of lines that were dropped, once later ones were written. */
  readonly onDropped: (lines: number) => void;
}

/** The most bytes that may wait before lines are dropped. */
export const waitingMax = 1024 * 1024;
/**
 * The same for kept lines. Even they must not fill the memory if nothing reads the log
 * for days.
 */
const keptMax = 16 * 1024 * 1024;
/**
 * How long lines of requests are gathered. One write each would cost more than the
 * request itself.
 */
const flushMs = 20;
/** What is written without waiting for more. */
const batchBytes = 64 * 1024;
const retryMs = 1000;

export class LineQueue {
  /** The number of lines dropped so far. */
  dropped = 0;
  readonly #options: LineQueueOptions;
  /** Full batches, oldest first. */
  readonly #full: Buffer[] = [];
  /** The batch that lines are added to, and how far it is filled. */
  #batch = Buffer.allocUnsafe(batchBytes);
  #filled = 0;
  /** The bytes of all batches. */
  #waiting = 0;
  /** Whether the last batch has a kept line, and so does not wait for others. */
  #hasKept = false;
  #isWriting = false;
  #droppedReported = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #whenEmpty: (() => void)[] = [];

  constructor(options: LineQueueOptions) {
    this.#options = options;
    if (options.sink instanceof Writable) tolerateErrors(options.sink);
  }

  /** Adds a line, which is written with others. It is dropped if 1 MiB waits. */
  add(line: string): void {
    if (this.#append(line, waitingMax)) this.#schedule();
  }

  /**
   * Adds a line that is dropped only if 16 MiB wait, and that is written when the sink has
   * accepted what was written before, with the lines of the same millisecond.
   */
  keep(line: string): void {
    if (!this.#append(line, keptMax)) return;
    if (!this.#hasKept) this.#stopTimer();
    this.#hasKept = true;
    this.#schedule();
  }

  /** Resolves when all lines are written, or after `timeoutMs`. */
  close(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timers.setTimeout(resolve, timeoutMs);
      this.#whenEmpty.push(() => {
        timers.clearTimeout(timer);
        resolve();
      });
      if (!this.#isWriting) void this.#write();
    });
  }

  #append(line: string, waitingMax: number): boolean {
    if (this.#waiting > waitingMax) {
      this.dropped += 1;
      return false;
    }
    // A UTF-16 code unit takes at most three bytes.
    const most = 3 * line.length;
    if (most > this.#batch.length - this.#filled) {
      if (this.#filled > 0) this.#full.push(this.#takeBatch(most));
      else this.#takeBatch(most);
    }
    const bytes = this.#batch.write(line, this.#filled);
    this.#filled += bytes;
    this.#waiting += bytes;
    return true;
  }

  /** Returns the batch that lines were added to, and begins another with room for `most`. */
  #takeBatch(most = 0): Buffer {
    const batch = this.#batch.subarray(0, this.#filled);
    this.#batch = Buffer.allocUnsafe(Math.max(batchBytes, most));
    this.#filled = 0;
    this.#hasKept = false;
    return batch;
  }

  /** Writes the next batch if it is full, and else a little later. */
  #schedule(): void {
    if (this.#isWriting) return;
    if (this.#full.length > 0) void this.#write();
    else this.#timer ??= timers.setTimeout(() => void this.#write(), this.#hasKept ? 0 : flushMs);
  }

  #stopTimer(): void {
    timers.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #write(): Promise<void> {
    this.#stopTimer();
    this.#isWriting = true;
    const batch = this.#full.shift() ?? this.#takeBatch();
    this.#waiting -= batch.length;
    if (batch.length > 0) await this.#offer(batch);
    const lines = this.dropped - this.#droppedReported;
    this.#droppedReported = this.dropped;
    if (lines > 0) this.#options.onDropped(lines);
    this.#isWriting = false;
    if (this.#waiting === 0) for (const resolve of this.#whenEmpty) resolve();
    else if (this.#whenEmpty.length > 0) await this.#write();
    else this.#schedule();
  }

  /** Offers a batch to the sink, again each second until it is accepted. */
  async #offer(batch: Buffer): Promise<void> {
    const { sink, onError } = this.#options;
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        return await new Promise<void>((resolve, reject) =>
          sink.write(batch, (error) => (error ? reject(error) : resolve())),
        );
      } catch (error) {
        if (!hasFailed) onError(toError(error));
      }
      await new Promise((resolve) => timers.setTimeout(resolve, retryMs).unref());
    }
  }
}

/** Keeps the errors of a stream, which its writers see, from ending the process. */
export function tolerateErrors(stream: Writable): void {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
}

function ignore(): void {}
