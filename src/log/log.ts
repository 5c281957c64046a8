import type { AuditEvent } from '../accounts/events.ts';
import { readStack } from '../base/errors.ts';
import { METHODS, systemClock, type Clock } from '../base/system.ts';
import type { RequestEntry } from '../http/message.ts';
import { LineQueue, type LogSink } from './line-queue.ts';
import { writeError } from './standard-streams.ts';

/** Receives requests and security events, to log or count them. */
export interface Observer {
  request?(entry: RequestEntry): void;
  security?(event: SecurityEvent, details: LogDetails): void;
}

/**
 * The log: one line for each event, as JSON or in another format. Values from callers are escaped,
 * so that they cannot break a line.
 *
 * A request: `{"time","level","kind":"request","id","method","route","status","durationMs","bytes","userId","address"}`
 * A security event: `{"time","level","kind":"security","event",…}`, logged at every level
 * A message: `{"time","level","kind":"message","message",…}`
 *
 * Lines are written in batches, one write at a time, so that a slow reader delays nothing. Lines
 * are dropped while more than 1 MiB waits, and if the sink does not take them; a later line has
 * their number. Security events are kept until 16 MiB wait.
 */
export interface Log extends Required<Observer> {
  message(level: LogLevel, message: string, details?: LogDetails): void;
  /** The number of lines dropped so far. */
  readonly dropped: number;
  /** Resolves when all lines are written, or after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

/** Names are stable, because alarms depend on them. */
export type SecurityEvent = AuditEvent;

export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>;

/** The severity of a line. A notice, such as the server's start, is always logged. */
export type LogLevel = 'info' | 'warn' | 'error' | 'notice';

export interface LineFields extends LogDetails {
  readonly time: string;
  readonly level: LogLevel;
  readonly kind: string;
}

export interface Format {
  readonly line: (fields: LineFields) => string;
  readonly request: (time: string, level: LogLevel, entry: RequestEntry) => string;
}

export interface LogOptions {
  /** JSON if absent. */
  readonly format?: Format | undefined;
  readonly level: LogLevel;
  /** The machine's clock if absent. */
  readonly clock?: Clock | undefined;
  /** May be slow or fail: lines that it does not take are dropped. */
  readonly sink: LogSink;
  /** Called once each time the sink begins to fail. */
  readonly onError?: ((error: Error) => void) | undefined;
}

function ignore(): void {}

export const silentLog: Log = {
  request: ignore,
  security: ignore,
  message: ignore,
  dropped: 0,
  close: () => Promise.resolve(),
};

/** For an app without a log: writes only errors, to standard error. */
export const errorLog: Log = {
  ...silentLog,
  message(level, message, details) {
    if (level === 'error') writeError(`${JSON.stringify({ level, message, ...details })}\n`);
  },
};

export function logError(log: Log, message: string, error: unknown, id?: string): void {
  log.message('error', message, { id, stack: readStack(error) });
}

export function createLineLog(options: LogOptions): Log {
  return new LineLog(options);
}

class LineLog implements Log {
  readonly #options: LogOptions;
  readonly #format: Format;
  readonly #clock: Clock;
  readonly #queue: LineQueue;
  #lastMs = NaN;
  #lastTime = '';

  constructor(options: LogOptions) {
    const { format = json, clock = systemClock, sink, onError = ignore } = options;
    const dropped = 'Log lines were dropped: the log was read too slowly, or could not be written';
    const onDropped = (lines: number): void => this.message('warn', dropped, { lines });
    this.#options = options;
    this.#format = format;
    this.#clock = clock;
    this.#queue = new LineQueue({ sink, onError, onDropped });
  }

  request(entry: RequestEntry): void {
    const level = entry.status >= 500 ? 'error' : 'info';
    if (this.#shows(level)) this.#queue.add(this.#format.request(this.#time(), level, entry));
  }

  security(event: SecurityEvent, details: LogDetails): void {
    const isAlarm = event === 'refresh_token_reused' || event.startsWith('login_');
    const level = isAlarm ? 'warn' : 'info';
    const fields = { time: this.#time(), level, kind: 'security', event, ...details } as const;
    this.#queue.keep(this.#format.line(fields));
  }

  message(level: LogLevel, message: string, details?: LogDetails): void {
    if (!this.#shows(level)) return;
    const line = this.#format.line({
      time: this.#time(),
      level,
      kind: 'message',
      message,
      ...details,
    });
    if (level === 'info') this.#queue.add(line);
    else this.#queue.keep(line);
  }

  get dropped(): number {
    return this.#queue.dropped;
  }

  close(timeoutMs: number): Promise<void> {
    return this.#queue.close(timeoutMs);
  }

  #shows(level: LogLevel): boolean {
    return severity[level] >= severity[this.#options.level];
  }

  /** Made once for all lines of a millisecond. */
  #time(): string {
    const now = this.#clock.now();
    if (now !== this.#lastMs) {
      this.#lastMs = now;
      this.#lastTime = new Date(now).toISOString();
    }
    return this.#lastTime;
  }
}

const severity: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2, notice: 3 };

const json: Format = {
  line: (fields) => `${JSON.stringify(fields)}\n`,
  request: jsonRequest,
};

/**
 * Returns the line of a request. It is concatenated for speed, since every request needs one.
 * Routes are Cairn's own, and a proxy's id has a form that needs no escapes.
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

/** Callers may invent other methods. */
export const knownMethods: ReadonlySet<string> = new Set(METHODS);

/** Rounds to three decimals, faster than `toFixed`. */
export function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}
