import { fstatSync, write } from 'node:fs';
import { METHODS } from 'node:http';
import { Writable } from 'node:stream';
import type { AuditEvent } from '../accounts/events.ts';
import { systemClock, type Clock } from '../base/system.ts';
import type { RequestEntry } from '../http/message.ts';

/** Receives requests and security events, to log or to count them. */
export interface Observer {
  request(entry: RequestEntry): void;
  security(event: SecurityEvent, details: LogDetails): void;
}

/**
 * The log: one line for each event, as JSON or as text for a terminal. Values from
 * callers are escaped, so that they cannot break a line.
 *
 * A request: `{"time","level","kind":"request","id","method","route","status","durationMs","bytes","userId","address"}`
 * A security event: `{"time","level","kind":"security","event",…}`, logged at every level
 * A message: `{"time","level","kind":"message","message",…}`
 *
 * Lines are written in batches, one write at a time, so that a slow reader delays
 * nothing. While more than 1 MiB waits, lines are dropped and counted, and a later line
 * says how many. Security events are kept until 16 MiB wait.
 */
export interface Log extends Observer {
  message(level: LogLevel, message: string, details?: LogDetails): void;
  /** The number of lines dropped so far. */
  readonly dropped: number;
  /** Resolves when all lines are written, or after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

/** The name of a security event. Names are stable, because alarms depend on them. */
export type SecurityEvent = AuditEvent;

export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>;

/** The severity of a line. A notice, such as the server's start, is always logged. */
export type LogLevel = 'info' | 'warn' | 'error' | 'notice';

/** The destination of lines: a `Writable`, or a sink that may write a part of the bytes. */
export interface LogSink {
  /** Writes bytes and calls `done` once, with `accepted` if it wrote only a part of them. */
  write(bytes: Uint8Array, done: (error?: Error | null, accepted?: number) => void): unknown;
}

export interface LogOptions {
  readonly format: 'pretty' | 'json';
  readonly level: LogLevel;
  /** Absent: the clock of the machine. */
  readonly clock?: Clock | undefined;
  /** May be slow, and may fail: the log writes the same bytes again after a second. */
  readonly sink: LogSink;
  /** Called once each time the sink begins to fail. */
  readonly onError?: ((error: Error) => void) | undefined;
}

function ignore(): void {}

/** Logs nothing. */
export const silentLog: Log = {
  request: ignore,
  security: ignore,
  message: ignore,
  dropped: 0,
  close: () => Promise.resolve(),
};

/** Writes errors to standard error, for an app without a log, and nothing else. */
export const errorLog: Log = {
  ...silentLog,
  message(level, message, details) {
    if (level === 'error') writeError(`${JSON.stringify({ level, message, ...details })}\n`);
  },
};

/** Logs an error that is not reported to a caller. */
export function logError(log: Log, message: string, error: unknown, id?: string): void {
  const stack = error instanceof Error ? error.stack : String(error);
  log.message('error', message, { id, stack });
}

/** Creates a log that writes to a sink. */
export function createLog(options: LogOptions): Log {
  const { format, level, clock = systemClock, sink, onError = ignore } = options;
  const { line, request } = formats[format];
  const queue = new LineQueue(sink, onError, (lines) =>
    message('warn', 'Log lines were dropped, because the log was read too slowly', { lines }),
  );
  let lastMs = NaN;
  let lastTime = '';
  const time = (): string => {
    const now = clock.now();
    if (now !== lastMs) [lastMs, lastTime] = [now, new Date(now).toISOString()];
    return lastTime;
  };
  const message: Log['message'] = (own, text, details) => {
    if (severity[own] < severity[level]) return;
    const fields = { time: time(), level: own, kind: 'message', message: text, ...details };
    queue.add(line(fields), own !== 'info');
  };
  return {
    request(entry) {
      const own = entry.status >= 500 ? 'error' : 'info';
      if (severity[own] >= severity[level]) queue.add(request(time(), own, entry), false);
    },
    security(event, details) {
      const isAlarm = event === 'refresh_token_reused' || event.startsWith('login_');
      const own: LogLevel = isAlarm ? 'warn' : 'info';
      const fields = { time: time(), level: own, kind: 'security', event, ...details };
      queue.add(line(fields), true);
    },
    message,
    get dropped() {
      return queue.dropped;
    },
    close: (timeoutMs) => queue.close(timeoutMs),
  };
}

const severity: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2, notice: 3 };

