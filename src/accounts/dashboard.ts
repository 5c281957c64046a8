import type { SessionPrincipal } from '../auth/access.ts';
import { representationWriter } from '../schema/record.ts';
import type { Declared } from '../collections/declared.ts';
import { found } from '../collections/resource.ts';
import type { AccountRecords } from './records.ts';
import type { Sessions } from './sessions.ts';
import { userFields } from './user-fields.ts';

const recentMax = 5;

/**
 * Returns a writer of the dashboard's JSON. Without `items`, it leaves out the count and the recent
 * items.
 */
export function dashboardWriter(
  records: AccountRecords,
  sessions: Sessions,
  items: Declared | undefined,
): (principal: SessionPrincipal) => string {
  const writeUser = representationWriter(userFields);
  const recentItems = items === undefined ? () => '' : recentWriter(items);
  return (principal) => {
    const { userId, role, sessionId } = principal;
    const user = writeUser(found(records.users.get(userId)));
    const itemCount = items === undefined ? '' : `"items":${items.records.size},`;
    const userCount = role === 'admin' ? `"users":${records.users.size},` : '';
    const counts = `{${itemCount}${userCount}"sessions":${sessions.list(userId).length}}`;
    const session = sessions.write(found(records.sessions.get(sessionId)), sessionId);
    return `{"user":${user},"counts":${counts},${recentItems()}"session":${session}}`;
  };
}

/**
 * Returns a function that writes the newest items as a JSON member, and keeps the text until the
 * revision changes.
 */
function recentWriter({ fields, records }: Declared): () => string {
  const write = representationWriter(fields);
  let [revision, json] = [NaN, ''];
  return () => {
    if (revision !== records.revision) {
      revision = records.revision;
      json = `"recentItems":[${records.latest(recentMax).map(write).join(',')}],`;
    }
    return json;
  };
}
