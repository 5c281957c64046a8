import { sessionEndsAt } from '../auth/secrets.ts';
import type { Client } from '../accounts/sessions.ts';
import { userFields } from '../accounts/user-fields.ts';
import type { Request } from '../http/message.ts';
import { representationWriter } from '../schema/record.ts';
import {
  checkSessionUser,
  isSessionUser,
  readSessionCookies,
  setSessionCookie,
} from './authenticate.ts';
import { bind, type Endpoint } from './call.ts';
import type { Context } from './context.ts';
import { noContent, unstoredReply } from './replies.ts';
import { signInRoutes } from './routes.ts';

export function signInEndpoints({ store, sessions, signIn, tokens }: Context): Endpoint[] {
  const writeUser = representationWriter(userFields);
  return bind(signInRoutes, {
    async login({ request, body }) {
      const { session, user, secret } = await signIn.start(body, 'cookie', clientOf(request));
      const expiresAt = new Date(sessionEndsAt(session)).toISOString();
      const text = `{"user":${writeUser(user)},"expiresAt":"${expiresAt}"}`;
      return unstoredReply(200, text, setSessionCookie(request, secret));
    },

    async logout({ request, body }) {
      // A page on a neighbouring host may have added another user's cookie. It must not prevent
      // the sign-out.
      const live = readSessionCookies(request).flatMap((secret) => {
        const userId = sessions.userOf(secret);
        return userId === undefined ? [] : [{ secret, userId }];
      });
      const own = live.filter(({ userId }) => isSessionUser(request, userId));
      const [other] = live;
      if (own.length === 0 && other !== undefined) checkSessionUser(request, other.userId);
      const { address, caller } = request;
      for (const { secret } of own) {
        const everywhere = body.everywhere === true;
        await store.write((tx) => sessions.signOut(tx, secret, everywhere, address), caller);
      }
      return noContent(setSessionCookie(request, ''));
    },

    async createToken({ request, body }) {
      const client = clientOf(request);
      const { secret, user, at } =
        'refresh_token' in body
          ? await sessions.refresh(body.refresh_token, client)
          : await signIn.start(body, 'refresh', client);
      const { token, expiresIn } = tokens.issue(
        { userId: user.id, role: user.role },
        at,
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
      const { address, caller } = request;
      await store.write((tx) => sessions.revoke(tx, body.refresh_token, address), caller);
      return noContent();
    },
  });
}

function clientOf({ address, fields }: Request): Client {
  return { address, agent: fields.get('user-agent') ?? '' };
}