/** The fields of a line. */
interface LineFields extends LogDetails {
  readonly time: string;
  readonly level: LogLevel;
  readonly kind: string;
}

/** How lines are written: a message or a security event, and a request. */
interface Format {
  readonly line: (fields: LineFields) => string;
  readonly request: (time: string, level: LogLevel, entry: RequestEntry) => string;
}

const formats: Readonly<Record<LogOptions['format'], Format>> = {
  json: { line: (fields) => `${JSON.stringify(fields)}\n`, request: jsonRequest },
  pretty: { line: prettyLine, request: prettyRequest },
};

/**
 * Returns the line of a request. It is put together by hand because every request needs
 * one. Routes and ids are Cairn's own and need no escapes.
 */
function jsonRequest(time: string, level: LogLevel, entry: RequestEntry): string {
  const { method } = entry;
  const written = knownMethods.has(method) ? `"${method}"` : JSON.stringify(method);
  const route = entry.route === undefined ? 'null' : `"${entry.route}"`;
  return (
    `{"time":"${time}","level":"${level}","kind":"request","id":"${entry.id}",` +
    `"method":${written},"route":${route},"status":${entry.status},` +
    `"durationMs":${thousandths(entry.durationMs)},"bytes":${entry.bytes},` +
    `"userId":${entry.userId ?? null},"address":${JSON.stringify(entry.address)}}\n`
  );
}

const knownMethods: ReadonlySet<string> = new Set(METHODS);

/** Rounds to three decimals, in less time than `toFixed`. */
function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function prettyRequest(time: string, level: LogLevel, entry: RequestEntry): string {
  const {
    id,
    method,
    target,
    route = '(no route)',
    status,
    durationMs,
    bytes,
    userId,
    address,
  } = entry;
  // A person at a terminal wants to see a path that was not found. The query may hold secrets.
  const [path = ''] = target.slice(0, shownPathMax).split('?');
  const message = `${status} ${shown(method)} ${status === 404 ? shown(path) : route}`;
  const ms = thousandths(durationMs);
  return prettyLine({ time, level, kind: 'request', message, ms, bytes, userId, address, id });
}

const shownPathMax = 200;

function prettyLine({ time, level, kind, message, event, ...details }: LineFields): string {
  const head = kind === 'security' ? `security ${event}` : escapeControls(String(message));
  const pairs = Object.entries(details).map(([name, value]) =>
    value === undefined ? '' : ` ${name}=${shown(String(value))}`,
  );
  const alarm = level === 'warn' || level === 'error' ? `${level.toUpperCase()} ` : '';
  return `${time.slice(11, 23)} ${alarm}${head}${pairs.join('')}\n`;
}

