import type { Audit } from '../accounts/events.ts';
import type { Authenticators } from '../api/authenticate.ts';
import type { Route } from '../api/call.ts';
import { createPipeline } from '../api/pipeline.ts';
import { problemReply } from '../api/replies.ts';
import { livePath, type Unready } from '../api/health.ts';
import { yieldedPaths } from '../api/routes.ts';
import { isByRecord, listWords } from '../auth/access.ts';
import { Tokens } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { isLoopback } from '../base/network.ts';
import type { Handle, Request } from '../http/message.ts';
import { createRequestIds } from '../http/request-ids.ts';
import { HttpServer, type ListenOptions, type TlsTexts } from '../http/server.ts';
import { ListPool } from '../lists/list-pool.ts';
import { logError, type Observer } from '../log/log.ts';
import type { Load } from '../log/operated.ts';
import type { Store } from '../store/store.ts';
import { OptionError } from '../config/options.ts';
import { checkAdministrator, makeAdministrator } from './administrator.ts';
import { openData, type Data } from './data.ts';
import { createRoutes, createOperations, type AllOperations } from './route-table.ts';
import type { CompleteOptions } from './options.ts';
import { loadParts, loadReferences } from './parts.ts';
import type { Feature, Parts } from './part-types.ts';

/**
 * Opens the store and creates the application. Requests wait for `begin`, so that ports are bound
 * before anything irreversible is done.
 * @throws StoreDamageError, LockedError or KeyRingError if the directory cannot be used;
 *   OptionError for a part that was removed; RouteConflict; CairnError `validation_failed` for an
 *   administrator that breaks a rule
 */
export async function openApp(chosen: CompleteOptions): Promise<Application> {
  const complete = { ...chosen, collections: await withSingulars(chosen) };
  const { administrator, log, settings, users } = complete;
  if (users === false && (settings.auth !== 'none' || administrator !== undefined)) {
    const needs = 'it needs --auth none and no administrator';
    throw new OptionError(`Cannot use "users": false: ${needs}`, 'users');
  }
  for (const { name } of settings.dialect === undefined ? complete.collections : [])
    if (name !== 'metrics' && yieldedPaths.includes(`/${name}`)) {
      const message = `Cannot serve the collection ${name}: the server has its path; rename it`;
      throw new OptionError(`${message}, or use --dialect json-server`, 'collections');
    }
  const observers: Observer[] = [log];
  const audit: Audit = (event, details) => {
    for (const observer of observers) observer.security?.(event, details);
  };
  const references = await loadReferences(complete.collections);
  const parts = await loadParts(complete);
  const { place, dialect } = parts;
  const data = openData({ ...complete, references }, audit, place, dialect?.rules);
  // An invalid administrator must not leave a store behind.
  if (administrator !== undefined && !(await data.store.exists())) {
    checkAdministrator(data.users, administrator);
  }
  await data.store.start();
  try {
    await data.keys.load();
    return new Application(data, complete, observers, parts);
  } catch (error) {
    await data.store.close();
    throw error;
  }
}

/** Gives each collection a singular, which OpenAPI needs for names. */
async function withSingulars(options: CompleteOptions): Promise<CompleteOptions['collections']> {
  const { collections } = options;
  if (collections.every(({ singular }) => singular !== undefined)) return collections;
  const { addSingulars } = await import('../collections/nouns.ts');
  return addSingulars(options);
}

export class Application {
  readonly data: Data;
  readonly store: Store;
  readonly routes: readonly Route[];
  /** Observers of requests and security events. The first is the log. */
  readonly observers: Observer[];
  readonly server: HttpServer;
  /** The certificate of new TLS connections, in PEM; `undefined` without TLS. */
  certificate: string | undefined;
  readonly #options: CompleteOptions;
  readonly #features: readonly Feature[];
  /** True if several processes share the data. */
  readonly #isShared: boolean;
  readonly #pipeline: Handle;
  readonly listPool: ListPool;
  readonly operations: AllOperations;
  readonly authenticators: Authenticators;
  readonly #full = { memoryFull: 0, diskFull: 0 };
  #started: () => void = () => undefined;
  readonly #starting = new Promise<void>((resolve) => (this.#started = resolve));
  #closed: Promise<void> | undefined;

  constructor(
    data: Data,
    options: CompleteOptions,
    observers: Observer[],
    { dialect, singles, place, cors, proxies, origins, local, ...parts }: Parts,
  ) {
    const { store } = data;
    const { settings, clock, random, log } = options;
    const onError = (error: unknown, { id }: Request): void =>
      logError(log, 'A request met an error', error, id);
    this.data = data;
    this.store = store;
    this.operations = createOperations(data, options, singles);
    this.#options = options;
    this.#isShared = place !== undefined;
    this.observers = observers;
    const tokens = new Tokens({ ring: data.keys.ring(), clock, random });
    data.keys.onRing = (ring) => tokens.setRing(ring);
    const unready = (): Unready | undefined => this.unready();
    this.listPool = new ListPool(clock, () => unready() === 'draining');
    store.onPublished(this.listPool.follow);
    const load = (): Load => this.load();
    const operated = { app: this, log, directory: options.directory };
    const context = { ...data, tokens, listPool: this.listPool, settings, operated };
    const features = parts.features.map((module) => module.createFeature(context));
    this.#features = features;
    observers.push(...features);
    this.authenticators = {
      ...context,
      required: settings.auth === 'required',
      allowedOrigins: origins,
      checkLocal: local?.check,
    };
    this.routes = createRoutes(this.operations, context, options, features, {
      dialect,
      singles,
      load,
      unready,
    });
    const alwaysServedTargets = new Set(
      this.routes.flatMap(({ isAlwaysServed, path }) => (isAlwaysServed ? path : [])),
    );
    const pipeline = createPipeline({
      ...this.authenticators,
      cors,
      isShared: place !== undefined,
      routes: this.routes,
    });
    const handle = dialect?.translate(pipeline, data.registry) ?? pipeline;
    this.#pipeline = place?.onlyCurrent(handle, store, alwaysServedTargets) ?? handle;
    this.server = new HttpServer({
      clock,
      nextId: createRequestIds(random),
      basePath: settings.basePath,
      hstsSeconds: settings.hstsSeconds,
      handle: this.#answerLater,
      cors,
      problemReply: (error, request) => {
        if (error.code === 'storage_full') this.#countFull();
        return problemReply(error, request);
      },
      proxies,
      alwaysServedTargets,
      onError,
      onUntrustedProxy(address) {
        const advice = 'if this is your proxy, name it in --trust-proxy';
        log.message('warn', `X-Forwarded-For is ignored: ${advice}`, { address });
      },
      onRefused({ address, open, max }) {
        const counts = `its network has ${open}, and all together may have ${max}`;
        log.message('warn', `A connection is refused: ${counts}`, { address });
      },
      onAnswered: (entry) => {
        for (const observer of observers) observer.request?.(entry);
      },
    });
  }

