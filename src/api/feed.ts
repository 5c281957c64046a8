import { localAdministrator, requireUser } from '../auth/access.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { AccountRecords } from '../accounts/records.ts';
import type { Sessions } from '../accounts/sessions.ts';
import type { ChangeFeed } from '../collections/change-feed.ts';
import { parseQuery } from '../http/query.ts';
import { onlyParameter } from '../lists/filters.ts';
import { bearerToken } from './authenticate.ts';
import { bind, type Call, type Endpoint } from './call.ts';
import { eventStream } from './replies.ts';
import { feedRoutes } from './routes.ts';

/** What the change feed needs of the app. */
export interface FeedServices {
  readonly records: AccountRecords;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly feed: ChangeFeed;
}

export function feedEndpoints(services: FeedServices): Endpoint[] {
  return bind(feedRoutes, {
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
  });
}

/**
 * Returns a check of whether the caller is still allowed to follow the changes. It does
 * not count as a use of the session.
 */
function admission(
  { request, principal }: Call,
  { records, sessions, tokens }: FeedServices,
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
