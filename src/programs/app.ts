import type { IncomingMessage, ServerResponse } from 'node:http';
import { authenticate } from '../api/authenticate.ts';
import type { Unready } from '../api/health.ts';
import { openApp, type Application } from '../app/app.ts';
import { invariant } from '../base/errors.ts';
import { OptionError, options as serverOptions } from '../config/options.ts';
import { RouteConflict } from '../http/router.ts';
import type { ListenOptions, TlsTexts } from '../http/server.ts';
import type { Load } from '../log/operated.ts';
import type { StoreState, Transaction } from '../store/store.ts';
import { toCaller, type As, type Caller } from './callers.ts';
import {
  ProgramOperations,
  Program,
  toSingle,
  type DeclaredCollection,
  type ProgramCollection,
  type ProgramSingle,
  type WriteOptions,
} from './collection.ts';
import { checkMembers, refusePromise } from './given.ts';
import {
  answerFetch,
  toCredentials,
  inject,
  type FetchOptions,
  type PlainReply,
  type PlainRequest,
} from './inject.ts';
import { checkGiven, completeOptions, type AppOptions } from './options.ts';
import { toRows, routeKinds, type OwnRoute, type RouteDefinition, type Running } from './routes.ts';
import type { Shape } from '../schema/field.ts';
import type {
  Input,
  NoPromise,
  Output,
  Patch,
  Reversible,
  Single,
  SortTerm,
  Where,
} from './types.ts';
import { programTransaction, type ProgramTransaction } from './write.ts';

export interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly role: string;
}

/** A new user. Without a password, the user cannot sign in. */
export interface UserInput {
  readonly name: string;
  readonly email: string;
  /** `member` if absent. */
  readonly role?: string | undefined;
  readonly password?: string | undefined;
}

export interface UserPatch extends Partial<UserInput> {
  /** Required for a new password or e-mail address if `as` is the user. */
  readonly currentPassword?: string | undefined;
}

export interface ProgramUsers extends ProgramCollection<
  UserInput,
  User,
  UserPatch,
  Readonly<Record<string, string | number | readonly (string | number)[] | undefined>>,
  Reversible<keyof User>
> {
  /** Sets a password and ends the user's sessions. @throws CairnError as `change` */
  setPassword(id: number, password: string, options?: WriteOptions): Promise<void>;
}

export interface AppStatus {
  readonly state: StoreState;
  /** Why the app should get no requests now; `undefined` if it should. */
  readonly unready: Unready | undefined;
  readonly load: Load;
  readonly records: number;
  /** The certificate for new TLS connections, in PEM; `undefined` without TLS. */
  readonly certificate: string | undefined;
}

/**
 * An application. It listens on its own ports, serves an existing server, or answers requests
 * without a port.
 */