  /** Warns of collections that are not declared, and of private lists whose records are not private. */
  warnOfDeclarations(): void {
    const { log, collections, settings } = this.#options;
    for (const name of this.data.store.undeclared())
      log.message('warn', `No declaration covers ${name}: its records are only kept`);
    if (settings.auth === 'none') return;
    const readable = collections.filter(
      ({ access: { list, read } }) => read === 'user' && listWords(list).every(isByRecord),
    );
    for (const { name } of readable) {
      const advice = 'restrict "read" as well as "list"';
      log.message('warn', `Every user can read the records of ${name} by their ids: ${advice}`);
    }
  }

  /**
   * Creates the administrator if there is no user, then admits requests. Closes the app on failure.
   */
  async begin(): Promise<void> {
    const { administrator } = this.#options;
    try {
      if (administrator !== undefined) await makeAdministrator(this.data.users, administrator);
      if (this.#closed === undefined) this.#enter(this.#pipeline);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Holds a request that arrives before the app is open. */
  readonly #answerLater: Handle = async (request) => {
    await this.#starting;
    return this.server.options.handle(request);
  };

  readonly #answerClosed: Handle = (request) =>
    request.target === livePath ? this.#pipeline(request) : problemReply(stopped, request);

  #enter(handle: Handle): void {
    this.server.options.handle = handle;
    this.#started();
  }

  /** Listens on its own port, and returns the port. @throws the errors of binding */
  async listen({ port, host, tls }: ListenOptions): Promise<number> {
    const { auth, share } = this.#options.settings;
    const isAllowed = auth !== 'none' || share || isLoopback(host);
    if (!isAllowed) throw new OptionError(`Cannot use host ${host}: ${onlyLoopback}`, 'host');
    const bound = await this.server.listen({ port, host, tls });
    this.certificate = tls?.cert;
    invariant(this.#closed === undefined, 'an app that is closed does not listen');
    return bound;
  }

  /** Answers the requests in flight, writes snapshots and releases the directory. */
  readonly close = (): Promise<void> => (this.#closed ??= this.#stop());

  async #stop(): Promise<void> {
    const { settled } = this.#options;
    await this.#drain();
    await settled?.();
    await this.store.close();
    // The store has settled its waiting writes.
    await settled?.();
  }

  async #drain(): Promise<void> {
    this.server.isDraining = true;
    if (this.server.options.handle === this.#answerLater) this.#enter(this.#answerClosed);
    for (const feature of this.#features) feature.close?.();
    this.#options.onStop?.();
    await this.server.drain(limits.drainTimeoutMs, () => this.#enter(this.#answerClosed));
  }

  /** Why the app should get no requests now; `undefined` if it should. */
  unready(): Unready | undefined {
    if (this.#closed !== undefined) return 'draining';
    const { state, isMemoryFull } = this.store;
    // With a full disk or memory, reads are served and deletions make room. A full shared place
    // allows neither.
    if (state === 'full' && !isMemoryFull && this.#isShared) return 'store_unavailable';
    return unreadyStates[state];
  }

  #countFull(): void {
    const isDisk = this.store.state === 'full' && !this.store.isMemoryFull;
    this.#full[isDisk ? 'diskFull' : 'memoryFull'] += 1;
  }

  load(): Load {
    const { unanswered, connections, refused, exchanges, memory } = this.server;
    const refusals = { ownShare: 0, usedUp: 0, brokenOff: 0, ...this.#full };
    const own = [exchanges, memory, this.listPool.places, this.data.passwords.places];
    for (const each of [...own, ...this.#features.flatMap(({ places }) => places ?? [])]) {
      refusals.ownShare += each.refusals.ownShare;
      refusals.usedUp += each.refusals.usedUp;
      refusals.brokenOff += each.refusals.brokenOff;
    }
    const none = { inFlight: unanswered, connections, refused, refusals, listeners: 0, dropped: 0 };
    return this.#features.reduce((sum, { load }) => ({ ...sum, ...load?.() }), none);
  }

  /** @throws the errors of node:tls; the previous one stays */
  renewTls(tls: TlsTexts): void {
    this.server.renewTls(tls);
    this.certificate = tls.cert;
  }
}

const onlyLoopback = 'without authentication an app listens on loopback only, unless `share` is on';
const stopped = new CairnError('draining', 'Cannot answer: the server has stopped');
const unreadyStates = {
  writable: undefined,
  full: undefined,
  unavailable: 'store_unavailable',
  failed: 'store_failed',
} as const;
