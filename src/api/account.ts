import { requireUser } from '../auth/access.ts';
import { dashboardWriter } from '../accounts/dashboard.ts';
import { userFields } from '../accounts/user-fields.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { numberIn } from '../base/record-id.ts';
import { found } from '../collections/resource.ts';
import { parseQuery } from '../http/query.ts';
import { invalidParameter, onlyParameter } from '../lists/filters.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/record.ts';
import { parseId, type Call, type Route } from './call.ts';
import type { Context } from './context.ts';
import { noContent, notModified, shown, unstoredReply } from './replies.ts';
import { entityTag, isUnchanged } from './versions.ts';

export const askedUserQuery = {
  userId: {
    kind: 'integer',
    min: 1,
    optional: true,
    description: 'The id of another user. Administrators only.',
  },
} as const satisfies Shape;

export function accountRoutes({ store, records, sessions, registry }: Context): Route[] {
  const items = [...registry.values()].find(({ isBuiltIn }) => isBuiltIn);
  const writeDashboard = dashboardWriter(records, sessions, items);
  const writeUser = representationWriter(userFields);
  return [
    {
      operationId: 'me',
      summary: 'Read your own user record',
      success: { content: 'User', headers: ['ETag', 'Content-Location'] },
      method: 'GET',
      path: '/me',
      access: 'user',
      conditional: true,
      handle({ request, principal }) {
        const { userId } = requireUser(principal);
        if (principal.kind === 'local') throw nobodySignsIn;
        const user = found(records.users.get(userId));
        const tag = entityTag(store.epoch, user.revision);
        const location = ['Content-Location', `${request.basePath}/users/${userId}`];
        if (isUnchanged(request, tag)) return notModified(tag, location);
        return shown(200, tag, writeUser(user), location);
      },
    },
    {
      operationId: 'dashboard',
      summary: 'Read an overview for the signed-in user',
      success: { content: 'Dashboard' },
      method: 'GET',
      path: '/dashboard',
      access: 'session',
      handle({ principal }) {
        invariant(principal.kind === 'session', 'the route requires a session');
        return unstoredReply(200, writeDashboard(principal));
      },
    },
    {
      operationId: 'listSessions',
      summary: 'List your sessions; administrators may list those of any user',
      success: { content: 'Sessions' },
      method: 'GET',
      path: '/sessions',
      access: 'user',
      refusesKeys: true,
      query: askedUserQuery,
      handle(call) {
        const { principal } = call;
        const current = principal.kind === 'session' ? principal.sessionId : undefined;
        const listed = sessions.list(askedUser(call)).map((each) => sessions.write(each, current));
        return unstoredReply(200, `[${listed.join(',')}]`);
      },
    },
    {
      operationId: 'removeSession',
      summary: 'Revoke one of your sessions, or as an administrator any session',
      success: { status: 204 },
      method: 'DELETE',
      path: '/sessions/{id}',
      access: 'user',
      refusesKeys: true,
      async handle({ request, principal, id }) {
        await store.write(
          (tx) => sessions.end(tx, principal, numberIn(id), request.address),
          request.caller,
        );
        return noContent();
      },
    },
  ];
}

/**
 * Returns the user whose credentials to list: the caller, or any user for administrators.
 * @throws CairnError `invalid_query`, `insufficient_scope`
 */
export function askedUser({ principal, query }: Call): number {
  const { userId, role } = requireUser(principal);
  const value = onlyParameter(parseQuery(query), 'userId');
  if (value === undefined) return userId;
  const asked = parseId(value);
  if (asked === 0) throw invalidParameter('userId', 'must be a positive whole number');
  if (asked === userId || role === 'admin') return asked;
  throw new CairnError(
    'insufficient_scope',
    'Cannot list credentials of another user: the role "admin" is required',
  );
}

const nobodySignsIn = new CairnError(
  'not_found',
  'Cannot find your user record: without authentication, nobody signs in',
);
