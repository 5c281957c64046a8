import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { collectionHandlers } from './api/collection-handlers.ts';
import { bind, createDispatch, type Endpoint } from './api/dispatch.ts';
import { refusal } from './api/replies.ts';
import { collectionRoutes, routedServices, routedUsers, routeTable, serviceRoutes } from './api/routes.ts';
import type { RoutedCollection } from './api/routes.ts';
import { serviceHandlers, type Services, type Unready } from './api/service-handlers.ts';
import { everybody } from './auth/access.ts';
import { Tokens } from './auth/tokens.ts';
import { CairnError, invariant } from './base/errors.ts';
import { isLoopback, parseTrustedProxies } from './base/network.ts';
import { createSlices } from './base/slices.ts';
import { packageVersion, systemClock, systemRandom, type Clock, type Random } from './base/system.ts';
import { faultLog, logFault, openData, type Data, type DataOptions } from './data.ts';
import { Exchanger, type ExchangerOptions } from './http/exchanger.ts';
import { inject, type PlainReply, type PlainRequest } from './http/inject.ts';
import { createRequestIds, type Handle, type Request } from './http/message.ts';
import { startHttpServer, type HttpServer, type TlsTexts } from './http/server.ts';
import type { CollectionResource } from './resources/collection.ts';
import type { Users } from './resources/users.ts';
import type { Store } from './store/store.ts';
import { pageEndpoints } from './web/assets.ts';

/** Who is made where there is no user yet. */
export interface Administrator {
  readonly email: string;
  /** Absent: one is generated. */
  readonly password?: string | undefined;
  /** Takes the one that is generated before there is anybody whose password could be lost. */
  readonly onPassword?: ((password: string) => void | Promise<void>) | undefined;
}

/** How an application is made; `DataOptions` are what it keeps its records by. */
export interface AppOptions extends DataOptions {
  /** Absent: none is made. */
  readonly administrator?: Administrator | undefined;
  /** False: no page for browsers at `/`. */
  readonly page?: boolean | undefined;
}

/** A running application, with or without a port of its own. */
export type App = Awaited<ReturnType<typeof createApp>>;

const stopped = new CairnError('draining', 'Cannot answer: the server has stopped');

/**
 * Opens the store and puts the application together.
 * @throws StoreDamageError, LockedError, KeyRingError where the directory cannot be used, RangeError for an option that
 *   is not allowed, InvariantError for a collection that contradicts itself or another one, CairnError
 *   `validation_failed` for an administrator who breaks the rules of users
 */
