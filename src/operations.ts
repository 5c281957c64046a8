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
import { counter, gauge, metricsContentType, type Family, type Metrics } from './metrics.ts';
import type { StoreStatus } from './store/store.ts';

export interface OperationsOptions {
  readonly app: Pick<App, 'load' | 'unready' | 'store'>;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Answers on the operations listener, which nobody but operators should reach: it knows no callers. */
export function operationsHandle({ app, metrics, log }: OperationsOptions): Handle {
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

/** A listener that answers so. */
export function operationsServer(options: OperationsOptions): HttpServer {
  const nextId = createRequestIds(systemRandom);
  return new HttpServer({ handle: operationsHandle(options), refuse: refusal, clock: systemClock, nextId });
}

/** The same log, with what goes through it counted. */
export function meteredLog(log: Log, metrics: Metrics): Log {
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
