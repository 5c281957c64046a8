import { networkOf } from './base/network.ts';
import { systemClock, type Clock } from './base/system.ts';
import { createQueue, type LogSink } from './log-queue.ts';
import type { AuditEvent } from './resources/audit.ts';

/**
 * The log: lines of JSON, or text for a person at a terminal. One value, one line: whatever a caller sent is escaped.
 *
 * A request: `{"time","level","kind":"request","id","method","route","status","durationMs","bytes","userId"}`
 * A security event: `{"time","level","kind":"security","event",…}`, never filtered by level. Who is
 * throttled can cause as many as they like: of an account and a network the first in a minute is told, then a `count`.
 * A message: `{"time","level","kind":"message","message",…}`
 *
 * A line is written at once after a rest, else with those of some milliseconds, one write at a time, so that a slow
 * reader delays nothing. When more than 1 MiB waits for it, lines are dropped and counted, and the next line that gets
 * through tells how many; security events are kept until 16 MiB wait.
 */
export interface Log {
  request(entry: RequestEntry): void;
  security(event: SecurityEvent, details: LogDetails): void;
  message(level: LogLevel, message: string, details?: LogDetails): void;
  /** How many lines were dropped so far. */
  readonly dropped: number;
  /** Resolves when all lines are written, or after `timeoutMs` when the reader does not take them. */
  close(timeoutMs: number): Promise<void>;
}

export interface RequestEntry {
  readonly id: string;
  readonly method: string;
  /** The pattern of the route, such as `/items/{id}`; `undefined` where none matched. */
  readonly route: string | undefined;
  readonly status: number;
  readonly durationMs: number;
  /** Length of the content that was sent. */
  readonly bytes: number;
  /** Who called; `undefined` where nobody is known. */
  readonly userId: number | undefined;
}

/** The names are stable: alarms are built on them. */
export type SecurityEvent = AuditEvent | 'keys_rotated';

export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>;
/** A notice is told at every level: that the server listens, that it stops. */
export type LogLevel = 'info' | 'warn' | 'error' | 'notice';
type LineKind = 'message' | 'security';
const severity: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2, notice: 3 };

const repeatMs = 60_000;
/** Accounts and networks whose repeats are counted on their own; those of all others are counted together. */
const repeatedMax = 1000;

export interface LogOptions {
  readonly format: 'pretty' | 'json';
  readonly level: LogLevel;
  /** The machine's if absent. */
  readonly clock?: Clock | undefined;
  /** Where lines go, such as a stream. It may be slow, and it may fail: the server goes on, and tries it again. */
  readonly sink: LogSink;
  /** Told once when the sink begins to fail. */
  readonly onFailure?: ((error: Error) => void) | undefined;
}

function ignore(): void {}

/** Says nothing, for `--log none` and for embedded apps without a log. */
export const silentLog: Log = {
  request: ignore,
  security: ignore,
  message: ignore,
  dropped: 0,
  close: () => Promise.resolve(),
};

export function createLog({ format, level, clock = systemClock, sink, onFailure = ignore }: LogOptions): Log {
  const least = severity[level];
  const tellDropped = (lines: number): void =>
    message('warn', 'Lines were dropped: the log was not taken fast enough', { lines });
  const queue = createQueue(sink, tellDropped, onFailure);
  const encode = format === 'json' ? jsonLine : prettyLine;
  let stampedMs = NaN;
  let stamp = '';
  const time = (): string => {
    const now = clock.now();
    if (now !== stampedMs) {
      stampedMs = now;
      stamp = new Date(now).toISOString();
    }
    return stamp;
  };
  const message = (of: LogLevel, text: string, details: LogDetails = {}): void => {
    if (severity[of] >= least) queue.add(encode(time(), of, 'message', text, details), of !== 'info');
  };
  const security = (event: SecurityEvent, details: LogDetails): void => {
    const of: LogLevel = event === 'refresh_token_reused' || event.startsWith('login_') ? 'warn' : 'info';
    queue.add(encode(time(), of, 'security', event, details), true);
  };
  const throttled = createRepeats((details) => security('login_throttled', details));
  return {
    request(entry) {
      const of: LogLevel = entry.status >= 500 ? 'error' : 'info';
      if (severity[of] < least) return;
      queue.add(format === 'json' ? jsonRequest(time(), of, entry) : prettyRequest(time(), entry), false);
    },
    security(event, details) {
      if (event === 'login_throttled') throttled.tell(details);
      else security(event, details);
    },
    message,
    get dropped() {
      return queue.dropped;
    },
    close(timeoutMs) {
      throttled.tellCounts();
      return queue.close(timeoutMs);
    },
  };
}

