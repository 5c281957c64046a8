import { requireUser } from '../auth/access.ts';
import type { Tokens } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { isJsonObject } from '../base/json.ts';
import { readCookie } from '../http/fields.ts';
import { parseQuery } from '../http/head.ts';
import type { Request } from '../http/message.ts';
import type { CollectionResource } from '../resources/collection.ts';
import { dashboardWriter } from '../resources/dashboard.ts';
import type { Origin, Sessions } from '../resources/sessions.ts';
import type { SignIn } from '../resources/sign-in.ts';
import { userFields, type Users } from '../resources/users.ts';
import { accept } from '../schema/check.ts';
import { representationOf } from '../schema/representation.ts';
import { cookieOf, noCookie, sessionCookie } from './authenticate.ts';
import { isUnchanged, noContent, notModified, shown, unstoredReply } from './replies.ts';
import { preferredType, type Handler } from './route.ts';
import { serviceRoutes, type ServiceOperation } from './routes.ts';

const { login, logout, createToken, revokeToken } = serviceRoutes;

export interface Services {
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly tokens: Tokens;
  readonly items: CollectionResource;
  /** Answers with the page; absent where the app serves none. */
  readonly page: Handler | undefined;
  /** The OpenAPI document as JSON text, and its entity tag. */
  readonly description: () => Promise<{ readonly text: string; readonly tag: string }>;
  /** Why the server should get no requests now, such as `draining`; `undefined` when it should. */
  readonly unready: () => Unready | undefined;
}

/** Why a server should get no requests. */
export type Unready = 'draining' | 'store_failed' | 'storage_full';

/** What does the operations of `serviceRoutes`. */
export function serviceHandlers(services: Services): { readonly [operationId in ServiceOperation]: Handler } {
  const { users, sessions, signIn, tokens, items, page } = services;
  const writeDashboard = dashboardWriter(users, sessions, items);
  return {
    async login({ request, body }) {
      const credentials = accept(login.body.shape, body, { kind: 'create' });
      const started = await signIn.start(credentials, 'cookie', originOf(request));
      const expiresAt = new Date(sessions.endOf(started.session)).toISOString();
      const answer = JSON.stringify({ user: representationOf(userFields, started.user), expiresAt });
      return unstoredReply(200, answer, ['Set-Cookie', cookieOf(started)]);
    },

    async logout({ request, body }) {
      const { everywhere = false } = accept(logout.body.shape, body, { kind: 'create' });
      const secret = readCookie(request.fields, sessionCookie);
      if (secret !== undefined) await sessions.end(secret, everywhere, request.address);
      return noContent(['Set-Cookie', noCookie]);
    },

    dashboard(call) {
      const { request, route, principal } = call;
      invariant(principal.kind === 'session', 'the route takes a session');
      if (page !== undefined && preferredType(route, request) === 'text/html') return page(call);
      return unstoredReply(200, writeDashboard(principal));
    },

    async createToken({ request, body }) {
      const origin = originOf(request);
      const isRefresh = isJsonObject(body) && Object.hasOwn(body, 'refresh_token');
      const { secret, user } = isRefresh
        ? await signIn.refresh(accept(createToken.body.or.shape, body, { kind: 'create' }).refresh_token, origin)
        : await signIn.start(accept(createToken.body.shape, body, { kind: 'create' }), 'refresh', origin);
      const { token, expiresIn } = tokens.issue({ userId: user.id, role: user.role });
      const answer = { access_token: token, token_type: 'Bearer', expires_in: expiresIn, refresh_token: secret };
      return unstoredReply(201, JSON.stringify(answer));
    },

    async revokeToken({ request, body }) {
      const { refresh_token: token } = accept(revokeToken.body.shape, body, { kind: 'create' });
      await sessions.revoke(token, request.address);
      return noContent();
    },

    listSessions({ principal, query }) {
      const caller = requireUser(principal);
      const current = principal.kind === 'session' ? principal.sessionId : undefined;
      const listed = signIn.sessionsOf(caller, userIn(query) ?? caller.userId);
      return unstoredReply(200, `[${listed.map((session) => sessions.write(session, current)).join(',')}]`);
    },

    async removeSession({ request, principal, id }) {
      await signIn.endOne(principal, id, request.address);
      return noContent();
    },

    async describe({ request }) {
      const { text, tag } = await services.description();
      return isUnchanged(request, tag) ? notModified(tag) : shown(200, tag, text);
    },

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = services.unready();
      if (reason === undefined) return unstoredReply(200, '{"status":"ready"}');
      throw new CairnError(reason, 'Cannot take requests: the server is not ready for them');
    },
  };
}

/** @throws CairnError `invalid_query` */
function userIn(text: string): number | undefined {
  const query = parseQuery(text);
  if (query.size === 0) return undefined;
  const [parts = [], ...others] = query.get('userId') ?? [];
  const value = parts.join(',');
  if (query.size === 1 && others.length === 0 && /^[1-9]\d{0,14}$/.test(value)) return Number(value);
  throw new CairnError('invalid_query', 'Cannot read the query: it may be one "userId", a positive whole number');
}

function originOf({ address, fields }: Request): Origin {
  return { address, agent: fields.get('user-agent') ?? '' };
}
