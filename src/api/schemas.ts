import type { JsonObject } from '../base/json.ts';
import { items } from '../resources/collection.ts';
import { userFields } from '../resources/users.ts';
import { boolean, choice, id, integer, password, text, timestamp, type Shape } from '../schema/field.ts';
import { optional, readOnly, writeOnly } from '../schema/field.ts';
import { jsonSchema } from '../schema/json-schema.ts';

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

export const userSchema: JsonObject = recordSchema('User', userFields);

export const sessionSchema: JsonObject = recordSchema('Session', {
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

/** An object with exactly these members, those named in `optionalMembers` perhaps absent. */
export function objectSchema(
  title: string,
  properties: { readonly [name: string]: JsonObject },
  optionalMembers: readonly string[] = [],
): JsonObject {
  const required = Object.keys(properties).filter((name) => !optionalMembers.includes(name));
  return { title, type: 'object', properties, required, additionalProperties: false };
}

export function arraySchema(items: JsonObject): JsonObject {
  return { type: 'array', items };
}

export function recordSchema(title: string, shape: Shape): JsonObject {
  return { title, ...jsonSchema(shape, 'representation') };
}

/** A record, whole or under `fields=`. */
export function selectableSchema(title: string, shape: Shape): JsonObject {
  return { anyOf: [recordSchema(title, shape), { title: `${title}Selection`, ...jsonSchema(shape, 'selection') }] };
}

const count: JsonObject = { type: 'integer', minimum: 0 };
const dateTime: JsonObject = { type: 'string', format: 'date-time' };

export const startedSessionSchema = objectSchema('StartedSession', { user: userSchema, expiresAt: dateTime });

export const dashboardSchema = objectSchema('Dashboard', {
  user: userSchema,
  counts: objectSchema('Counts', { items: count, users: count, sessions: count }, ['users']),
  recentItems: arraySchema(recordSchema('Item', items.fields)),
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
