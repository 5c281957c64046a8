/** Gathers lines, and writes them one batch at a time. */
import { Writable } from 'node:stream';
import { toError } from '../base/errors.ts';
import { timers } from '../base/system.ts';

export interface LogSink {
  /**
   * Writes bytes and calls `done` once. After a partial write, it passes the number of bytes
   * written, as `fs.write` does, and gets the rest next.
   */
  write(bytes: Uint8Array, done: (error?: Error | null, written?: number) => void): unknown;
}

interface LineQueueOptions {
  readonly sink: LogSink;
  /** Called once each time the sink begins to fail. */
  readonly onError: (error: Error) => void;
  /** Called with the number of dropped lines, once later ones were written. */
  readonly onDropped: (lines: number) => void;
}

/** The most code units that may wait before lines are dropped. */
export const waitingMax = 1024 * 1024;
/** The same for kept lines, so that a log that nobody reads for days does not fill the memory. */
const keptMax = 16 * 1024 * 1024;
/** The time for gathering lines of requests. One write each would cost more than the request. */
const gatheringMs = 20;
/** A batch of this length is written at once. */
const batchLength = 64 * 1024;

export class LineQueue {
  /** Lines that had no room, or that the sink did not take. */
  dropped = 0;
  readonly #options: LineQueueOptions;
  readonly #full: string[] = [];
  #batch = '';
  #delayMs = gatheringMs;
  #waiting = 0;
  #isWriting = false;
  #isFailing = false;
  /** True if the sink has only the beginning of a line. */
  #isTorn = false;
  #droppedReported = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #whenEmpty: (() => void)[] = [];

  constructor(options: LineQueueOptions) {
    this.#options = options;
    if (options.sink instanceof Writable) tolerateErrors(options.sink);
  }

  /** Drops the line if 1 MiB waits. */
  add(line: string): void {
    if (this.#append(line, waitingMax)) this.#schedule();
  }

  /**
   * Adds a line that is dropped only if 16 MiB wait, and that is written right after the batch in
   * progress, with the other lines of the same millisecond.
   */
  keep(line: string): void {
    if (!this.#append(line, keptMax)) return;
    if (this.#delayMs > 0) this.#stopTimer();
    this.#delayMs = 0;
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
    const isFull = this.#batch.length + line.length > batchLength;
    if (isFull && this.#batch !== '') this.#full.push(this.#takeBatch());
    this.#batch += line;
    this.#waiting += line.length;
    return true;
  }

  #takeBatch(): string {
    const batch = this.#batch;
    this.#batch = '';
    this.#delayMs = gatheringMs;
    return batch;
  }

  #schedule(): void {
    if (this.#isWriting) return;
    if (this.#full.length > 0) void this.#write();
    else this.#timer ??= timers.setTimeout(() => void this.#write(), this.#delayMs);
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
    if (batch !== '') await this.#offer(batch);
    this.#isWriting = false;
    if (this.#waiting === 0) for (const resolve of this.#whenEmpty) resolve();
    else if (this.#whenEmpty.length > 0) await this.#write();
    else this.#schedule();
  }

  /** Drops lines that the sink does not take. */
  async #offer(batch: string): Promise<void> {
    const { sink, onError, onDropped } = this.#options;
    const separator = this.#isTorn ? '\n' : '';
    const bytes = Buffer.from(separator + batch);
    let done = 0;
    try {
      while (done < bytes.length) {
        const rest = bytes.subarray(done);
        done += await new Promise<number>((resolve, reject) =>
          sink.write(rest, (error, written = rest.length) =>
            error || written === 0 ? reject(error ?? new Error(tookNothing)) : resolve(written),
          ),
        );
      }
      this.#isFailing = this.#isTorn = false;
      const lines = this.dropped - this.#droppedReported;
      this.#droppedReported = this.dropped;
      if (lines > 0) onDropped(lines);
    } catch (error) {
      const rest = bytes.subarray(Math.max(done, separator.length));
      for (const byte of rest) this.dropped += Number(byte === lineFeed);
      if (done > 0) this.#isTorn = bytes[done - 1] !== lineFeed;
      if (!this.#isFailing) onError(toError(error));
      this.#isFailing = true;
    }
  }
}

const lineFeed = 0x0a;
const tookNothing = 'the sink of the log took no bytes';

/** Keeps a stream's errors, which its writers also see, from ending the process. */
export function tolerateErrors(stream: Writable): void {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
}

function ignore(): void {}