export interface App {
  /**
   * Listens on its own port, on 127.0.0.1 unless `host` is present, and returns the port.
   * @throws OptionError, and the errors of binding
   */
  listen(
    options: Omit<ListenOptions, 'host'> & { readonly host?: string | undefined },
  ): Promise<number>;
  /** Serves an existing `node:http` server: `createServer(app.handler)`. */
  readonly handler: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /**
   * Answers a request without a port.
   *
   * @throws OptionError
   * @example
   *     const { status, body } = await app.inject({ target: '/tasks?done=false' });
   */
  inject(request: PlainRequest): Promise<PlainReply>;
  /**
   * Answers a Fetch API `Request`.
   *
   * @throws OptionError; TypeError if its body has been read
   * @example
   *     const response = await app.fetch(new Request('http://cairn/tasks'));
   */
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  /**
   * Stops: answers the requests in flight, waits for `afterWrite`, writes snapshots and releases
   * the directory.
   */
  close(): Promise<void>;
  /** `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * Finds a declared collection by its declaration or name.
   *
   * @throws OptionError
   * @example
   *     const { id } = await app.collection(tasks).create({ title: 'Water the plants' });
   *     const page = await app.collection(tasks).list({ where: { done: false }, sort: '-title' });
   */
  collection<const C extends string | { readonly name: string }>(
    collection: C,
  ): DeclaredCollection<Input<C>, Output<C>, Patch<C>, Where<C>, SortTerm<C>>;
  /** Finds a single resource by its declaration or name. @throws OptionError */
  single<const C extends string | { readonly name: string }>(
    single: C,
  ): ProgramSingle<Single<C, Input<C>>, Single<C, Output<C>>, Single<C, Patch<C>>>;
  /** @throws OptionError if the app has no users */
  readonly users: ProgramUsers;
  /**
   * Returns a record's entity tag, for `ifVersion`.
   *
   * @throws OptionError unless the record is from this app
   * @example
   *     const task = app.collection(tasks).get(1);
   *     if (task === undefined) return;
   *     const ifVersion = app.versionOf(task);
   *     await app.collection(tasks).change(task.id, { done: true }, { ifVersion });
   */
  versionOf(record: object): string;
  /**
   * Runs `work` as one transaction: all or nothing. It may run more than once and must do nothing
   * else.
   *
   * @throws TypeError inside another transaction, and if `work` returns a promise; whatever
   *   `work` throws
   * @example
   *     const count = await app.write((tx) => {
   *       tx.collection(tasks).change(1, { done: true });
   *       return tx.collection(tasks).referring('afterId', 1).count;
   *     });
   */
  write<T extends NoPromise>(work: (tx: ProgramTransaction) => T, options?: As): Promise<T>;
  /**
   * Returns the caller of a request from `node:http` or of the Fetch API.
   *
   * @throws CairnError for invalid credentials, and for a cookie from another site
   * @example
   *     const caller = await app.authenticate(request);
   *     const { records } = await app.collection(tasks).list({ as: caller });
   */
  authenticate(request: IncomingMessage | Request): Promise<Caller>;
  status(): AppStatus;

  /** Reads the key file again. @throws KeyRingError; the previous keys then stay in use */
  reloadKeys(): Promise<void>;
  /** Replaces the certificate. @throws the errors of node:tls; the previous one then stays */
  renewTls(tls: TlsTexts): void;
}

/**
 * Declares your own route. Authentication, validation, limits, log, metrics and the OpenAPI
 * document treat it like every other route.
 *
 * @example
 *     const finish = defineRoute({
 *       method: 'POST',
 *       path: '/tasks/{id}/finish',
 *       access: 'user',
 *       summary: 'Finish a task',
 *       write: (tx, { id }) => tx.collection(tasks).change(id, { done: true }),
 *     });
 *     const app = await createApp({ collections: [tasks], routes: [finish] });
 */
export function defineRoute<
  const P extends string,
  const B extends Shape | 'bytes' = {},
  const Q extends Shape = {},
>(route: RouteDefinition<B, Q, App, P>): OwnRoute<App> {
  checkMembers('defineRoute', route, routeKinds);
  return Object.freeze({ ...route });
}

/**
 * Opens the store and creates the application. Without a `directory`, everything is in memory.
 *
 * @example
 *     const app = await createApp({ directory: './data', collections: [tasks], auth: 'required' });
 *     const port = await app.listen({ port: 8080 });
 * @throws StoreDamageError, LockedError or KeyRingError if the directory cannot be used;
 *   OptionError for an option that is unknown or not allowed, or contradicts itself or another one;
 *   CairnError `validation_failed` for an administrator that breaks a rule
 */
export async function createApp(options: AppOptions = {}): Promise<App> {
  return (await openProgram(options)).app;
}

/** Does the same as `createApp`, and also returns the internals that tests need. */
export async function openProgram(
  options: AppOptions = {},
): Promise<{ readonly app: App; readonly inside: Application }> {
  const complete = completeOptions(options);
  const { routes = [] } = options;
  const waiting = new Set<AbortController>();
  let opened: Running | undefined;
  const running = (): Running => {
    invariant(opened !== undefined, 'requests wait for the app');
    return opened;
  };
  const inside = await openApp({
    ...complete,
    ownRoutes: (registry) => toRows(routes, { registry, waiting, running }),
    onStop: () => waiting.forEach((each) => each.abort()),
  }).catch((error: unknown) => {
    if (!(error instanceof RouteConflict)) throw error;
    throw new OptionError(`Cannot use the routes: ${error.message}`, 'routes');
  });
  inside.warnOfDeclarations();
  const program = new Program(inside);
  const app = assembleApp(inside, createRecords(program, inside));
  opened = { app, program };
  await inside.begin();
  return { app, inside };
}

