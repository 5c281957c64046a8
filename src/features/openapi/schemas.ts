import type { ContentTitle } from '../../api/call.ts';
import type { JsonObject } from '../../base/json.ts';
import { items } from '../../collections/items.ts';
import type { IdKind } from '../../schema/field.ts';
import { apiKeyFields, sessionFields } from '../../accounts/records.ts';
import { userFields } from '../../accounts/user-fields.ts';
import { objectSchema, resourceSchema } from './json-schema.ts';

/** Schemas of responses other than records: tokens, sessions, the dashboard. */

export const userSchema: JsonObject = resourceSchema('User', {
  ...userFields,
  role: {
    kind: 'text',
    example: 'member',
    description: 'A declared role, or one that was declared when it was given.',
  },
});

const sessionSchema: JsonObject = resourceSchema('Session', sessionFields);

const idSchema: JsonObject = {
  type: 'integer',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
};

/** By the kind of id that a caller may give. */
export const idSchemas = {
  made: idSchema,
  integer: {
    type: 'integer',
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  },
  text: { type: 'string', minLength: 1 },
  any: { anyOf: [{ type: 'string', minLength: 1 }, { type: 'number' }] },
} satisfies { readonly [ids in IdKind | 'made']: JsonObject };

const count: JsonObject = { type: 'integer', minimum: 0 };

function dashboardSchema(hasItems: boolean): JsonObject {
  const counts = { ...(hasItems && { items: count }), users: count, sessions: count };
  return objectSchema('Dashboard', {
    user: userSchema,
    counts: objectSchema('Counts', counts, ['users']),
    ...(hasItems && {
      recentItems: { type: 'array', items: resourceSchema('Item', items.fields) },
    }),
    session: sessionSchema,
  });
}

const minuteSchema = objectSchema('Minute', {
  at: { type: 'string', format: 'date-time' },
  requests: count,
  p99Ms: { type: 'number', description: '99 % of the requests took no longer.' },
  writes: { ...count, description: 'Requests that changed something.' },
  failedSignIns: count,
  records: {
    ...count,
    description: 'The number of records of all kinds at the end of the minute.',
  },
});

const statusSchema = objectSchema(
  'Status',
  {
    version: { type: 'string' },
    startedAt: { type: 'string', format: 'date-time' },
    state: {
      type: 'string',
      enum: ['writable', 'full', 'unavailable', 'failed'],
      description:
        '`full`: there is no room, and only deletions are accepted. `unavailable`: the log does ' +
        'not answer, so no writes are accepted, and records may be old. `failed`: no writes are accepted.',
    },
    records: {
      ...count,
      description: 'The number of records of all kinds: also sessions and idempotency keys.',
    },
    memoryBytes: { ...count, description: 'The memory that records take, as it is counted.' },
    memoryMaxBytes: { ...count, description: 'The most memory that they may take.' },
    refusals: {
      type: 'object',
      additionalProperties: count,
      description: 'Requests refused or cut off for lack of room, by cause.',
    },
    journalBytes: { ...count, description: 'The size of the journal.' },
    checkpointedAt: {
      type: 'string',
      format: 'date-time',
      description: 'The time of the last checkpoint.',
    },
    freeBytes: { ...count, description: 'Free space on the disk that holds the data.' },
    diskBytes: { ...count, description: 'The size of that disk.' },
    heapUsedBytes: { ...count, description: 'Memory used by JavaScript objects.' },
    heapMaxBytes: { ...count, description: 'The most memory that they may use.' },
    minutes: {
      type: 'array',
      items: minuteSchema,
      maxItems: 60,
      description: 'The last hour, oldest first. The last minute is the current one.',
    },
  },
  ['checkpointedAt', 'freeBytes', 'diskBytes', 'minutes'],
);

export const contentSchemas = (
  hasItems: boolean,
): { readonly [title in ContentTitle]: JsonObject } => ({
  ApiKeys: { type: 'array', items: resourceSchema('ApiKey', apiKeyFields) },
  Dashboard: dashboardSchema(hasItems),
  Document: { type: 'object' },
  Health: objectSchema(
    'Health',
    {
      status: { type: 'string', enum: ['live', 'ready'] },
      writes: {
        type: 'string',
        enum: ['full'],
        description: 'The memory or the disk is full, so writes that grow are refused.',
      },
    },
    ['writes'],
  ),
  MadeApiKey: resourceSchema('MadeApiKey', {
    ...apiKeyFields,
    key: { kind: 'text', example: `cairn_${'x'.repeat(43)}` },
  }),
  NewInvitation: objectSchema('NewInvitation', {
    path: {
      type: 'string',
      description: 'A path of this server, without its origin. Its fragment is the secret.',
    },
  }),
  Sessions: { type: 'array', items: sessionSchema },
  StartedSession: objectSchema('StartedSession', {
    user: userSchema,
    expiresAt: { type: 'string', format: 'date-time' },
  }),
  Status: statusSchema,
  Text: { type: 'string' },
  Tokens: objectSchema('Tokens', {
    access_token: { type: 'string' },
    token_type: { type: 'string', const: 'Bearer' },
    refresh_token: { type: 'string' },
    expires_in: {
      type: 'integer',
      minimum: 1,
      description: 'Seconds until the access token expires.',
    },
  }),
  User: userSchema,
});
