import { monitorEventLoopDelay } from 'node:perf_hooks';
import { refusal } from './api/replies.ts';
import type { App } from './app.ts';
import { CairnError } from './base/errors.ts';
import { parseTrustedProxies } from './base/network.ts';
import { packageVersion, systemClock, systemRandom } from './base/system.ts';
import { Exchanger } from './http/exchanger.ts';
import { apiFields, createRequestIds, type Handle, type Reply, type RequestEntry } from './http/message.ts';
import { startHttpServer, type HttpServer } from './http/server.ts';
import type { Log } from './log.ts';
import { auditEvents } from './resources/audit.ts';

/** The operations listener, which nobody but operators should reach, and what is counted for it. */
export function createOperations(log: Log) {
  const metrics = createMetrics(log, packageVersion());
  let server: HttpServer | undefined;
  return {
    log: metrics.log,
    /** @throws what binding throws */
    async listen(app: App, port: number, host: string): Promise<number> {
      const handle = operationsHandle(app, () => exposition([...metrics.families(), ...appFamilies(app)]));
      const [proxies, nextId] = [parseTrustedProxies([]), createRequestIds(systemRandom)];
      const exchanger = new Exchanger({ handle, refuse: refusal, proxies, clock: systemClock, nextId });
      server = await startHttpServer(exchanger, port, host);
      return server.port;
    },
    close: async () => void (await server?.drain(0)),
  };
}

/** Answers without knowing who asks. */
function operationsHandle(app: App, figures: () => string): Handle {
  const pages = new Map([
    ['/livez', () => text(200, 'live\n')],
    ['/readyz', () => text(app.unready() === undefined ? 200 : 503, `${app.unready() ?? 'ready'}\n`)],
    ['/metrics', () => text(200, figures(), 'text/plain; version=0.0.4; charset=utf-8')],
  ]);
  return ({ method, target, id }) => {
    const page = pages.get(target);
    if (page === undefined) return refusal(new CairnError('not_found', 'Cannot find it: there is no such page'), id);
    if (method === 'GET' || method === 'HEAD') return page();
    const error = new CairnError('method_not_allowed', 'Cannot answer this method here: there are GET, HEAD');
    return refusal(error, id, ['Allow', 'GET, HEAD']);
  };
}

function text(status: number, body: string, type = 'text/plain; charset=utf-8'): Reply {
  return { status, fields: ['Content-Type', type, 'Cache-Control', 'no-store', ...apiFields], body };
}

/** What follows a metric's name, such as `_bucket{le="1"}`, and its value. All labels are ours: none needs escapes. */
type Sample = readonly [rest: string, value: number];
/** One metric with all its samples, or the one that needs no labels. */
type Family = readonly [
  kind: 'gauge' | 'counter' | 'histogram', name: string, help: string, values: number | Iterable<Sample>,
];