function assembleApp(inside: Application, records: Records): App {
  const { server } = inside;
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    server.unanswered += 1;
    try {
      return await work();
    } finally {
      server.unanswered -= 1;
      server.notifyIdle();
    }
  };
  // Not spread, because reading `users` throws if the app has none.
  return Object.assign(records, {
    async listen(options: Parameters<App['listen']>[0]) {
      checkMembers('app.listen', options, { port: 'any', host: 'any', tls: 'object' });
      const { port, host = '127.0.0.1', tls } = options;
      checkGiven('port', serverOptions.port, port);
      checkGiven('host', serverOptions.host, host);
      if (tls !== undefined) checkTls(tls);
      return inside.listen({ port, host, tls });
    },
    handler: (incoming: IncomingMessage, outgoing: ServerResponse) =>
      server.receive(incoming, outgoing),
    inject: (request: PlainRequest) => counted(() => inject(server.options, request)),
    fetch: (request: Request, options?: FetchOptions) =>
      counted(() => answerFetch(server.options, request, options)),
    close: inside.close,
    [Symbol.asyncDispose]: inside.close,
    async authenticate(request: IncomingMessage | Request) {
      const call = toCredentials(server.options, request);
      inside.authenticators.checkLocal?.(call);
      return toCaller(authenticate(credentials, call, inside.authenticators));
    },
    status: () => ({
      state: inside.store.state,
      unready: inside.unready(),
      load: inside.load(),
      records: inside.store.size,
      certificate: inside.certificate,
    }),
    reloadKeys: () => inside.data.keys.load(),
    renewTls(tls: TlsTexts) {
      checkTls(tls);
      inside.renewTls(tls);
    },
  });
}

/** @throws OptionError */
function checkTls(tls: TlsTexts): void {
  checkMembers('tls', tls, { cert: 'text', key: 'text' });
  for (const name of ['cert', 'key'] as const)
    if (tls[name] === undefined)
      throw new OptionError(`Cannot use tls: ${name} must be given`, 'tls');
}

const credentials = { access: 'optional' } as const;

function createRecords(program: Program, { operations }: Application): Records {
  const { data } = program;
  const ofUsers = new ProgramOperations(operations.users, program);
  const { createMany: _, ...users } = ofUsers.collection;
  const setPassword: ProgramUsers['setPassword'] = (id, password, options) =>
    users.change(id, { password }, options).then(() => undefined);
  const records = {
    single(given: unknown) {
      const { collection } = program.find('single', given).operations;
      return { name: collection.name, ...toSingle(collection) };
    },
    collection: (given: unknown) => program.find('collection', given).operations.collection,
    get users() {
      if (data.hasUsers) return { ...users, setPassword };
      throw new OptionError('Cannot use app.users: the app has "users": false', 'users');
    },
    versionOf(record: object) {
      const version = program.versions.get(record);
      if (version !== undefined) return version;
      const advice = 'pass the very object that the app gave, not a copy';
      throw new OptionError(`Cannot tell the version of the record: ${advice}`, 'record');
    },
    write<T>(work: (tx: ProgramTransaction) => T, options: As = {}): Promise<T> {
      if (typeof work !== 'function')
        throw new OptionError('Cannot use work: app.write takes a function', 'work');
      checkMembers('app.write', options, { as: 'any' });
      const principal = program.findPrincipal(options);
      const synchronous = (tx: Transaction): T => {
        const value = work(programTransaction(tx, principal, program));
        refusePromise(value, 'The work of app.write');
        return value;
      };
      return program.begin(() => data.writes.write(principal, synchronous));
    },
  };
  // The store has checked the records against the declarations, so their types hold.
  return records as unknown as Records;
}

type Records = Pick<App, 'collection' | 'single' | 'users' | 'versionOf' | 'write'>;
