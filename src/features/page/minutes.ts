import type { Clock } from '../../base/system.ts';
import type { RequestEntry } from '../../http/message.ts';

/** Figures of one minute. */
export interface Minute {
  /** Its start, as an ISO 8601 timestamp. */
  readonly at: string;
  readonly requests: number;
  /** The time within which 99 % were answered but for feeds, rounded up by at most 25 % and 0.1 ms. */
  readonly p99Ms: number;
  /** Requests that changed something. */
  readonly writes: number;
  /** Sign-ins that were refused for their credentials. */
  readonly failedSignIns: number;
  /** Records in all collections at the end of the minute. */
  readonly records: number;
}

const minuteMs = 60_000;
const minutesMax = 60;
/** Durations are counted in buckets that grow by a quarter: from 0.1 ms to more than a minute. */
const [shortestMs, growth, buckets] = [0.1, 1.25, 61];
const signInRoutes = ['/login', '/tokens'];

/** Figures of the last hour, minute by minute. They cost a request some additions. */
export class Minutes {
  readonly #clock: Clock;
  readonly #records: () => number;
  readonly #past: Minute[] = [];
  readonly #durations = new Uint32Array(buckets);
  /** The current minute, since the Unix epoch. */
  #minute: number;
  #requests = 0;
  /** Requests whose duration counts. */
  #timed = 0;
  #writes = 0;
  #failedSignIns = 0;

  /** @param records returns the number of records in all collections */
  constructor(clock: Clock, records: () => number) {
    this.#clock = clock;
    this.#records = records;
    this.#minute = Math.floor(clock.now() / minuteMs);
  }

  /** Counts a request that was answered. */
  request({ method, route = '', status, durationMs }: RequestEntry): void {
    this.#advance();
    this.#requests += 1;
    const isWrite = method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
    if (isWrite && status < 300) this.#writes += 1;
    if (status === 401 && signInRoutes.includes(route)) this.#failedSignIns += 1;
    // A feed lasts as long as its reader stays.
    if (route === '/changes') return;
    this.#timed += 1;
    const place = Math.ceil(Math.log(durationMs / shortestMs) / Math.log(growth));
    const bucket = Math.min(Math.max(place, 0), buckets - 1);
    this.#durations[bucket] = (this.#durations[bucket] ?? 0) + 1;
  }

  /** The last hour, oldest first. The last minute is the current one. */
  recent(): Minute[] {
    this.#advance();
    return [...this.#past, this.#current()];
  }

  /** Begins a new minute if one has passed. Minutes without requests are kept, too. */
  #advance(): void {
    const now = Math.floor(this.#clock.now() / minuteMs);
    // After a long silence, the minutes before the last hour are not needed.
    this.#minute = Math.max(this.#minute, now - minutesMax);
    for (; this.#minute < now; this.#minute += 1) {
      this.#past.push(this.#current());
      if (this.#past.length >= minutesMax) this.#past.shift();
      this.#requests = this.#timed = this.#writes = this.#failedSignIns = 0;
      this.#durations.fill(0);
    }
  }

  #current(): Minute {
    return {
      at: new Date(this.#minute * minuteMs).toISOString(),
      requests: this.#requests,
      p99Ms: this.#p99(),
      writes: this.#writes,
      failedSignIns: this.#failedSignIns,
      records: this.#records(),
    };
  }

  #p99(): number {
    let rest = this.#timed - Math.ceil(this.#timed * 0.99);
    for (let place = buckets - 1; place >= 0; place -= 1) {
      rest -= this.#durations[place] ?? 0;
      if (rest < 0) return Math.ceil(shortestMs * growth ** place * 10) / 10;
    }
    return 0;
  }
}