export async function createApp(options: AppOptions = {}) {
  const { clock = systemClock, random = systemRandom, log = faultLog } = options;
  let closed: Promise<void> | undefined;
  const data = openData({ ...options, clock, random, log });
  const { settings, keys, users } = data;
  const store: Store = data.store;
  const { administrator } = options;
  const onFault: OnFault = (error, { id }) => logFault(log, 'A fault of the server itself', error, id);
  const unready = (): Unready | undefined => (closed === undefined ? unreadyIn[store.status().state] : 'draining');
  // Whoever breaks a rule leaves no store behind.
  if (administrator !== undefined && !(await data.store.exists())) checkAdministrator(users, administrator);
  await store.start();
  try {
    const { accessTokenLifetimeSeconds: lifetimeSeconds } = settings;
    const tokens = new Tokens({ ring: await keys.load(), clock, random, lifetimeSeconds });
    const generatedPassword = await ensureAdministrator(users, administrator, random, settings);
    const exchange: ExchangerOptions = {
      clock,
      nextId: createRequestIds(random),
      handle: dispatchOver({ ...data, tokens, unready }, options, clock, onFault),
      refuse: refusal,
      proxies: parseTrustedProxies(settings.trustedProxies),
      unshed: new Set([serviceRoutes.live.path, serviceRoutes.ready.path]),
      limits: settings,
      onFailure: onFault,
      onAnswered: (entry) => log.request(entry),
    };
    const { drain, ...entrances } = createEntrances(exchange, settings);
    const close = (): Promise<void> => (closed ??= drain().then(() => store.close()));
    return {
      /** The password that was generated for the first administrator, shown once; `undefined` where none was. */
      generatedPassword,
      store,
      users,
      /** Why requests should go elsewhere now, such as `draining`; `undefined` when they need not. */
      unready,
      ...entrances,
      /** Signs and verifies with what the key file holds now. @throws KeyRingError, and nothing has changed */
      async reloadKeys(): Promise<void> {
        const former = keys.ring.keys[0].kid;
        const ring = await keys.load();
        const { kid } = ring.keys[0];
        tokens.setRing(ring);
        if (kid !== former) log.security('keys_rotated', { kid });
      },
      /**
       * Stops accepting, answers what is in flight through any entrance, writes snapshots and lets the directory go.
       * After that everything but `/livez` is 503.
       */
      close,
      /** The same, for `await using`. */
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

const unreadyIn = { writable: undefined, full: 'storage_full', failed: 'store_failed' } as const;

/** The ways in: ports of its own, an embedder's server, and no port at all. */
function createEntrances(given: ExchangerOptions, settings: Data['settings']) {
  let stops = false;
  const handle: Handle = (request) =>
    stops && request.target !== serviceRoutes.live.path ? refusal(stopped, request.id) : given.handle(request);
  const exchanger = new Exchanger({ ...given, handle });
  const servers: HttpServer[] = [];
  /** In flight without a port: these keep no caller out. */
  let injected = 0;
  return {
    /** Serves on a port of its own; 0 takes any free one. @throws what binding throws */
    async listen({ port, host, tls }: { port: number; host: string; tls?: TlsTexts | undefined }): Promise<number> {
      invariant(settings.auth !== 'none' || isLoopback(host), 'without authentication only a loopback host is served');
      const server = await startHttpServer(exchanger, port, host, tls);
      servers.push(server);
      if (exchanger.draining) await server.drain(0, 0);
      invariant(!exchanger.draining, 'an app that is closed does not listen');
      return server.port;
    },
    /** Meets new TLS connections with another certificate. @throws what node:tls throws; then the former one stays */
    renewTls(tls: TlsTexts): void {
      for (const server of servers) server.renewTls(tls);
    },
    /** What the entrances are busy with. */
    load() {
      const { inFlight, connections, refused } = exchanger;
      return { inFlight: inFlight + injected, connections, refused };
    },
    /** For an existing `node:http` server: `createServer(app.handler)`. */
    handler: (incoming: IncomingMessage, outgoing: ServerResponse): void => exchanger.receive(incoming, outgoing),
    /** Asks without a port. */
    inject(request: PlainRequest): Promise<PlainReply> {
      injected += 1;
      return inject(handle, refusal, given.nextId, request).finally(() => (injected -= 1));
    },
    async drain(): Promise<void> {
      exchanger.draining = true;
      const graceMs = settings.shutdownGraceSeconds * 1000;
      const timeoutMs = settings.shutdownTimeoutSeconds * 1000;
      const deadline = systemClock.elapsed() + graceMs + timeoutMs;
      await Promise.all(servers.map((server) => server.drain(graceMs, timeoutMs)));
      stops = true;
      while (injected + exchanger.inFlight + exchanger.sending > 0 && systemClock.elapsed() < deadline) await sleep(10);
    },
  };
}

type OnFault = (error: unknown, request: Request) => void;
type AppServices = Data & Omit<Services, 'page' | 'description'>;

/** The route table with what does each of its operations, and the pipeline over them. */
function dispatchOver(services: AppServices, options: AppOptions, clock: Clock, onBug: OnFault): Handle {
  const { settings, store, users, items, others } = services;
  const pages = options.page === false ? [] : pageEndpoints(settings.auth === 'none');
  const page = pages.find(({ route }) => route.path === '/')?.handle;
  const collectionOptions = { epoch: () => store.epoch, breathe: createSlices(clock) };
  const collectionEndpoints = (routed: RoutedCollection, resource: Users | CollectionResource): Endpoint[] =>
    bind(collectionRoutes(routed, settings), collectionHandlers(routed, resource, collectionOptions));
  const resources = [items, ...others];
  let described: ReturnType<typeof describe> | undefined;
  const { page: hasPage } = options;
  const declarations = resources.map(({ declaration }) => declaration);
  const description = () => (described ??= describe(routeTable(declarations, { ...settings, page: hasPage })));
  return createDispatch({
    ...services,
    required: settings.auth === 'required',
    allowedOrigins: new Set(settings.corsOrigins),
    bodyBytesMax: settings.bodyBytesMax,
    endpoints: [
      ...collectionEndpoints(routedUsers(settings), users),
      ...resources.flatMap((resource) => collectionEndpoints(resource.declaration, resource)),
      ...bind(routedServices(options), serviceHandlers({ ...services, page, description })),
      ...pages,
    ],
    onBug,
  });
}

/** The OpenAPI document. Few ask for it, and much goes into it: that is loaded when the first one does. */
async function describe(routes: ReturnType<typeof routeTable>): Promise<{ text: string; tag: string }> {
  const { openApi } = await import('./api/openapi.ts');
  const text = JSON.stringify(openApi(routes, packageVersion()));
  return { text, tag: `"${createHash('sha256').update(text).digest('base64url')}"` };
}

/** @throws CairnError `validation_failed` */
function checkAdministrator(users: Users, { email, password }: Administrator): void {
  try {
    users.acceptNew(everybody, { ...administratorFields, email, ...(password !== undefined && { password }) });
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    const broken = error.issues?.map(({ pointer, detail }) => `${pointer.slice(1)} ${detail}`).join(', ');
    throw new CairnError(error.code, `Cannot make the administrator: ${broken}`);
  }
}

const administratorFields = { name: 'Administrator', role: 'admin' };

/** Makes the first administrator where there is no user yet, and returns the password if it had to be generated. */
async function ensureAdministrator(
  users: Users, administrator: Administrator | undefined, random: Random, { passwordLengthMin }: Data['settings'],
): Promise<string | undefined> {
  if (administrator === undefined || users.records.size > 0) return undefined;
  checkAdministrator(users, administrator);
  const { email, password, onPassword } = administrator;
  const bytes = Math.max(18, Math.ceil((passwordLengthMin * 3) / 4));
  const generated = password === undefined ? random(bytes).toString('base64url') : undefined;
  if (generated !== undefined) await onPassword?.(generated);
  await users.create(everybody, { ...administratorFields, email, password: password ?? generated ?? '' });
  return generated;
}
