import { requireUser } from '../../auth/access.ts';
import type { Tokens } from '../../auth/tokens.ts';
import type { AccountRecords } from '../../accounts/records.ts';
import type { Sessions } from '../../accounts/sessions.ts';
import type { Clock } from '../../base/system.ts';
import type { Registry } from '../../collections/registry.ts';
import { parseQuery } from '../../http/query.ts';
import { onlyParameter } from '../../lists/filters.ts';
import type { Store } from '../../store/store.ts';
import { ChangeFeed } from './change-feed.ts';
import { bearerToken } from '../../api/authenticate.ts';
import { bind, type Call, type Endpoint, type Route } from '../../api/call.ts';
import { eventStream } from '../../api/replies.ts';
import { usersCollection } from '../../api/routes.ts';

/** What the change feed needs of the app. */
interface FeedContext {
  readonly clock: Clock;
  readonly tokens: Tokens;
  readonly data: {
    readonly store: Store;
    readonly records: AccountRecords;
    readonly sessions: Sessions;
    readonly registry: Registry;
    readonly hasUsers: boolean;
  };
}

export const routes = {
  changes: {
    operationId: 'changes',
    method: 'GET',
    path: '/changes',
    access: 'user',
    query: 'read',
  },
} as const satisfies { readonly [operation: string]: Route };

/** The feed of the changes of all collections, at `/changes`. */
export function createFeature(context: FeedContext) {
  const { clock, data } = context;
  const users = data.hasUsers ? [usersCollection({})] : [];
  const collections = [...users, ...data.registry.values()];
  const feed = new ChangeFeed(data.store, clock, collections);
  return {
    endpoints: (): Endpoint[] => feedEndpoints(feed, context),
    load: () => feed.load,
    places: feed.places,
    close: () => feed.close(),
  };
}

function feedEndpoints(feed: ChangeFeed, context: FeedContext): Endpoint[] {
  return bind(routes, {
    changes(call) {
      const { request, principal } = call;
      const { caller, signal, fields } = request;
      const query = new Map(parseQuery(call.query));
      const collections = query.get('collection')?.join().split(',');
      query.delete('collection');
      const asked = onlyParameter(query, 'since');
      const since = fields.get('last-event-id') ?? asked;
      const isAdmitted = admission(call, context);
      const follower = { principal, caller, signal, collections, since, isAdmitted };
      return eventStream(feed.follow(follower));
    },
  });
}

/**
 * Returns a check of whether the caller is still allowed to follow the changes. It does
 * not count as a use of the session.
 */
function admission(
  { request, principal }: Call,
  { tokens, data: { records, sessions } }: FeedContext,
): () => boolean {
  const { userId, role } = requireUser(principal);
  const authorization = request.fields.get('authorization') ?? '';
  return () => {
    if (principal.kind === 'local') return true;
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
