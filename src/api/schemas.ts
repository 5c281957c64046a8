import type { JsonObject } from '../base/json.ts';
import { items } from '../collections/items.ts';
import { sessionFields } from '../accounts/records.ts';
import { userFields } from '../accounts/user-fields.ts';
import { boolean, optional, password, text, writeOnly } from '../schema/field.ts';
import { objectSchema, resourceSchema } from '../schema/json-schema.ts';

/** The shapes of what is exchanged beside records: credentials, tokens, sessions, the dashboard. */

/** What a person signs in with. Any password is compared with the stored one, so none of its rules shows here. */
export const credentialsFields = {
  email: text({ min: 1, max: 254, example: 'ada@example.org' }),
  password: password(),
};

/** What a program exchanges for its next tokens, or ends its session with. */
export const refreshTokenFields = {
  refresh_token: writeOnly(text({ min: 1, max: 200, example: 'x'.repeat(67) })),
};

export const logoutFields = { everywhere: optional(boolean({ description: 'End all sessions of the user.' })) };

export const userSchema: JsonObject = resourceSchema('User', userFields);

export const sessionSchema: JsonObject = resourceSchema('Session', sessionFields);

const count: JsonObject = { type: 'integer', minimum: 0 };

export const startedSessionSchema = objectSchema('StartedSession', {
  user: userSchema,
  expiresAt: { type: 'string', format: 'date-time' },
});

/** What a person sees first, with or without a collection of items. */
export function dashboardSchema(hasItems: boolean): JsonObject {
  const counts = { ...(hasItems && { items: count }), users: count, sessions: count };
  return objectSchema('Dashboard', {
    user: userSchema,
    counts: objectSchema('Counts', counts, ['users']),
    ...(hasItems && { recentItems: { type: 'array', items: resourceSchema('Item', items.fields) } }),
    session: sessionSchema,
  });
}

/** The dashboard of a server without items. */
export const leanDashboard = {
  status: 200,
  description: 'The user, some counts and the current session.',
  schema: dashboardSchema(false),
} as const;

/** RFC 6749 §5.1. */
export const tokensSchema = objectSchema('Tokens', {
  access_token: { type: 'string' },
  token_type: { type: 'string', const: 'Bearer' },
  refresh_token: { type: 'string' },
  expires_in: { type: 'integer', minimum: 1, description: 'Seconds until the access token expires.' },
});

export const statusSchema = objectSchema('Status', {
  version: { type: 'string' },
  startedAt: { type: 'string', format: 'date-time' },
  state: {
    type: 'string',
    enum: ['writable', 'full', 'failed'],
    description: '`full`: the disk has no room, and only removals are taken. `failed`: nothing is.',
  },
  records: { ...count, description: 'The records of all collections.' },
  journalBytes: count,
  checkpointedAt: { type: 'string', format: 'date-time', description: 'When snapshots of everything were written.' },
  freeBytes: { ...count, description: 'Free space on the disk of the data.' },
}, ['checkpointedAt', 'freeBytes']);

export const healthSchema = objectSchema('Health', { status: { type: 'string', enum: ['live', 'ready'] } });

/** `items` → `Items`, `spare-parts` → `SpareParts`. */
export function capitalized(name: string): string {
  return name.replaceAll(/(?:^|-)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
