import type { SessionHolder } from '../auth/principal.ts';
import type { JsonObject } from '../base/json.ts';
import type { CollectionResource } from './collection.ts';
import type { Sessions } from './sessions.ts';
import type { Users } from './users.ts';

const recentMax = 5;

/** What a person sees first: who they are, how much there is, what came last, and their session. */
export function dashboard(
  principal: SessionHolder,
  users: Users,
  sessions: Sessions,
  items: CollectionResource,
): JsonObject {
  return {
    user: users.present(users.read(principal.userId)),
    counts: {
      items: items.records.size,
      ...(principal.role === 'admin' && { users: users.records.size }),
      sessions: sessions.of(principal.userId).length,
    },
    recentItems: items.records.latest(recentMax).map((item) => items.present(item)),
    session: sessions.present(sessions.read(principal.sessionId), principal.sessionId),
  };
}
