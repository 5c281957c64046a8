import { sessionEndsAt } from '../auth/secrets.ts';
import type { Client } from '../accounts/sessions.ts';
import { userFields } from '../accounts/user-fields.ts';
import type { Request } from '../http/message.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/record.ts';
import {
  checkSessionUser,
  isSessionUser,
  readSessionCookies,
  setSessionCookie,
} from './authenticate.ts';
import { either, newRecord } from './body.ts';
import { withBody, type Route } from './call.ts';
import type { Context } from './context.ts';
import { noContent, unstoredReply } from './replies.ts';

/**
 * A user's credentials. Any password is compared with the stored one, so the rules for new ones do
 * not apply.
 */
const credentialsFields = {
  email: { kind: 'text', min: 1, max: 254, example: 'ada@example.org' },
  password: { kind: 'password', writeOnly: true },
} as const satisfies Shape;

const refreshTokenFields = {
  refresh_token: { kind: 'text', min: 1, max: 200, writeOnly: true, example: 'x'.repeat(67) },
} as const satisfies Shape;

const logoutFields = {
  everywhere: { kind: 'boolean', optional: true, description: 'End all sessions of the user.' },
} as const satisfies Shape;

const credentials = newRecord({ shape: credentialsFields });
const refreshToken = newRecord({ shape: refreshTokenFields });
const logout = { ...newRecord({ shape: logoutFields }), optional: true };

export const signInRoutes = (context: Context): Route[] => [
  ...cookieRoutes(context),
  ...tokenRoutes(context),
];

function cookieRoutes({ store, sessions, signIn }: Context): Route[] {
  const writeUser = representationWriter(userFields);
  return [
    withBody({
      operationId: 'login',
      summary: 'Sign in and get a session cookie',
      titles: ['Credentials'],
      success: { content: 'StartedSession', headers: ['Set-Cookie'] },
      method: 'POST',
      path: '/login',
      access: 'public',
      pages: 'own',
      body: credentials,
      async handle({ request, body }) {
        const { session, user, secret } = await signIn.start(body, 'cookie', toClient(request));
        const expiresAt = new Date(sessionEndsAt(session)).toISOString();
        const text = `{"user":${writeUser(user)},"expiresAt":"${expiresAt}"}`;
        return unstoredReply(200, text, setSessionCookie(request, secret));
      },
    }),

    withBody({
      operationId: 'logout',
      summary: "End the cookie's session, or all sessions of its user",
      titles: ['Logout'],
      success: { status: 204, headers: ['Set-Cookie'] },
      method: 'POST',
      path: '/logout',
      access: 'public',
      pages: 'own',
      body: logout,
      async handle({ request, body }) {
        // A page on a neighbouring host may have added another user's cookie, which must not
        // prevent the sign-out.
        const live = readSessionCookies(request).flatMap((secret) => {
          const userId = sessions.findUserId(secret);
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
    }),
  ];
}

function tokenRoutes({ store, sessions, signIn, tokens }: Context): Route[] {
  return [
    withBody({
      operationId: 'createToken',
      summary: 'Get an access token and a refresh token for a password or for a refresh token',
      titles: ['Credentials', 'RefreshToken'],
      success: { status: 201, content: 'Tokens' },
      method: 'POST',
      path: '/tokens',
      access: 'public',
      pages: 'allowed',
      body: either(credentials, 'refresh_token', refreshToken),
      async handle({ request, body }) {
        const client = toClient(request);
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
    }),

    withBody({
      operationId: 'revokeToken',
      summary: 'End the session of a refresh token',
      titles: ['RefreshToken'],
      success: { status: 204 },
      method: 'POST',
      path: '/tokens/revoke',
      access: 'public',
      pages: 'allowed',
      body: refreshToken,
      async handle({ request, body }) {
        const { address, caller } = request;
        await store.write((tx) => sessions.revoke(tx, body.refresh_token, address), caller);
        return noContent();
      },
    }),
  ];
}

function toClient({ address, fields }: Request): Client {
  return { address, agent: fields.get('user-agent') ?? '' };
}
