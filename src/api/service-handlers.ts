import type { Tokens } from '../auth/tokens.ts';
import { invariant } from '../base/invariant.ts';
import { CairnError } from '../base/errors.ts';
import { readCookie, serializeCookie } from '../http/cookies.ts';
import type { Request } from '../http/message.ts';
import { accept } from '../resources/accept.ts';
import type { CollectionResource } from '../resources/collection.ts';
import { dashboard } from '../resources/dashboard.ts';
import type { Origin, Sessions } from '../resources/sessions.ts';
import type { SignIn } from '../resources/sign-in.ts';
import type { Users } from '../resources/users.ts';
import { sessionCookie } from './authenticate.ts';
import type { Call, Handler } from './handler.ts';
import { preferredType } from './media-types.ts';
import { pageReply, type Pages } from './pages.ts';
import { noContent, unstoredReply } from './replies.ts';
import { serviceRoutes, type ServiceOperation } from './routes.ts';
import { credentialsFields, logoutFields } from './schemas.ts';

export interface Services {
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly tokens: Tokens;
  readonly items: CollectionResource;
  /** Absent where the app serves no page. */
  readonly pages: Pages | undefined;
  /** Why the server should get no requests now, such as `draining`; `undefined` when it should. */
  readonly unready: () => Unready | undefined;
}

/** Why a server should get no requests. */
export type Unready = 'draining' | 'store_failed' | 'storage_full';

/** What does the operations of `serviceRoutes`. */
export function serviceHandlers(services: Services): { readonly [operationId in ServiceOperation]: Handler } {
  const { users, sessions, signIn, tokens, items, pages } = services;
  const page = pages?.files.get('/');
  return {
    async login({ request, body }) {
      const { secret, session, user } = await signIn.start(credentialsIn(body), originOf(request));
      const answer = { user: users.present(user), expiresAt: sessions.present(session)['expiresAt'] };
      const cookie = serializeCookie(sessionCookie, secret, sessions.lifetimes.maxSeconds);
      return unstoredReply(200, JSON.stringify(answer), ['Set-Cookie', cookie]);
    },

    async logout({ request, body }) {
      const { everywhere = false } = body === undefined ? {} : accept(logoutFields, body, { kind: 'create' });
      const secret = readCookie(request.fields, sessionCookie);
      if (secret !== undefined) await signIn.end(secret, everywhere);
      return noContent(['Set-Cookie', serializeCookie(sessionCookie, '', 0)]);
    },

    dashboard({ request, principal }) {
      invariant(principal.kind === 'session', 'the route takes a session');
      if (
        pages !== undefined &&
        page !== undefined &&
        preferredType(serviceRoutes.dashboard, request) === 'text/html'
      ) {
        return pageReply(page, pages.contentSecurityPolicy, request);
      }
      return unstoredReply(200, JSON.stringify(dashboard(principal, users, sessions, items)));
    },

    async createToken({ body }) {
      const user = await signIn.authenticate(credentialsIn(body));
      const { token, expiresIn } = tokens.issue({ userId: user.id, role: user.role });
      return unstoredReply(201, JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: expiresIn }));
    },

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = services.unready();
      if (reason === undefined) return unstoredReply(200, '{"status":"ready"}');
      throw new CairnError(reason, 'Cannot take requests now');
    },
  };
}

function credentialsIn(body: Call['body']): { email: string; password: string } {
  return accept(credentialsFields, body ?? null, { kind: 'create' });
}

function originOf({ address, fields }: Request): Origin {
  return { address, agent: fields.get('user-agent') ?? '' };
}