/** Tells an event at once, and how often it came again when `repeatMs` have passed. */
function createRepeats(tell: (details: LogDetails) => void) {
  const counts = new Map<string, { details: LogDetails; count: number }>();
  const tellCounts = (): void => {
    for (const { details, count } of counts.values()) if (count > 0) tell({ ...details, count });
    counts.clear();
  };
  return {
    tell(details: LogDetails): void {
      const own = `${details['userId']} ${networkOf(String(details['address']))}`;
      const key = counts.size < repeatedMax || counts.has(own) ? own : 'others';
      const repeated = counts.get(key);
      if (repeated !== undefined) return void (repeated.count += 1);
      tell(details);
      if (counts.size === 0) setTimeout(tellCounts, repeatMs).unref();
      counts.set(key, { details: key === own ? details : {}, count: 0 });
    },
    tellCounts,
  };
}

/** Route patterns and ids are Cairn's own and need no escape; a method may be anything that a caller thought of. */
function jsonRequest(time: string, level: LogLevel, entry: RequestEntry): string {
  const method = plain.test(entry.method) ? `"${entry.method}"` : JSON.stringify(entry.method);
  const route = entry.route === undefined ? 'null' : `"${entry.route}"`;
  return `{"time":"${time}","level":"${level}","kind":"request","id":"${entry.id}","method":${method},` +
    `"route":${route},"status":${entry.status},"durationMs":${shortMs(entry.durationMs)},"bytes":${entry.bytes},` +
    `"userId":${entry.userId ?? null}}\n`;
}

function jsonLine(time: string, level: LogLevel, kind: LineKind, text: string, details: LogDetails): string {
  return `${JSON.stringify({ time, level, kind, [kind === 'security' ? 'event' : 'message']: text, ...details })}\n`;
}

function prettyRequest(time: string, entry: RequestEntry): string {
  const who = entry.userId === undefined ? '' : ` user ${entry.userId}`;
  return `${time.slice(11, 23)} ${entry.status} ${shown(entry.method)} ${entry.route ?? '(no route)'} ` +
    `${shortMs(entry.durationMs)} ms ${entry.bytes} B${who} ${entry.id}\n`;
}

function prettyLine(time: string, level: LogLevel, kind: LineKind, text: string, details: LogDetails): string {
  const pairs = Object.entries(details).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}=${shown(String(value))}`]);
  const head = kind === 'security' ? `security ${text}` : escapeControls(text);
  const alarm = level === 'warn' || level === 'error' ? `${level.toUpperCase()} ` : '';
  return `${time.slice(11, 23)} ${alarm}${head}${pairs.join('')}\n`;
}

const plain = /^[\w!#$%&'*+.^`|~/:@-]+$/;

/** A value that cannot break its line or pass for something else. */
function shown(value: string): string {
  return plain.test(value) ? value : escapeControls(JSON.stringify(value));
}

/** Control and direction characters by their numbers, so that no text moves the cursor of who reads it. */
function escapeControls(value: string): string {
  return value.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (character) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Three decimals. Whole numbers are turned into text several times faster than fractions, and each line has one. */
function shortMs(milliseconds: number): string {
  const microseconds = Math.round(milliseconds * 1000);
  return `${Math.floor(microseconds / 1000)}.${thousandths[microseconds % 1000]}`;
}

const thousandths = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0'));
