import { localAdministrator, requireUser } from '../auth/access.ts';
import { sessionEndsAt } from '../auth/sessions.ts';
import type { Tokens } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { readCookies } from '../http/fields.ts';
import { parseQuery } from '../http/head.ts';
import type { Request } from '../http/message.ts';
import type { ChangeFeed } from '../collections/change-feed.ts';
import { items } from '../collections/items.ts';
import { found, type CollectionResource } from '../collections/resource.ts';
import { dashboardWriter } from '../accounts/dashboard.ts';
import type { AccountRecords } from '../accounts/records.ts';
import type { Origin, Sessions } from '../accounts/sessions.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import { userFields } from '../accounts/user-fields.ts';
import { representationWriter } from '../schema/representation.ts';
import { bearerToken, cookieOf, noCookie, sessionCookie } from './authenticate.ts';
import { entityTag, eventStream, isUnchanged, noContent, notModified, shown, unstoredReply } from './replies.ts';
import { parseId, preferredType, type Call, type Handler } from './route.ts';
import type { ServiceOperation, serviceRoutes } from './routes.ts';

export interface Services {
  readonly records: AccountRecords;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly tokens: Tokens;
  readonly collections: readonly CollectionResource[];
  readonly feed: ChangeFeed;
  readonly epoch: () => string;
  /** Answers with the page. Absent: the app serves none. */
  readonly page: Handler | undefined;
  /** The OpenAPI document as JSON text, and its entity tag. */
  readonly description: () => Promise<{ readonly text: string; readonly tag: string }>;
  /** How the server and its store are doing: a `Status`, as JSON text. */
  readonly status: () => string;
  /** Why the server should not receive requests now; `undefined` when it should. */
  readonly unready: () => Unready | undefined;
}

/** Why a server should not receive requests. */
export type Unready = 'draining' | 'store_failed' | 'storage_full' | 'store_unavailable';

/** The handlers of `serviceRoutes`. */
export function serviceHandlers(services: Services): {
  readonly [operation in ServiceOperation]: Handler<(typeof serviceRoutes)[operation]>;
} {
  const { records, sessions, signIn, tokens, collections, page } = services;
  const resourceOfItems = collections.find(({ declaration }) => declaration === items);
  const writeDashboard = dashboardWriter(records, sessions, resourceOfItems);
  const writeUser = representationWriter(userFields);
  return {
    async login({ request, body }) {
      const started = await signIn.start(body, 'cookie', originOf(request));
      const expiresAt = new Date(sessionEndsAt(started.session)).toISOString();
      const answer = `{"user":${writeUser(started.user)},"expiresAt":"${expiresAt}"}`;
      return unstoredReply(200, answer, ['Set-Cookie', cookieOf(started)]);
    },

    async logout({ request, body }) {
      // A page of a neighbouring host may have added a cookie. That must not keep anyone signed in.
      for (const secret of readCookies(request.fields, sessionCookie)) {
        await sessions.signOut(secret, body.everywhere === true, request.address);
      }
      return noContent(['Set-Cookie', noCookie]);
    },

    me({ request, principal }) {
      const { userId } = requireUser(principal);
      const user = found(records.users.get(userId));
      const tag = entityTag(services.epoch(), user.revision);
      if (isUnchanged(request, tag)) return notModified(tag);
      return shown(200, tag, writeUser(user), ['Content-Location', `/users/${userId}`]);
    },

    dashboard(call) {
      const { request, route, principal } = call;
      invariant(principal.kind === 'session', 'the route takes a session');
      if (page !== undefined && preferredType(route, request) === 'text/html') return page(call);
      return unstoredReply(200, writeDashboard(principal));
    },

    async createToken({ request, body }) {
      const origin = originOf(request);
      const { secret, user } =
        'refresh_token' in body
          ? await sessions.refresh(body.refresh_token, origin)
          : await signIn.start(body, 'refresh', origin);
      const { token, expiresIn } = tokens.issue({ userId: user.id, role: user.role }, user.signedOutAt);
      const answer = { access_token: token, token_type: 'Bearer', expires_in: expiresIn, refresh_token: secret };
      return unstoredReply(201, JSON.stringify(answer));
    },

    async revokeToken({ request, body }) {
      await sessions.revoke(body.refresh_token, request.address);
      return noContent();
    },

    listSessions({ principal, query }) {
      const caller = requireUser(principal);
      const current = principal.kind === 'session' ? principal.sessionId : undefined;
      const listed = sessions.list(caller, userIn(query) ?? caller.userId);
      return unstoredReply(200, `[${listed.map((session) => sessions.write(session, current)).join(',')}]`);
    },

    async removeSession({ request, principal, id }) {
      await sessions.end(principal, id, request.address);
      return noContent();
    },

    changes(call) {
      const { request, principal } = call;
      const { caller, signal, fields } = request;
      const since = fields.get('last-event-id') ?? onlyParameter(call.query, 'since');
      const isAdmitted = admission(call, services);
      return eventStream(services.feed.follow({ principal, caller, signal, since, isAdmitted }));
    },

    async describe({ request }) {
      const { text, tag } = await services.description();
      return isUnchanged(request, tag) ? notModified(tag) : shown(200, tag, text);
    },

    status: () => unstoredReply(200, services.status()),

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = services.unready();
      if (reason === undefined) return unstoredReply(200, '{"status":"ready"}');
      throw new CairnError(reason, 'Cannot take requests: the server is not ready');
    },
  };
}

/** Returns a check of whether the caller would still be let in, which does not count as a use of the session. */
function admission({ request, principal }: Call, { records, sessions, tokens }: Services): () => boolean {
  const { userId } = requireUser(principal);
  const role = records.users.get(userId)?.role;
  const authorization = request.fields.get('authorization') ?? '';
  return () => {
    if (records.users.get(userId)?.role !== role) return false;
    if (principal.kind === 'session') return sessions.isOpen(principal.sessionId);
    try {
      return principal === localAdministrator || tokens.verify(bearerToken(authorization)).userId === userId;
    } catch {
      return false;
    }
  };
}

/** @throws CairnError `invalid_query` */
function userIn(text: string): number | undefined {
  const value = onlyParameter(text, 'userId');
  if (value === undefined) return undefined;
  const id = parseId(value);
  if (id !== 0) return id;
  throw new CairnError('invalid_query', 'Cannot read the query: "userId" is a positive whole number');
}

/** The value of the only parameter that a query may have. @throws CairnError `invalid_query` */
function onlyParameter(text: string, name: string): string | undefined {
  const query = parseQuery(text);
  if (query.size === 0) return undefined;
  const [value, ...others] = query.get(name) ?? [];
  if (value !== undefined && query.size === 1 && others.length === 0) return value;
  throw new CairnError('invalid_query', `Cannot read the query: it takes one "${name}" and nothing else`);
}

function originOf({ address, fields }: Request): Origin {
  return { address, agent: fields.get('user-agent') ?? '' };
}
