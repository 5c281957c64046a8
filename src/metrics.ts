import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { IntervalHistogram } from 'node:perf_hooks';
import type { RequestEntry } from './log.ts';

/**
 * Figures about the running server in Prometheus' text format 0.0.4: per family a `# HELP` and a `# TYPE` line, then
 * its samples as `name{label="value"} number`. They are served on the operations listener only.
 */
export interface Metrics {
  request(entry: RequestEntry): void;
  /** Counts something that happened, by a name of Cairn's own. */
  event(name: string): void;
  /** The whole page; `more` are the figures that others know: the store, the listener. */
  render(more: readonly Family[]): string;
  /** Stops the timer that measures the loop's delay. */
  close(): void;
}

/** One metric with all its samples. */
export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** What follows the family's name, such as `_bucket`. */
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

const bucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const loopResolutionMs = 20;
const nanosecondsPerSecond = 1e9;

interface RouteFigures {
  /** Requests by method, then by status. */
  readonly requests: Map<string, Map<number, number>>;
  /** How many took at most so long, per bucket and not added up; the last one is for all longer ones. */
  readonly buckets: number[];
  seconds: number;
  count: number;
}

export function createMetrics(version: string): Metrics {
  const routes = new Map<string, RouteFigures>();
  const events = new Map<string, number>();
  const delay = monitorEventLoopDelay({ resolution: loopResolutionMs });
  delay.enable();
  return {
    request(entry) {
      const route = entry.route ?? '';
      let figures = routes.get(route);
      if (figures === undefined) {
        figures = { requests: new Map(), buckets: bucketsSeconds.map(() => 0).concat(0), seconds: 0, count: 0 };
        routes.set(route, figures);
      }
      countRequest(figures, entry);
    },
    event(name) {
      events.set(name, (events.get(name) ?? 0) + 1);
    },
    render(more) {
      const samples = [...events].map(([event, value]) => ({ labels: { event }, value }));
      const families = [
        gauge('cairn_info', 'The version that runs', 1, { version, node: process.version }),
        requestFamily(routes),
        durationFamily(routes),
        { name: 'cairn_events_total', kind: 'counter', help: 'Security events by name', samples } satisfies Family,
        ...processFamilies(),
        ...more,
        delayFamily(delay),
      ];
      delay.reset();
      return families.map(renderFamily).join('');
    },
    close: () => {
      delay.disable();
    },
  };
}

export function gauge(
  name: string, help: string, value: number, labels: Readonly<Record<string, string>> = {},
): Family {
  return { name, kind: 'gauge', help, samples: [{ labels, value }] };
}

export function counter(name: string, help: string, value: number): Family {
  return { name, kind: 'counter', help, samples: [{ value }] };
}

/** A caller may invent methods, so unknown ones share a label; routes are the table's own. */
function countRequest(figures: RouteFigures, { method, status, durationMs }: RequestEntry): void {
  const known = knownMethods.has(method) ? method : 'other';
  let statuses = figures.requests.get(known);
  if (statuses === undefined) {
    statuses = new Map();
    figures.requests.set(known, statuses);
  }
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const seconds = durationMs / 1000;
  let bucket = 0;
  while (bucket < bucketsSeconds.length && seconds > (bucketsSeconds[bucket] ?? 0)) bucket += 1;
  figures.buckets[bucket] = (figures.buckets[bucket] ?? 0) + 1;
  figures.seconds += seconds;
  figures.count += 1;
}

const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function requestFamily(routes: ReadonlyMap<string, RouteFigures>): Family {
  const samples: Sample[] = [];
  for (const [route, { requests }] of routes) {
    for (const [method, statuses] of requests) {
      for (const [status, value] of statuses) {
        samples.push({ labels: { method, route, status: String(status) }, value });
      }
    }
  }
  return { name: 'cairn_http_requests_total', kind: 'counter', help: 'Requests that were answered', samples };
}

function durationFamily(routes: ReadonlyMap<string, RouteFigures>): Family {
  const samples: Sample[] = [];
  for (const [route, figures] of routes) {
    let sum = 0;
    figures.buckets.forEach((count, index) => {
      sum += count;
      const le = String(bucketsSeconds[index] ?? '+Inf');
      samples.push({ suffix: '_bucket', labels: { route, le }, value: sum });
    });
    samples.push({ suffix: '_sum', labels: { route }, value: figures.seconds });
    samples.push({ suffix: '_count', labels: { route }, value: figures.count });
  }
  const help = 'Time from the head of a request to the end of its answer';
  return { name: 'cairn_http_request_duration_seconds', kind: 'histogram', help, samples };
}

function delayFamily(delay: IntervalHistogram): Family {
  const samples = [0.5, 0.99, 1].map((quantile) => ({
    labels: { quantile: String(quantile) },
    // The timer's own interval is part of what is measured.
    value: Math.max(0, delay.percentile(quantile * 100) / nanosecondsPerSecond - loopResolutionMs / 1000),
  }));
  const help = 'How late the event loop was, by quantile, since the last scrape';
  return { name: 'cairn_event_loop_delay_seconds', kind: 'gauge', help, samples };
}

function processFamilies(): Family[] {
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return [
    gauge('process_resident_memory_bytes', 'Memory that the process holds', rss),
    gauge('cairn_heap_used_bytes', 'Memory that JavaScript objects take', heapUsed),
    counter('process_cpu_seconds_total', 'Time that the processors spent here', (user + system) / 1e6),
  ];
}

function renderFamily({ name, kind, help, samples }: Family): string {
  const lines = samples.map(({ suffix = '', labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${formatNumber(value)}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join('')}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function formatNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}
