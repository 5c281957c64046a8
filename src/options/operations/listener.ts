import { X509Certificate } from 'node:crypto';
import { readdir, statfs } from 'node:fs';
import { promisify } from 'node:util';
import { problemReply } from '../../api/replies.ts';
import { CairnError } from '../../base/errors.ts';
import { isLoopback } from '../../base/network.ts';
import { systemClock, systemRandom } from '../../base/system.ts';
import { version } from '../../base/version.ts';
import { hostOf } from '../../http/head.ts';
import { apiFields, type Handle, type Reply } from '../../http/message.ts';
import { createRequestIds } from '../../http/request-ids.ts';
import { HttpServer } from '../../http/server.ts';
import type { Operated } from '../../log/operated.ts';
import { exposition, Metrics, type Family, type Sample } from './metrics.ts';

// Where they are denied, those of `fs/promises` end a process of Node.js 22.18.
const listDirectory = promisify(readdir);
const diskSpace = promisify(statfs);

/**
 * Metrics, and the operations listener that shows them: `/livez`, `/readyz` and `/metrics`. It
 * authenticates nobody, so only operators should reach it. On loopback it answers only for a
 * `Host` that is a loopback name, because other sites can point their own names to this machine.
 */
export class Operations {
  /** Counts. */
  readonly observer = new Metrics();
  #server: HttpServer | undefined;

  /** Listens, and returns the port. @throws the errors of binding */
  async listen(operated: Operated, port: number, host: string): Promise<number> {
    const server = new HttpServer({
      handle: operationsHandle(operated, this.observer, host),
      problemReply,
      clock: systemClock,
      nextId: createRequestIds(systemRandom),
    });
    const bound = await server.listen({ port, host });
    this.#server = server;
    return bound;
  }

  /** Does what `HttpServer.drain` does. */
  async drain(timeoutMs?: number): Promise<void> {
    await this.#server?.drain(timeoutMs);
  }
}

function operationsHandle(operated: Operated, metrics: Metrics, listening: string): Handle {
  const { app } = operated;
  const isLocal = isLoopback(listening);
  const pages = new Map<string, () => Reply | Promise<Reply>>([
    ['/livez', () => textReply(200, 'live\n')],
    [
      '/readyz',
      () => {
        const reason = app.unready();
        return textReply(reason === undefined ? 200 : 503, `${reason ?? 'ready'}\n`);
      },
    ],
    [
      '/metrics',
      async () => {
        const page = exposition(await families(operated, metrics));
        return textReply(200, page, 'text/plain; version=0.0.4');
      },
    ],
  ]);
  return ({ method, target, fields }) => {
    const host = hostOf(fields.get('host') ?? 'localhost');
    if (isLocal && !isLoopback(host)) throw foreignHost;
    const page = pages.get(target);
    if (page === undefined) throw unknownPath;
    if (method === 'GET' || method === 'HEAD') return page();
    throw wrongMethod;
  };
}

const unknownPath = new CairnError(
  'not_found',
  'Cannot find this path: the paths are /livez, /readyz and /metrics',
);
const wrongMethod = new CairnError(
  'method_not_allowed',
  'Method not allowed: this path supports GET and HEAD',
  { fields: ['Allow', 'GET, HEAD'] },
);
const foreignHost = new CairnError(
  'misdirected_request',
  'Cannot answer for this Host: use a loopback name',
);

function textReply(status: number, body: string, type = 'text/plain'): Reply {
  const fields = ['Content-Type', `${type}; charset=utf-8`, 'Cache-Control', 'no-store'];
  return { status, fields: [...fields, ...apiFields], body };
}

async function families({ app, log, directory }: Operated, metrics: Metrics): Promise<Family[]> {
  const info: Sample = [`{version="${version}",node="${process.version}"}`, 1];
  // A locked-down process may not list this, and other systems do not have it.
  const descriptors = await listDirectory('/proc/self/fd').catch(() => undefined);
  const disk = await diskSpace(directory).catch(() => undefined);
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
      'What was refused or broken off for lack of room, by cause', causes],
    ['gauge', 'cairn_feed_listeners', 'Callers that follow the change feed', listeners],
    ['counter', 'cairn_feed_listeners_dropped_total',
      'Listeners of the change feed dropped because they read too slowly', dropped],
    ['gauge', 'cairn_store_records', 'Number of records, by collection', records],
    ['gauge', 'cairn_store_state',
      'Whether the store is in this state (1) or not (0)', states],
    ['gauge', 'cairn_store_memory_bytes',
      'Memory that records take, as it is counted', store.memoryBytes],
    ['gauge', 'cairn_store_memory_max_bytes',
      'The most memory that records may take', store.memoryMaxBytes],
    ['gauge', 'cairn_store_slowest_wait_seconds',
      'Longest time within the last two minutes that a caller waited for its turn to write',
      store.slowestWaitMs / 1000],
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
    ['gauge', 'cairn_store_checkpoint_seconds',
      'Duration of the last checkpoint', store.checkpointMs / 1000],
    ...figures,
  ];
}
