import type { SessionHolder } from '../auth/access.ts';
import { representationWriter } from '../schema/representation.ts';
import { found, type CollectionResource } from './collection.ts';
import type { Sessions } from './sessions.ts';
import { userFields, type Users } from './users.ts';

const recentMax = 5;

/** Writes what a person sees first, as JSON: who they are, how much there is, what came last, and their session. */
export function dashboardWriter(users: Users, sessions: Sessions, items: CollectionResource) {
  const writeUser = representationWriter(userFields);
  const writeItem = representationWriter(items.declaration.fields);
  let recent = { revision: NaN, json: '' };
  return ({ userId, role, sessionId }: SessionHolder): string => {
    const { revision } = items.records;
    if (revision !== recent.revision) {
      recent = { revision, json: items.records.latest(recentMax).map(writeItem).join(',') };
    }
    const user = writeUser(found(users.records.get(userId)));
    const counts = JSON.stringify({
      items: items.records.size,
      ...(role === 'admin' && { users: users.records.size }),
      sessions: sessions.of(userId).length,
    });
    const session = sessions.write(sessions.foundLive(sessions.records.get(sessionId)), sessionId);
    return `{"user":${user},"counts":${counts},"recentItems":[${recent.json}],"session":${session}}`;
  };
}
