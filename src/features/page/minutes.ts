import { createHistogram } from 'node:perf_hooks';
import type { Clock } from '../../base/system.ts';
import type { RequestEntry } from '../../http/message.ts';

export interface Minute {
  /** ISO 8601 timestamp of its start. */
  readonly at: string;
  readonly requests: number;
  /** The 99th percentile of requests except feeds: two digits, in steps of 0.1 ms. */
  readonly p99Ms: number;
  readonly writes: number;
  readonly failedSignIns: number;
  /** At the end of the minute, in all collections. */
  readonly records: number;
}

const minuteMs = 60_000;
const minutesMax = 60;
/** Longer requests count as this long. */
const longestUs = 120_000_000;
const signInRoutes = ['/login', '/tokens'];

/** Counts the last hour, at the cost of a few additions for each request. */
export class Minutes {
  readonly #clock: Clock;
  readonly #records: () => number;
  readonly #past: Minute[] = [];
  /** In microseconds. */
  readonly #durations = createHistogram({ lowest: 1, highest: longestUs, figures: 2 });
  /** Minutes since the Unix epoch. */
  #minute: number;
  #requests = 0;
  #writes = 0;
  #failedSignIns = 0;

  /** @param records returns the number of records in all collections */
  constructor(clock: Clock, records: () => number) {
    this.#clock = clock;
    this.#records = records;
    this.#minute = Math.floor(clock.now() / minuteMs);
  }

  request({ method, route = '', status, durationMs }: RequestEntry): void {
    this.#advance();
    this.#requests += 1;
    const isWrite = method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
    if (isWrite && status < 300) this.#writes += 1;
    if (status === 401 && signInRoutes.includes(route)) this.#failedSignIns += 1;
    // A feed lasts as long as its reader stays.
    if (route.endsWith('/changes')) return;
    this.#durations.record(Math.min(Math.ceil(durationMs * 1000) || 1, longestUs));
  }

  /** Oldest first. The last minute is the current one. */
  recent(): Minute[] {
    this.#advance();
    return [...this.#past, this.#current()];
  }

  /** Begins a new minute if one has passed. Minutes without requests are also kept. */
  #advance(): void {
    const now = Math.floor(this.#clock.now() / minuteMs);
    // After a long silence, only the last hour is needed.
    this.#minute = Math.max(this.#minute, now - minutesMax);
    for (; this.#minute < now; this.#minute += 1) {
      this.#past.push(this.#current());
      if (this.#past.length >= minutesMax) this.#past.shift();
      this.#requests = this.#writes = this.#failedSignIns = 0;
      this.#durations.reset();
    }
  }

  #current(): Minute {
    return {
      at: new Date(this.#minute * minuteMs).toISOString(),
      requests: this.#requests,
      p99Ms: Math.ceil(this.#durations.percentile(99) / 100) / 10,
      writes: this.#writes,
      failedSignIns: this.#failedSignIns,
      records: this.#records(),
    };
  }
}
