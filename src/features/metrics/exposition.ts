import { auditEvents } from '../../accounts/events.ts';
import { systemClock, timers } from '../../base/system.ts';
import type { RequestEntry } from '../../http/message.ts';
import { knownMethods, type Observer, type SecurityEvent } from '../../log/log.ts';

/** Type, name, help, and samples or a single value. Omitted without a value. */
export type Family = readonly [
  type: 'gauge' | 'counter' | 'histogram',
  name: string,
  help: string,
  values: Iterable<Sample> | number | undefined,
];

/** Labels, such as `{state="full"}`, and a value. Our labels need no escapes. */
export type Sample = readonly [suffix: string, value: number];

export function exposition(families: readonly Family[]): string {
  return families
    .map(([type, name, help, values]) => {
      if (values === undefined) return '';
      const samples: Iterable<Sample> = typeof values === 'number' ? [['', values]] : values;
      const lines = Array.from(
        samples,
        ([suffix, value]) => `${name}${suffix} ${numeral(value)}\n`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}

function numeral(value: number): string {
  return value === Infinity ? '+Inf' : String(value);
}

// prettier-ignore
const bounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, Infinity,
];

class Histogram {
  #seconds = 0;
  /** The number of durations in each bucket: above the previous bound, up to its own. */
  readonly #counts = bounds.map(() => 0);

  observe(seconds: number): void {
    const place = bounds.findIndex((bound) => seconds <= bound);
    this.#counts[place] = (this.#counts[place] ?? 0) + 1;
    this.#seconds += seconds;
  }

  /** `label` is empty, or one label such as `route="/items"`. */
  samples(label = ''): Sample[] {
    let count = 0;
    const buckets = bounds.map((bound, place): Sample => {
      count += this.#counts[place] ?? 0;
      return [`_bucket{${label}${label && ','}le="${numeral(bound)}"}`, count];
    });
    const labels = label && `{${label}}`;
    return [...buckets, [`_sum${labels}`, this.#seconds], [`_count${labels}`, count]];
  }
}

class RouteFigures {
  /**
   * The number of responses, by method and status: `GET 200`. Labels would cost time in each
   * request.
   */
  readonly answered = new Map<string, number>();
  readonly durations = new Histogram();
}

const loopIntervalMs = 20;

export class Metrics implements Observer {
  readonly #routes = new Map<string, RouteFigures>();
  /**
   * Contains every event from the start: a counter that appears with its first event shows no
   * increase.
   */
  readonly #events = new Map(auditEvents.map((event) => [`{event="${event}"}`, 0]));
  readonly #loopDelay = new Histogram();
  #loopTimer: NodeJS.Timeout | undefined;

  /** Started only if somebody reads the metrics. */
  #measureLoop(): void {
    let due = systemClock.elapsed() + loopIntervalMs;
    this.#loopTimer = timers.setInterval(() => {
      const now = systemClock.elapsed();
      this.#loopDelay.observe(Math.max(0, now - due) / 1000);
      due = now + loopIntervalMs;
    }, loopIntervalMs);
    this.#loopTimer.unref();
  }

  close(): void {
    if (this.#loopTimer !== undefined) timers.clearInterval(this.#loopTimer);
  }

  request({ method, route = '', status, durationMs }: RequestEntry): void {
    let figures = this.#routes.get(route);
    if (figures === undefined) this.#routes.set(route, (figures = new RouteFigures()));
    // All unknown methods share a label.
    increase(figures.answered, `${knownMethods.has(method) ? method : 'other'} ${status}`);
    figures.durations.observe(durationMs / 1000);
  }

  security(event: SecurityEvent): void {
    increase(this.#events, `{event="${event}"}`);
  }

  families(): Family[] {
    if (this.#loopTimer === undefined) this.#measureLoop();
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const startedSeconds = systemClock.now() / 1000 - process.uptime();
    const requests: Sample[] = [];
    const durations: Sample[] = [];
    for (const [route, figures] of this.#routes) {
      for (const [answered, count] of figures.answered) {
        const [method, status] = answered.split(' ');
        requests.push([`{method="${method}",route="${route}",status="${status}"}`, count]);
      }
      durations.push(...figures.durations.samples(`route="${route}"`));
    }
    const duration = 'Time from the head of a request to the end of its response';
    // prettier-ignore
    return [
      ['counter', 'cairn_http_requests_total',
        'Requests that were answered', requests],
      ['histogram', 'cairn_http_request_duration_seconds', duration, durations],
      ['counter', 'cairn_events_total', 'Security events', this.#events],
      ['histogram', 'cairn_event_loop_delay_seconds',
        'Delay of timers, which shows how long the event loop was blocked', this.#loopDelay.samples()],
      ['gauge', 'cairn_heap_used_bytes', 'Memory used by JavaScript objects', heapUsed],
      ['gauge', 'process_resident_memory_bytes', 'Resident memory of the process', rss],
      ['gauge', 'process_start_time_seconds',
        'Start of the process, in seconds since the Unix epoch', startedSeconds],
      ['counter', 'process_cpu_seconds_total',
        'Processor time used by the process', (user + system) / 1e6],
    ];
  }
}

function increase(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}
