import type { IncomingMessage, ServerResponse } from 'node:http';

import { collectionHandlers, type Resource } from './api/collection-handlers.ts';
import { bind, createDispatch, type Endpoint } from './api/dispatch.ts';
import { pageEndpoints } from './api/pages.ts';
import { refusal } from './api/replies.ts';
import { collectionRoutes, operationIdOf, routedUsers, serviceRoutes, type RoutedCollection } from './api/routes.ts';
import { serviceHandlers, type Unready } from './api/service-handlers.ts';
import { createPasswords } from './auth/passwords.ts';
import { everybody } from './auth/principal.ts';
import { createThrottle } from './auth/throttle.ts';
import { createTokens } from './auth/tokens.ts';
import type { KeyRing } from './auth/keys.ts';
import { systemClock, type Clock } from './base/clock.ts';
import { invariant } from './base/invariant.ts';
import { limits } from './base/limits.ts';
import { Slices } from './base/slices.ts';
import { systemRandom, type Random } from './base/random.ts';
import { isLoopback, parseTrustedProxies } from './http/caller.ts';
import { Exchanger, type Answered, type ExchangerOptions } from './http/exchanger.ts';
import { inject, type PlainReply, type PlainRequest } from './http/inject.ts';
import { createRequestIds } from './http/request-id.ts';
import { HttpServer, type TlsTexts } from './http/server.ts';
import { loadKeyRing } from './key-file.ts';
import { silentLog, type Log } from './log.ts';
import type { Audit } from './resources/audit.ts';
import { CollectionResource, type CollectionDeclaration } from './resources/collection.ts';
import type { Hooks } from './resources/hooks.ts';
import { items } from './resources/items.ts';
import { Sessions } from './resources/sessions.ts';
import { SignIn } from './resources/sign-in.ts';
import { Users } from './resources/users.ts';
import { nodeFiles } from './store/node-files.ts';
import { openStore } from './store/open-store.ts';
import type { Store, StoredRecord, StoreStatus } from './store/store.ts';
import { contentSecurityPolicy, loadAssets } from './web/assets.ts';

export interface AppOptions {
  /** Where the data files are. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** Collections of your own beside `items` (`defineCollection`). */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  readonly hooks?: Hooks | undefined;
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
  readonly sessionIdleSeconds?: number | undefined;
  readonly sessionLifetimeSeconds?: number | undefined;
  /** Sessions that a user may have at a time; one more ends the oldest. */
  readonly sessionsPerUser?: number | undefined;
  readonly passwordLengthMin?: number | undefined;
  readonly scryptCost?: number | undefined;
  readonly bodyBytesMax?: number | undefined;
  /** False: no page for browsers at `/`. */
  readonly page?: boolean | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  readonly log?: Log | undefined;
  /** Called once when nothing can be written any more: reads go on, but the process should end. */
  readonly onFailure?: (() => void) | undefined;
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
  load(): { readonly inFlight: number; readonly connections: number };
  /** For an existing `node:http` server: `createServer(app.handler)`. */
  readonly handler: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Asks without a port. */
  inject(request: PlainRequest): Promise<PlainReply>;
  /** Signs and verifies with what the key file holds now. @throws KeyRingError, and nothing has changed */
  reloadKeys(): Promise<void>;
  /** Stops accepting, answers what is in flight, writes snapshots and lets the directory go. */
  close(): Promise<void>;
}

const hour = 3600;

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
  const { clock = systemClock, random = systemRandom, log = silentLog, hooks = {} } = options;
  const proxies = options.trustedProxies && parseTrustedProxies(options.trustedProxies);
  const files = options.directory === undefined ? undefined : nodeFiles(options.directory);
  const store = openStore({
    ...(files && { files }),
    clock,
    random,
    onFailure(error) {
      log.message('error', 'The store has failed', { reason: error instanceof Error ? error.message : '' });
      options.onFailure?.();
    },
    onNotice: (notice) => log.message('warn', `The store says: ${notice}`),
  });

  const passwords = createPasswords({
    random,
    costExponent: options.scryptCost ?? 15,
    lengthMin: options.passwordLengthMin ?? 15,
  });
  const sessions = new Sessions(store, {
    clock,
    random,
    lifetimes: {
      cookie: {
        idleSeconds: options.sessionIdleSeconds ?? 12 * hour,
        maxSeconds: options.sessionLifetimeSeconds ?? 7 * 24 * hour,
      },
      refresh: { idleSeconds: limits.refreshIdleSecondsMax, maxSeconds: limits.refreshLifetimeSecondsMax },
    },
    perUserMax: options.sessionsPerUser ?? 50,
    ring: () => ring,
  });
  const throttle = createThrottle({ clock, random });
  const audit: Audit = (event, details) => log.security(event, details);
  const users = new Users({ store, hooks, sessions, passwords, throttle, audit });
  const itemResource = new CollectionResource(items, store, hooks);
  const others = (options.collections ?? []).map((declared) => new CollectionResource(declared, store, hooks));
  const signIn = new SignIn({ store, users, sessions, passwords, throttle, audit });

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
  const lifetimeSeconds = options.accessTokenLifetimeSeconds ?? 900;
  const tokens = createTokens({ ring, clock, random, lifetimeSeconds });

  const pages = options.page === false ? undefined : { files: loadAssets(), contentSecurityPolicy };
  let closing = false;
  const unready = (): Unready | undefined => (closing ? 'draining' : unreadyBy[store.status().state]);
  const collectionOptions = {
    epoch: () => store.epoch,
    requireIfMatch: options.requireIfMatch ?? false,
    slices: new Slices(clock),
  };
  const collectionEndpoints = <R extends StoredRecord>(routed: RoutedCollection, resource: Resource<R>): Endpoint[] =>
    bind(collectionRoutes(routed), collectionHandlers(routed, resource, collectionOptions), operationIdOf(routed));
  const services = {
    users,
    sessions,
    signIn,
    tokens,
    items: itemResource,
    pages,
    unready,
  } as const;
  const dispatch = createDispatch({
    tokens,
    signIn,
    required: options.auth !== 'none',
    allowedOrigins: new Set(options.corsOrigins),
    bodyBytesMax: options.bodyBytesMax ?? limits.bodyBytesMax,
    endpoints: [
      ...collectionEndpoints(routedUsers(options.registration ?? 'closed'), users),
      ...[itemResource, ...others].flatMap((resource) => collectionEndpoints(resource.declaration, resource)),
      ...bind(serviceRoutes, serviceHandlers(services)),
      ...(pages === undefined ? [] : pageEndpoints(pages)),
    ],
    onBug: (error, { id }) =>
      log.message('error', 'A fault of the server itself', { id, stack: error instanceof Error ? error.stack : '' }),
  });
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
  return {
    generatedPassword,
    store,
    users,
    async listen({ port, host, tls }) {
      invariant(options.auth !== 'none' || isLoopback(host), 'without authentication only a loopback host is served');
      const server = new HttpServer({ ...exchange, tls });
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
      await Promise.all(servers.map((server) => server.drain(0)));
      await store.close();
    },
  };
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
