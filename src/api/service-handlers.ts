import { localAdministrator, requireUser } from '../auth/access.ts';
import { sessionEndsAt } from '../auth/secrets.ts';
import type { Tokens } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { readCookies } from '../http/fields.ts';
import { parseQuery, type Query } from '../http/query.ts';
import type { Request } from '../http/message.ts';
import type { ChangeFeed } from '../collections/change-feed.ts';
import { items } from '../collections/items.ts';
import { found, type CollectionResource } from '../collections/resource.ts';
import { dashboardWriter } from '../accounts/dashboard.ts';
import type { AccountRecords } from '../accounts/records.ts';
import type { Client, Sessions } from '../accounts/sessions.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import { userFields } from '../accounts/user-fields.ts';
import { invalidParameter } from '../lists/filters.ts';
import { representationWriter } from '../schema/record.ts';
import type { Store } from '../store/store.ts';
import { bearerToken, checkSessionUser, sessionCookie, setSessionCookie } from './authenticate.ts';
import {
  entityTag,
  eventStream,
  isUnchanged,
  noContent,
  notModified,
  shown,
  unstoredReply,
} from './replies.ts';
import { bind, parseId, type Call, type Endpoint } from './call.ts';
import { accountRoutes, serverRoutes, signInRoutes } from './routes.ts';

/** What the handlers need of the app. */
export interface Services {
  readonly store: Store;
  readonly records: AccountRecords;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly tokens: Tokens;
  readonly collections: readonly CollectionResource[];
  readonly feed: ChangeFeed;
  readonly epoch: () => string;
  /** Returns the state of the server and its store: a `Status`, as JSON text. */
  readonly status: () => string;
  /** Returns why the server should not receive requests now; `undefined` if it should. */
  readonly unready: () => Unready | undefined;
}

/** Why a server should not receive requests. */
export type Unready = 'draining' | 'store_failed' | 'storage_full' | 'store_unavailable';

/** Returns the endpoints that belong to no collection. */
export function serviceEndpoints(services: Services): Endpoint[] {
  const itemsResource = services.collections.find(({ declaration }) => declaration === items);
  return [
    ...signInEndpoints(services),
    ...accountEndpoints(services, itemsResource),
    ...serverEndpoints(services),
  ];
}

function signInEndpoints({ store, sessions, signIn, tokens }: Services): Endpoint[] {
  const writeUser = representationWriter(userFields);
  return bind(signInRoutes, {
    async login({ request, body }) {
      const { session, user, secret } = await signIn.start(body, 'cookie', clientOf(request));
      const expiresAt = new Date(sessionEndsAt(session)).toISOString();
      const text = `{"user":${writeUser(user)},"expiresAt":"${expiresAt}"}`;
      return unstoredReply(200, text, setSessionCookie(request, secret));
    },

    async logout({ request, body }) {
      // A page on a neighbouring host may have added another cookie. It must not prevent
      // the sign-out.
      const secrets = readCookies(request.fields, sessionCookie);
      for (const secret of secrets) {
        const userId = sessions.userOf(secret);
        if (userId !== undefined) checkSessionUser(request, userId);
      }
      for (const secret of secrets) {
        const everywhere = body.everywhere === true;
        await store.write((tx) => sessions.signOut(tx, secret, everywhere, request.address));
      }
      return noContent(setSessionCookie(request, ''));
    },

    async createToken({ request, body }) {
      const client = clientOf(request);
      const { secret, user } =
        'refresh_token' in body
          ? await sessions.refresh(body.refresh_token, client)
          : await signIn.start(body, 'refresh', client);
      const { token, expiresIn } = tokens.issue(
        { userId: user.id, role: user.role },
        user.signedOutAt,
      );
      const created = {
        access_token: token,
        token_type: 'Bearer',
        expires_in: expiresIn,
        refresh_token: secret,
      };
      return unstoredReply(201, JSON.stringify(created));
    },

    async revokeToken({ request, body }) {
      await store.write((tx) => sessions.revoke(tx, body.refresh_token, request.address));
      return noContent();
    },
  });
}

