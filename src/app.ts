import type { IncomingMessage, ServerResponse } from 'node:http';

import { collectionHandlers, type Resource } from './api/collection-handlers.ts';
import { bind, createDispatch, type Endpoint } from './api/dispatch.ts';
import { pageEndpoints } from './api/pages.ts';
import { refusal } from './api/replies.ts';
import { collectionRoutes, operationIdOf, routedUsers, serviceRoutes, type RoutedCollection } from './api/routes.ts';
import { serviceHandlers, type Services, type Unready } from './api/service-handlers.ts';
import { everybody } from './auth/access.ts';
import type { KeyRing } from './auth/keys.ts';
import { Tokens } from './auth/tokens.ts';
import { invariant } from './base/errors.ts';
import { limits } from './base/limits.ts';
import { Slices } from './base/slices.ts';
import { systemClock, systemRandom, type Clock, type Random } from './base/system.ts';
import { loadKeyRing, openData, type Data, type DataOptions } from './data.ts';
import { isLoopback, parseTrustedProxies } from './http/caller.ts';
import { Exchanger, type Answered, type ExchangerOptions } from './http/exchanger.ts';
import { inject, type PlainReply, type PlainRequest } from './http/inject.ts';
import type { Handle } from './http/message.ts';
import { createRequestIds } from './http/request-id.ts';
import { HttpServer, type TlsTexts } from './http/server.ts';
import { silentLog, type Log } from './log.ts';
import { Users } from './resources/users.ts';
import type { Store, StoredRecord, StoreStatus } from './store/store.ts';
import { contentSecurityPolicy, loadAssets } from './web/assets.ts';

/** How an application is made; `DataOptions` are what it keeps its records by. */
export interface AppOptions extends DataOptions {
  /**
   * The administrator that is made where there is no user yet, with a generated password where none is given. Absent:
   * none is made.
   */
  readonly administrator?: { readonly email: string; readonly password?: string | undefined } | undefined;
  /** The signing key, at least 32 bytes of UTF-8; absent: made at the first start and kept in the directory. */
  readonly secret?: string | undefined;
  /** `none` makes every caller an administrator, and the app listens on loopback hosts alone. */
  readonly auth?: 'required' | 'none' | undefined;
  readonly registration?: 'open' | 'closed' | undefined;
  readonly requireIfMatch?: boolean | undefined;
  readonly trustedProxies?: readonly string[] | undefined;
  readonly corsOrigins?: readonly string[] | undefined;
  readonly accessTokenLifetimeSeconds?: number | undefined;
  readonly bodyBytesMax?: number | undefined;
  readonly connectionsMax?: number | undefined;
  readonly connectionsPerAddressMax?: number | undefined;
  /** How long `close` takes new connections still, so that load balancers can notice; 0 if absent. */
  readonly shutdownGraceSeconds?: number | undefined;
  /** How long `close` then waits for requests in flight. */
  readonly shutdownTimeoutSeconds?: number | undefined;
  /** False: no page for browsers at `/`. */
  readonly page?: boolean | undefined;
}

/** A running application, with or without a port of its own. */
export interface App {
  /** The password that was generated for the first administrator, shown once; `undefined` where none was. */
  readonly generatedPassword: string | undefined;
  readonly store: Store;
  readonly users: Users;
  /** Serves on a port of its own; 0 takes any free one. @throws what binding throws */
  listen(options: {
    readonly port: number;
    readonly host: string;
    readonly tls?: TlsTexts | undefined;
  }): Promise<number>;
  /** Meets new connections with another certificate. @throws what node:tls throws; then the former one stays */
  renewTls(tls: TlsTexts): void;
  /** Why requests should go elsewhere now, such as `draining`; `undefined` when they need not. */
  unready(): Unready | undefined;
  /** What the listeners are busy with. */
  load(): { readonly inFlight: number; readonly connections: number; readonly refused: number };
  /** For an existing `node:http` server: `createServer(app.handler)`. */
  readonly handler: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Asks without a port. */
  inject(request: PlainRequest): Promise<PlainReply>;
  /** Signs and verifies with what the key file holds now. @throws KeyRingError, and nothing has changed */
  reloadKeys(): Promise<void>;
  /** Stops accepting, answers what is in flight, writes snapshots and lets the directory go. */
  close(): Promise<void>;
}

const unreadyBy: { readonly [state in StoreStatus['state']]: Unready | undefined } = {
  writable: undefined,
  full: 'storage_full',
  failed: 'store_failed',
};

/**
 * Opens the store and puts the application together.
 * @throws StoreDamageError, LockedError, KeyRingError where the directory cannot be used, RangeError for a network
 *   that is none, CairnError `validation_failed` for an administrator who breaks the rules of users
 */