/** Prometheus' text format 0.0.4: a `# HELP` and a `# TYPE` line, then `name{label="value"} number` for each sample. */
export function exposition(families: readonly Family[]): string {
  return families.map(([kind, name, help, values]) => {
    const lines = Array.from(typeof values === 'number' ? [['', values] as const] : values, ([rest, value]) =>
      `${name}${rest} ${String(value).replace('Infinity', 'Inf')}\n`);
    return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join('')}`;
  }).join('');
}

function appFamilies(app: App): Family[] {
  const { inFlight, connections, refused } = app.load();
  const { collections, state: current, ...store } = app.store.status();
  const records = collections.map(({ name, records }): Sample => [`{collection="${name}"}`, records]);
  const states = ['writable', 'full', 'failed'].map((name): Sample => [`{state="${name}"}`, Number(name === current)]);
  return [
    ['gauge', 'cairn_http_requests_in_flight', 'Requests that wait for something', inFlight],
    ['gauge', 'cairn_http_connections', 'Open connections', connections],
    ['counter', 'cairn_http_connections_refused_total', 'Connections that found a cap reached', refused],
    ['gauge', 'cairn_store_records', 'Records by collection', records],
    ['gauge', 'cairn_store_state', 'Whether the store takes writes', states],
    ['counter', 'cairn_store_groups_total', 'Group commits, each of which is one sync', store.groups],
    ['counter', 'cairn_store_commits_total', 'Transactions that became durable', store.commits],
    ['counter', 'cairn_store_append_seconds_total', 'Time that groups took to be durable', store.appendMs / 1000],
    ['gauge', 'cairn_store_journal_bytes', 'Size of the journal', store.journalBytes],
    ['counter', 'cairn_store_checkpoints_total', 'Checkpoints that were finished', store.checkpoints],
    ['counter', 'cairn_store_checkpoint_failures_total', 'Checkpoints that failed', store.checkpointFailures],
    ['gauge', 'cairn_store_checkpoint_seconds', 'How long the last checkpoint took', store.checkpointMs / 1000],
  ];
}

const bucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, Infinity];
const loopResolutionMs = 20;
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Counts what goes through `log`. */
export function createMetrics(log: Log, version: string) {
  const requests = new Map<string, number>();
  /** By route: how long its requests took in all, and how many took at most so long, per bucket and not added up. */
  const durations = new Map<string, { seconds: number; readonly buckets: number[] }>();
  // Each is there before it happens: an increase from nothing would be none.
  const events = new Map([...auditEvents, 'keys_rotated'].map((event) => [`{event="${event}"}`, 0]));
  const startedSeconds = systemClock.now() / 1000 - process.uptime();
  const delay = monitorEventLoopDelay({ resolution: loopResolutionMs });
  delay.enable();

  function count({ method: called, route = '', status, durationMs }: RequestEntry): void {
    // A caller may invent methods, so unknown ones share a label; routes are the table's own.
    const method = knownMethods.has(called) ? called : 'other';
    increase(requests, `{method="${method}",route="${route}",status="${status}"}`);
    const times = durations.get(route) ?? { seconds: 0, buckets: bucketsSeconds.map(() => 0) };
    durations.set(route, times);
    const seconds = durationMs / 1000;
    const bucket = bucketsSeconds.findIndex((bound) => seconds <= bound);
    times.buckets[bucket] = (times.buckets[bucket] ?? 0) + 1;
    times.seconds += seconds;
  }

  function durationSamples(): Sample[] {
    return [...durations].flatMap(([route, { seconds, buckets }]) => {
      let sum = 0;
      const samples = buckets.map((taken, index): Sample => {
        const bound = String(bucketsSeconds[index]).replace('Infinity', '+Inf');
        return [`_bucket{route="${route}",le="${bound}"}`, (sum += taken)];
      });
      return [...samples, [`_sum{route="${route}"}`, seconds], [`_count{route="${route}"}`, sum]] satisfies Sample[];
    });
  }

  /** The timer's own interval is part of what is measured. */
  function delaySample(quantile: number): Sample {
    const lateSeconds = delay.percentile(quantile * 100) / 1e9 - loopResolutionMs / 1000;
    return [`{quantile="${quantile}"}`, Math.max(0, lateSeconds)];
  }

  return {
    /** The same log, with what goes through it counted. */
    log: {
      ...log,
      request(entry) {
        count(entry);
        log.request(entry);
      },
      security(event, details) {
        increase(events, `{event="${event}"}`);
        log.security(event, details);
      },
      get dropped() {
        return log.dropped;
      },
    } satisfies Log,
    /** What is counted here, and what Node.js knows of the process. */
    families(): Family[] {
      const { rss, heapUsed } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      const info: Sample = [`{version="${version}",node="${process.version}"}`, 1];
      const late = [0.5, 0.99, 1].map(delaySample);
      delay.reset();
      const took = 'Time from the head of a request to the end of its answer';
      return [
        ['gauge', 'cairn_info', 'The version that runs', [info]],
        ['counter', 'cairn_http_requests_total', 'Requests that were answered', requests],
        ['histogram', 'cairn_http_request_duration_seconds', took, durationSamples()],
        ['counter', 'cairn_events_total', 'Security events by name', events],
        ['counter', 'cairn_log_lines_dropped_total', 'Log lines that were read too slowly', log.dropped],
        ['gauge', 'process_resident_memory_bytes', 'Memory that the process holds', rss],
        ['gauge', 'cairn_heap_used_bytes', 'Memory that JavaScript objects take', heapUsed],
        ['gauge', 'process_start_time_seconds', 'When the process began, since the Unix epoch', startedSeconds],
        ['counter', 'process_cpu_seconds_total', 'Time that the processors spent here', (user + system) / 1e6],
        ['gauge', 'cairn_event_loop_delay_seconds', 'How late the loop was by quantile, since the last scrape', late],
      ];
    },
  };
}

function increase(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}
