import { refusal } from './api/replies.ts';
import type { App } from './app.ts';
import { systemClock } from './base/clock.ts';
import { CairnError } from './base/errors.ts';
import { systemRandom } from './base/random.ts';
import type { Handle, Reply } from './http/message.ts';
import { apiFields } from './http/replies.ts';
import { createRequestIds } from './http/request-id.ts';
import { HttpServer } from './http/server.ts';
import type { LogDetails, Log } from './log.ts';
import { counter, createMetrics, gauge, metricsContentType, type Family, type Metrics } from './metrics.ts';
import type { StoreStatus } from './store/store.ts';

/** The operations listener, which nobody but operators should reach, and what is counted for it. */
export interface Operations {
  /** The log, with what goes through it counted. */
  readonly log: Log;
  /** @throws what binding throws */
  listen(app: ObservedApp, port: number, host: string): Promise<number>;
  close(): Promise<void>;
}

type ObservedApp = Pick<App, 'load' | 'unready' | 'store'>;

/** `version`: Cairn's own. */
export function createOperations(log: Log, version: string): Operations {
  const metrics = createMetrics(version);
  let server: HttpServer | undefined;
  return {
    log: meteredLog(log, metrics),
    listen(app, port, host) {
      const handle = operationsHandle(app, metrics, log);
      const nextId = createRequestIds(systemRandom);
      server = new HttpServer({ handle, refuse: refusal, clock: systemClock, nextId });
      return server.listen(port, host);
    },
    async close() {
      metrics.close();
      await server?.drain(0);
    },
  };
}

/** Answers without knowing who asks. */
function operationsHandle(app: ObservedApp, metrics: Metrics, log: Log): Handle {
  const pages: Readonly<Record<string, () => Reply>> = {
    '/livez': () => text(200, 'live\n'),
    '/readyz': () => {
      const reason = app.unready();
      return reason === undefined ? text(200, 'ready\n') : text(503, `${reason}\n`);
    },
    '/metrics': () => {
      const dropped = counter('cairn_log_lines_dropped_total', 'Log lines that were read too slowly', log.dropped);
      const families = [...loadFamilies(app.load()), ...storeFamilies(app.store.status()), dropped];
      return text(200, metrics.render(families), metricsContentType);
    },
  };
  return ({ method, target, id }) => {
    const page = Object.hasOwn(pages, target) ? pages[target] : undefined;
    if (page === undefined) return refusal(new CairnError('not_found', 'Cannot find it: there is no such page'), id);
    if (method === 'GET' || method === 'HEAD') return page();
    const error = new CairnError('method_not_allowed', 'Cannot answer this method here: there are GET, HEAD');
    return refusal(error, id, ['Allow', 'GET, HEAD']);
  };
}

function meteredLog(log: Log, metrics: Metrics): Log {
  return {
    request(entry) {
      metrics.request(entry);
      log.request(entry);
    },
    security(event, details: LogDetails) {
      metrics.event(event);
      log.security(event, details);
    },
    message: log.message,
    get dropped() {
      return log.dropped;
    },
    close: log.close,
  };
}

function text(status: number, body: string, type = 'text/plain; charset=utf-8'): Reply {
  return { status, fields: ['Content-Type', type, 'Cache-Control', 'no-store', ...apiFields], body };
}

function loadFamilies({ inFlight, connections }: ReturnType<App['load']>): Family[] {
  return [
    gauge('cairn_http_requests_in_flight', 'Requests that wait for something', inFlight),
    gauge('cairn_http_connections', 'Open connections', connections),
  ];
}

function storeFamilies(status: StoreStatus): Family[] {
  const records = status.collections.map(({ name, records: value }) => ({ labels: { collection: name }, value }));
  const states = ['writable', 'full', 'failed'].map((state) => ({
    labels: { state },
    value: status.state === state ? 1 : 0,
  }));
  return [
    { name: 'cairn_store_records', kind: 'gauge', help: 'Records by collection', samples: records },
    { name: 'cairn_store_state', kind: 'gauge', help: 'Whether the store takes writes', samples: states },
    counter('cairn_store_groups_total', 'Group commits, each of which is one sync', status.groups),
    counter('cairn_store_commits_total', 'Transactions that became durable', status.commits),
    counter('cairn_store_append_seconds_total', 'Time in which groups were written and synced', status.appendMs / 1000),
    gauge('cairn_store_journal_bytes', 'Size of the journal', status.journalBytes),
    counter('cairn_store_checkpoints_total', 'Checkpoints that were finished', status.checkpoints),
    counter('cairn_store_checkpoint_failures_total', 'Checkpoints that failed', status.checkpointFailures),
    gauge('cairn_store_checkpoint_seconds', 'How long the last checkpoint took', status.checkpointMs / 1000),
  ];
}
