import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Users } from '../accounts/users.ts';
import type { Unready } from '../api/health.ts';
import { openApp } from '../app/app.ts';
import { CollectionResource } from '../collections/resource.ts';
import type { ListenOptions, TlsTexts } from '../http/server.ts';
import type { Load } from '../log/operated.ts';
import type { Store } from '../store/store.ts';
import { programCollection, type ProgramCollection } from './collection.ts';
import { inject, type PlainReply, type PlainRequest } from './inject.ts';
import { completeOptions, type AppOptions } from './options.ts';

/**
 * An application. It listens on ports of its own, answers for an existing server, or
 * answers requests without a port.
 */
export interface App {
  /** Listens on a port of its own, and returns the port. @throws the errors of binding */
  listen(options: ListenOptions): Promise<number>;
  /** Answers for an existing `node:http` server: `createServer(app.handler)`. */
  readonly handler: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Answers without a port. */
  readonly inject: (request: PlainRequest) => Promise<PlainReply>;
  /**
   * Stops listening, answers the requests in flight, writes snapshots and releases the
   * directory. Afterwards every path except `/livez` answers 503.
   */
  readonly close: () => Promise<void>;
  /** The same as `close`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;

  /** The users, to be read or changed without a request. */
  readonly users: Users;
  /** A declared collection, in the same way. @throws RangeError if there is none of this name */
  collection(name: string): ProgramCollection;
  /** The store, for its status. */
  readonly store: Store;
  /** Why the app should get no requests now; `undefined` if it should. */
  unready(): Unready | undefined;
  /** What the app is busy with. */
  load(): Load;

  /** Reads the key file again. @throws KeyRingError; the former keys stay in use */
  reloadKeys(): Promise<void>;
  /** Replaces the certificate. @throws the errors of node:tls; the former one stays */
  renewTls(tls: TlsTexts): void;
  /** The certificate of new TLS connections, in PEM; `undefined` without TLS. */
  readonly certificate: string | undefined;
}

/**
 * Opens the store and puts the application together.
 * @throws StoreDamageError, LockedError or KeyRingError if the directory cannot be used;
 *   OptionError for an option that is unknown or not allowed; InvariantError for a
 *   collection that contradicts itself or another one; CairnError `validation_failed` for
 *   an administrator that breaks a rule
 */
export async function createApp(options: AppOptions = {}): Promise<App> {
  const complete = completeOptions(options);
  const app = await openApp(complete);
  await app.begin();
  const { data, server, close } = app;
  return Object.assign(app, {
    users: data.users,
    handler(incoming: IncomingMessage, outgoing: ServerResponse): void {
      server.receive(incoming, outgoing);
    },
    async inject(request: PlainRequest): Promise<PlainReply> {
      server.unanswered += 1;
      try {
        return await inject(server.options, request);
      } finally {
        server.endAnswering();
      }
    },
    collection(name: string): ProgramCollection {
      const declared = data.registry.get(name);
      if (declared !== undefined)
        return programCollection(new CollectionResource(declared, complete), data.writes);
      const names = [...data.registry.keys()].join(', ');
      throw new RangeError(`Cannot use the collection "${name}": there are ${names}`);
    },
    [Symbol.asyncDispose]: close,
  });
}
