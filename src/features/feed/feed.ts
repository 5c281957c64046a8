import type { Shape } from '../../schema/field.ts';
import { requireUser } from '../../auth/access.ts';
import { parseQuery } from '../../http/query.ts';
import { onlyParameter } from '../../lists/filters.ts';
import { ChangeFeed } from './change-feed.ts';
import { bearerToken } from '../../api/authenticate.ts';
import type { Call, Route } from '../../api/call.ts';
import type { Context } from '../../api/context.ts';
import { eventStream } from '../../api/replies.ts';
import { usersCollection } from '../../api/routes.ts';

const followedQuery = {
  since: {
    kind: 'text',
    optional: true,
    example: '9f86d081-42',
    description: 'The id of the last event that you received. `Last-Event-ID` takes precedence.',
  },
  collection: {
    kind: 'list',
    of: { kind: 'text', example: 'items' },
    optional: true,
    description: 'Only changes of these collections. Without it, of all that you may list.',
  },
} as const satisfies Shape;

/** Serves the changes of all collections at `/changes`. */
export function createFeature(context: Context) {
  const { clock, store, registry, hasUsers } = context;
  const collections = [...(hasUsers ? [usersCollection({})] : []), ...registry.values()];
  const feed = new ChangeFeed(store, clock, collections);
  return {
    routes: (): Route[] => [feedRoute(feed, context)],
    load: () => feed.load,
    places: feed.places,
    close: () => feed.close(),
  };
}

function feedRoute(feed: ChangeFeed, context: Context): Route {
  return {
    operationId: 'changes',
    summary: 'Follow the changes of all collections that you may list',
    tag: 'server',
    success: { content: 'Text', mediaType: 'text/event-stream', headers: ['X-Accel-Buffering'] },
    method: 'GET',
    path: '/changes',
    access: 'user',
    query: followedQuery,
    handle(call) {
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
  };
}

/**
 * Returns a check that the caller may still follow the changes. It does not count as a use of the
 * session.
 */
function admission(
  { request, principal }: Call,
  { tokens, records, sessions }: Context,
): () => boolean {
  const { userId, role } = requireUser(principal);
  const authorization = request.fields.get('authorization') ?? '';
  return () => {
    if (principal.kind === 'local') return true;
    // The role in a token may be older than the token's first use here.
    if (records.users.get(userId)?.role !== role) return false;
    if (principal.kind === 'session') return sessions.isOpen(principal.sessionId);
    try {
      return tokens.verify(bearerToken(authorization)).userId === userId;
    } catch {
      return false;
    }
  };
}