function accountEndpoints(
  { store, records, sessions, epoch }: Services,
  itemsResource: CollectionResource | undefined,
): Endpoint[] {
  const writeDashboard = dashboardWriter(records, sessions, itemsResource);
  const writeUser = representationWriter(userFields);
  return bind(accountRoutes, {
    me({ request, principal }) {
      const { userId } = requireUser(principal);
      if (principal === localAdministrator) throw nobodySignsIn;
      const user = found(records.users.get(userId));
      const tag = entityTag(epoch(), user.revision);
      const location = ['Content-Location', `${request.basePath}/users/${userId}`];
      if (isUnchanged(request, tag)) return notModified(tag, location);
      return shown(200, tag, writeUser(user), location);
    },

    dashboard({ principal }) {
      invariant(principal.kind === 'session', 'the route requires a session');
      return unstoredReply(200, writeDashboard(principal));
    },

    listSessions({ principal, query }) {
      const caller = requireUser(principal);
      const current = principal.kind === 'session' ? principal.sessionId : undefined;
      const value = onlyParameter(parseQuery(query), 'userId');
      const userId = value === undefined ? caller.userId : parseId(value);
      if (userId === 0 && value !== undefined)
        throw invalidParameter('userId', 'must be a positive whole number');
      const listed = sessions.list(caller, userId);
      return unstoredReply(
        200,
        `[${listed.map((session) => sessions.write(session, current)).join(',')}]`,
      );
    },

    async removeSession({ request, principal, id }) {
      await store.write((tx) => sessions.end(tx, principal, id, request.address));
      return noContent();
    },
  });
}

const nobodySignsIn = new CairnError(
  'not_found',
  'Cannot find your user record: without authentication, nobody signs in',
);

/** Returns the endpoints of the change feed and the server's state. */
function serverEndpoints(services: Services): Endpoint[] {
  return bind(serverRoutes, {
    changes(call) {
      const { request, principal } = call;
      const { caller, signal, fields } = request;
      const query = new Map(parseQuery(call.query));
      const collections = query.get('collection')?.join().split(',');
      query.delete('collection');
      const asked = onlyParameter(query, 'since');
      const since = fields.get('last-event-id') ?? asked;
      const isAdmitted = admission(call, services);
      const follower = { principal, caller, signal, collections, since, isAdmitted };
      return eventStream(services.feed.follow(follower));
    },

    status: () => unstoredReply(200, services.status()),

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = services.unready();
      if (reason === undefined) return unstoredReply(200, '{"status":"ready"}');
      throw new CairnError(reason, 'Cannot answer requests: the server is not ready');
    },
  });
}

/**
 * Returns a check of whether the caller is still allowed to follow the changes. It does
 * not count as a use of the session.
 */
function admission(
  { request, principal }: Call,
  { records, sessions, tokens }: Services,
): () => boolean {
  const { userId, role } = requireUser(principal);
  const authorization = request.fields.get('authorization') ?? '';
  return () => {
    if (principal === localAdministrator) return true;
    // The role of a token may be older than the token's first use here.
    if (records.users.get(userId)?.role !== role) return false;
    if (principal.kind === 'session') return sessions.isOpen(principal.sessionId);
    try {
      return tokens.verify(bearerToken(authorization)).userId === userId;
    } catch {
      return false;
    }
  };
}

/**
 * Returns the value of the only parameter that a query may have.
 * @throws CairnError `invalid_query`
 */
function onlyParameter(query: Query, name: string): string | undefined {
  for (const [parameter, values] of query) {
    if (parameter !== name) throw invalidParameter(parameter, 'is not a known parameter');
    if (values.length > 1) throw invalidParameter(parameter, 'is given more than once');
  }
  return query.get(name)?.[0];
}

function clientOf({ address, fields }: Request): Client {
  return { address, agent: fields.get('user-agent') ?? '' };
}
