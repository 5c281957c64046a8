import type { JsonObject } from '../base/json.ts';
import { items } from '../resources/collection.ts';
import { userFields } from '../resources/users.ts';
import { boolean, choice, id, integer, password, text, timestamp } from '../schema/field.ts';
import { optional, readOnly, writeOnly } from '../schema/field.ts';
import { objectSchema, resourceSchema } from '../schema/json-schema.ts';

/** The shapes of what is exchanged beside records: sign-in, tokens, sessions, the dashboard. */

/** What a person proves who they are with. Any password is let through to the comparison, so no rule shows here. */
export const credentialsFields = {
  email: text({ min: 1, max: 254, example: 'ada@example.org' }),
  password: password(),
};

/** What a program exchanges for its next token, and what ends its session. */
export const revocationFields = {
  refresh_token: writeOnly(text({ min: 1, max: 200, example: 'x'.repeat(67) })),
};

export const logoutFields = { everywhere: optional(boolean({ description: 'End all sessions of the user.' })) };

export const userSchema: JsonObject = resourceSchema('User', userFields);

export const sessionSchema: JsonObject = resourceSchema('Session', {
  id: id(),
  userId: readOnly(integer({ min: 1 })),
  kind: readOnly(choice(['cookie', 'refresh'], { description: 'A browser, or a program with a refresh token.' })),
  createdAt: readOnly(timestamp()),
  lastSeenAt: readOnly(timestamp()),
  expiresAt: readOnly(timestamp()),
  address: readOnly(text({ example: '192.0.2.1' })),
  agent: readOnly(text({ example: 'curl/8.5.0' })),
  current: readOnly(boolean({ description: 'Whether this request came with it.' })),
});

const count: JsonObject = { type: 'integer', minimum: 0 };

export const startedSessionSchema = objectSchema('StartedSession', {
  user: userSchema,
  expiresAt: { type: 'string', format: 'date-time' },
});

export const dashboardSchema = objectSchema('Dashboard', {
  user: userSchema,
  counts: objectSchema('Counts', { items: count, users: count, sessions: count }, ['users']),
  recentItems: { type: 'array', items: resourceSchema('Item', items.fields) },
  session: sessionSchema,
});

/** RFC 6749 §5.1. */
export const tokenSchema = objectSchema('Tokens', {
  access_token: { type: 'string' },
  token_type: { const: 'Bearer' },
  refresh_token: { type: 'string' },
  expires_in: { type: 'integer', minimum: 1, description: 'Seconds until the access token expires.' },
});

export const healthSchema = objectSchema('Health', { status: { enum: ['live', 'ready'], examples: ['ready'] } });
