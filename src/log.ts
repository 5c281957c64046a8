import { fstatSync, write } from 'node:fs';
import { Writable } from 'node:stream';
import { networkOf } from './base/network.ts';
import { systemClock, type Clock } from './base/system.ts';
import type { RequestEntry } from './http/message.ts';
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

/** A `Writable`, or less: takes `bytes`, and says how many of them it took where that was not all. */
export interface LogSink {
  write(bytes: Uint8Array, done: (error?: Error | null, taken?: number) => void): unknown;
}

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
  const queue = createQueue(sink, onFailure, (lines) =>
    message('warn', 'Lines were dropped: the log was not taken fast enough', { lines }));
  const encode = format === 'json' ? jsonLine : prettyLine;
  let stampedMs = NaN;
  let stamp = '';
  const time = (): string => {
    const now = clock.now();
    if (now !== stampedMs) [stampedMs, stamp] = [now, new Date(now).toISOString()];
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
function createQueue(sink: LogSink, tellFailure: (error: Error) => void, tellDropped: (lines: number) => void) {
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
  let told = 0;
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
    let settled = false;
    const settle: Parameters<LogSink['write']>[1] = (error, taken = error instanceof Error ? 0 : lines.length) => {
      if (settled) return;
      settled = true;
      const rest = lines.subarray(taken);
      const wasFailed = failed;
      failed = error instanceof Error || taken === 0;
      if (rest.length === 0) written();
      else if (failed) setTimeout(offer, retryMs, rest).unref();
      else setImmediate(offer, rest);
      if (failed && !wasFailed) tellFailure(error instanceof Error ? error : new Error('it takes nothing'));
    };
    try {
      sink.write(lines, settle);
    } catch (error) {
      settle(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const written = (): void => {
    writing = false;
    const untold = dropped - told;
    told = dropped;
    if (untold > 0) tellDropped(untold);
    if (length >= flushBytes || whenEmpty !== undefined) flush();
    else timer ??= setTimeout(flush, flushMs);
  };
  return {
    add(line: string, always: boolean): void {
      if (length > (always ? alwaysBytesMax : logBytesMax)) return void (dropped += 1);
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