const plain = /^[\w!#$%&'*+.^`|~/:@-]+$/;

/**
 * Returns a plain value as it is. Quotes one that could break the line or look like
 * another field.
 */
function shown(value: string): string {
  return plain.test(value) ? value : escapeControls(JSON.stringify(value));
}

/**
 * Replaces control and direction characters, which a terminal would obey, by their
 * numbers.
 */
function escapeControls(value: string): string {
  return value.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The most text that may wait, in characters, before lines are dropped. */
const waitingMax = 1024 * 1024;
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
/** The text that is written without waiting for more: longer ones take more time a line. */
const batchLength = 32 * 1024;
const retryMs = 1000;

/** Gathers lines, and writes them one batch at a time. */
class LineQueue {
  /** The number of lines dropped so far. */
  dropped = 0;
  readonly #sink: LogSink;
  readonly #onError: (error: Error) => void;
  readonly #onDropped: (lines: number) => void;
  /** The lines for the next batch. */
  #waiting = '';
  /** Whether one of them is kept, and so does not wait for others. */
  #hasKept = false;
  #isWriting = false;
  #droppedReported = 0;
  #timer: NodeJS.Timeout | undefined;
  #whenEmpty: (() => void) | undefined;

  constructor(sink: LogSink, onError: (error: Error) => void, onDropped: (lines: number) => void) {
    this.#sink = sink;
    this.#onError = onError;
    this.#onDropped = onDropped;
    if (sink instanceof Writable) tolerateErrors(sink);
  }

  /**
   * Adds a line. A kept line is dropped only if 16 MiB wait, and is written when the sink has
   * accepted what was written before, with the lines of the same millisecond.
   */
  add(line: string, isKept: boolean): void {
    if (this.#waiting.length > (isKept ? keptMax : waitingMax)) {
      this.dropped += 1;
      return;
    }
    this.#waiting += line;
    if (isKept && !this.#hasKept) {
      this.#hasKept = true;
      this.#stopTimer();
    }
    this.#schedule();
  }

  close(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      const former = this.#whenEmpty;
      this.#whenEmpty = () => {
        former?.();
        clearTimeout(timer);
        resolve();
      };
      if (!this.#isWriting) void this.#writeBatch();
    });
  }

  /** Writes the next batch if it is long enough, and else a little later. */
  #schedule(): void {
    if (this.#isWriting) return;
    const delayMs = this.#hasKept ? 0 : flushMs;
    if (this.#waiting.length >= batchLength) void this.#writeBatch();
    else this.#timer ??= setTimeout(() => void this.#writeBatch(), delayMs);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #writeBatch(): Promise<void> {
    this.#stopTimer();
    this.#isWriting = true;
    const batch = Buffer.from(this.#waiting);
    this.#waiting = '';
    this.#hasKept = false;
    await this.#writeWhole(batch);
    const lines = this.dropped - this.#droppedReported;
    this.#droppedReported = this.dropped;
    if (lines > 0) this.#onDropped(lines);
    this.#isWriting = false;
    if (this.#waiting === '') this.#whenEmpty?.();
    else if (this.#whenEmpty !== undefined) await this.#writeBatch();
    else this.#schedule();
  }

  /** Writes all bytes, and tries again each second while the sink does not accept them. */
  async #writeWhole(bytes: Buffer): Promise<void> {
    for (let left = bytes, hasFailed = false; left.length > 0;) {
      const { accepted, error } = await this.#offer(left);
      left = left.subarray(accepted);
      if (left.length === 0) return;
      if (!hasFailed) this.#onError(error);
      hasFailed = true;
      await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
    }
  }

  #offer(bytes: Buffer): Promise<{ accepted: number; error: Error }> {
    return new Promise((resolve) => {
      const done: Parameters<LogSink['write']>[1] = (error, accepted) =>
        resolve({
          accepted: accepted ?? (error ? 0 : bytes.length),
          error: error ?? new Error('it accepted only a part'),
        });
      try {
        this.#sink.write(bytes, done);
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }
}

/** Keeps the errors of a stream, which its writers see, from ending the process. */
function tolerateErrors(stream: Writable): void {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
}

let unwrittenErrors = 0;

/**
 * Writes text to standard error. Its reader may have gone or stopped to read, and its disk may be
 * full: then the text is counted, and the next one that can be written is followed by the number.
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
 * Returns standard output as a sink that never blocks the event loop. Node.js writes to
 * pipes and sockets without blocking, but blocks on files and terminals. Those are
 * written in the thread pool.
 */
export function standardOutput(): LogSink {
  const kind = fstatSync(1);
  if (kind.isFIFO() || kind.isSocket()) return process.stdout;
  return { write: (bytes, done) => write(1, bytes, done) };
}
