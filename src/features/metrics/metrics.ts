import { X509Certificate } from 'node:crypto';
import { readdir, statfs } from 'node:fs';
import { promisify } from 'node:util';
import type { Route } from '../../api/call.ts';
import { metricsPath } from '../../api/routes.ts';
import { version } from '../../base/version.ts';
import { apiFields } from '../../http/message.ts';
import type { Operated } from '../../log/operated.ts';
import { exposition, Metrics, type Family, type Sample } from './exposition.ts';

/** Shows metrics to Prometheus. */

// The functions of `fs/promises` crash Node.js 22.18 if the permission model denies them.
const listDirectory = promisify(readdir);
const diskSpace = promisify(statfs);

export function createFeature({ operated }: { readonly operated: Operated }) {
  const metrics = new Metrics();
  return {
    request: metrics.request.bind(metrics),
    security: metrics.security.bind(metrics),
    close: () => metrics.close(),
    routes(): Route[] {
      const row: Route = {
        operationId: 'metrics',
        summary: 'Read the metrics, for Prometheus',
        tag: 'server',
        success: { content: 'Text', mediaType: 'text/plain' },
        method: 'GET',
        path: metricsPath,
        access: 'admin',
        isAlwaysServed: true,
        async handle() {
          const body = exposition(await families(operated, metrics));
          const type = 'text/plain; version=0.0.4; charset=utf-8';
          const fields = ['Content-Type', type, 'Cache-Control', 'no-store', ...apiFields];
          return { status: 200, fields, body };
        },
      };
      return [row];
    },
  };
}

async function families({ app, log, directory }: Operated, metrics: Metrics): Promise<Family[]> {
  const info: Sample = [`{version="${version}",node="${process.version}"}`, 1];
  // Absent on other systems, and unreadable for a locked-down process.
  const descriptors = await listDirectory('/proc/self/fd').catch(() => undefined);
  const disk =
    directory === undefined ? undefined : await diskSpace(directory).catch(() => undefined);
  const { certificate } = app;
  const validTo = certificate && new X509Certificate(certificate).validTo;
  const end = 'End of the TLS certificate, in seconds since the Unix epoch';
  // prettier-ignore
  return [
    ['gauge', 'cairn_info', 'Version of Cairn and of Node.js', [info]],
    ...metrics.families(),
    ['gauge', 'process_open_fds', 'Open file descriptors', descriptors?.length],
    ['counter', 'cairn_log_lines_dropped_total',
      'Log lines dropped: the log was read too slowly, or could not be written', log.dropped],
    ['gauge', 'cairn_tls_certificate_end_timestamp_seconds', end,
      validTo === undefined ? undefined : Date.parse(validTo) / 1000],
    ...appFamilies(app),
    ['gauge', 'cairn_data_free_bytes',
      'Free space on the disk of the data directory', disk && disk.bavail * disk.bsize],
  ];
}

function appFamilies(app: Operated['app']): Family[] {
  const { inFlight, connections, refused, refusals, listeners, dropped } = app.load();
  const causes = Object.entries(refusals).map(([cause, count]): Sample => [
    `{cause="${cause.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)}"}`,
    count,
  ]);
  const { collections, state: current, figures = [], ...store } = app.store.status();
  const records = collections.map(({ name, records }): Sample => [
    `{collection="${name}"}`,
    records,
  ]);
  const states = ['writable', 'full', 'unavailable', 'failed'].map((name): Sample => [
    `{state="${name}"}`,
    Number(name === current),
  ]);
  // prettier-ignore
  return [
    ['gauge', 'cairn_http_requests_in_flight',
      'Requests that wait for a disk, a hash or the like', inFlight],
    ['gauge', 'cairn_http_connections', 'Open connections', connections],
    ['counter', 'cairn_http_connections_refused_total',
      'Connections refused because a limit was reached', refused],
    ['counter', 'cairn_refusals_total',
      'Requests refused or cut off for lack of room, by cause', causes],
    ['gauge', 'cairn_feed_listeners', 'Callers that follow the change feed', listeners],
    ['counter', 'cairn_feed_listeners_dropped_total',
      'Listeners of the change feed dropped because they read too slowly', dropped],
    ['gauge', 'cairn_store_records', 'Number of records, by collection', records],
    ['gauge', 'cairn_store_state',
      '1 if the store is in this state, 0 if not', states],
    ['gauge', 'cairn_store_memory_bytes',
      'Memory that records take, as it is counted', store.memoryBytes],
    ['gauge', 'cairn_store_memory_max_bytes',
      'The most memory that records may take', store.memoryMaxBytes],
    ['counter', 'cairn_store_groups_total',
      'Group commits; each of them is one sync', store.groups],
    ['counter', 'cairn_store_commits_total',
      'Transactions that became durable', store.commits],
    ['counter', 'cairn_store_append_seconds_total',
      'Total time in which groups became durable', store.appendMs / 1000],
    ['gauge', 'cairn_store_journal_bytes', 'Size of the journal', store.journalBytes],
    ['counter', 'cairn_store_checkpoints_total',
      'Checkpoints that succeeded', store.checkpoints],
    ['counter', 'cairn_store_checkpoint_failures_total',
      'Checkpoints that failed', store.checkpointFailures],
    ...figures,
  ];
}