export async function createApp(options: AppOptions = {}): Promise<App> {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const proxies = options.trustedProxies && parseTrustedProxies(options.trustedProxies);
  const data = openData({ ...options, clock, random, log }, () => ring);
  const { files, store, users } = data;
  const keySource = { files, secret: options.secret, clock, random };
  let ring: KeyRing;
  let generatedPassword: string | undefined;
  await store.start();
  try {
    ring = await loadKeyRing(keySource);
    generatedPassword = await ensureAdministrator(users, options, random);
  } catch (error) {
    await store.close();
    throw error;
  }
  const tokens = new Tokens({ ring, clock, random, lifetimeSeconds: options.accessTokenLifetimeSeconds ?? 900 });
  let closing = false;
  const unready = (): Unready | undefined => (closing ? 'draining' : unreadyBy[store.status().state]);
  const dispatch = dispatchOver({ ...data, tokens, unready }, options, clock, log);
  const exchange: ExchangerOptions = {
    handle: dispatch,
    refuse: refusal,
    clock,
    nextId: createRequestIds(random),
    proxies,
    unshed: new Set([serviceRoutes.live.path, serviceRoutes.ready.path]),
    onAnswered: (answered) => logAnswered(log, answered),
  };
  const exchanger = new Exchanger(exchange);
  const servers: HttpServer[] = [];
  const connectionLimits = {
    connectionsMax: options.connectionsMax ?? limits.connectionsMax,
    connectionsPerAddressMax: options.connectionsPerAddressMax ?? limits.connectionsPerAddressMax,
  };
  return {
    generatedPassword,
    store,
    users,
    async listen({ port, host, tls }) {
      invariant(options.auth !== 'none' || isLoopback(host), 'without authentication only a loopback host is served');
      const server = new HttpServer({ ...exchange, tls, limits: connectionLimits });
      const bound = await server.listen(port, host);
      servers.push(server);
      return bound;
    },
    renewTls(tls) {
      for (const server of servers) server.renewTls(tls);
    },
    unready,
    load: () => ({
      inFlight: servers.reduce((sum, server) => sum + server.inFlight, exchanger.inFlight),
      connections: servers.reduce((sum, server) => sum + server.connections, 0),
      refused: servers.reduce((sum, server) => sum + server.refused, 0),
    }),
    handler: (incoming, outgoing) => exchanger.receive(incoming, outgoing),
    inject: (request) => inject(dispatch, refusal, exchange.nextId, request),
    async reloadKeys() {
      const read = await loadKeyRing(keySource);
      const { kid } = read.keys[0];
      if (kid !== ring.keys[0].kid) log.security('keys_rotated', { kid });
      ring = read;
      tokens.setRing(ring);
    },
    async close() {
      closing = true;
      const graceMs = (options.shutdownGraceSeconds ?? 0) * 1000;
      const timeoutMs = (options.shutdownTimeoutSeconds ?? limits.drainTimeoutMs / 1000) * 1000;
      await Promise.all(servers.map((server) => server.drain(graceMs, timeoutMs)));
      await store.close();
    },
  };
}

type AppServices = Data & Omit<Services, 'pages' | 'description'>;

/** The route table with what does each of its operations, and the pipeline over them. */
function dispatchOver(services: AppServices, options: AppOptions, clock: Clock, log: Log): Handle {
  const { store, users, items, others } = services;
  const files = loadAssets(options.auth === 'none');
  const pages = options.page === false ? undefined : { files, contentSecurityPolicy };
  const collectionOptions = {
    epoch: () => store.epoch,
    requireIfMatch: options.requireIfMatch ?? false,
    slices: new Slices(clock),
  };
  const collectionEndpoints = <R extends StoredRecord>(routed: RoutedCollection, resource: Resource<R>): Endpoint[] =>
    bind(collectionRoutes(routed), collectionHandlers(routed, resource, collectionOptions), operationIdOf(routed));
  let described: Promise<string> | undefined;
  const description = (): Promise<string> => (described ??= describe(endpoints));
  const endpoints: Endpoint[] = [
    ...collectionEndpoints(routedUsers(options.registration ?? 'closed'), users),
    ...[items, ...others].flatMap((resource) => collectionEndpoints(resource.declaration, resource)),
    ...bind(serviceRoutes, serviceHandlers({ ...services, pages, description })),
  ];
  return createDispatch({
    ...services,
    required: options.auth !== 'none',
    allowedOrigins: new Set(options.corsOrigins),
    bodyBytesMax: options.bodyBytesMax ?? limits.bodyBytesMax,
    endpoints: pages === undefined ? endpoints : [...endpoints, ...pageEndpoints(pages)],
    onBug: (error, { id }) =>
      log.message('error', 'A fault of the server itself', { id, stack: error instanceof Error ? error.stack : '' }),
  });
}

/** The OpenAPI document. Few ask for it, and much goes into it: that is loaded when the first one does. */
async function describe(endpoints: readonly Endpoint[]): Promise<string> {
  const [{ openApi }, { packageVersion }] = await Promise.all([import('./api/openapi.ts'), import('./version.ts')]);
  const routes = new Map(endpoints.map(({ operationId, route }) => [operationId, route]));
  return JSON.stringify(openApi(routes, packageVersion()));
}

/** Makes the first administrator where there is no user yet, and returns the password if it had to be generated. */
async function ensureAdministrator(users: Users, options: AppOptions, random: Random): Promise<string | undefined> {
  const { administrator } = options;
  if (administrator === undefined || users.records.size > 0) return undefined;
  const generated = administrator.password === undefined ? random(18).toString('base64url') : undefined;
  const password = administrator.password ?? generated ?? '';
  await users.create(everybody, { name: 'Administrator', email: administrator.email, role: 'admin', password });
  return generated;
}

function logAnswered(log: Log, { request, status, bytes, durationMs }: Answered): void {
  if (request === undefined) return;
  const { id, method, route, userId } = request;
  log.request({ id, method, route, status, durationMs, bytes, userId });
}
