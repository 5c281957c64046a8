import type { Route, RoutedCollection, Operation } from '../../api/call.ts';
import type { JsonObject } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { capitalized } from '../../collections/declaration.ts';
import { fieldSchema, isRequired, manySchema, resourceSchema } from './json-schema.ts';
import { describeList, describeRecord, type QueryParameter } from './parameters.ts';
import {
  apiKeySchema,
  dashboardSchema,
  healthSchema,
  idSchema,
  newApiKeySchema,
  sessionSchema,
  invitationSchema,
  startedSessionSchema,
  statusSchema,
  tokensSchema,
  userSchema,
} from './schemas.ts';

/** What the OpenAPI document says of a route beyond its row. */
interface Description {
  readonly summary: string;
  /** The titles of the shapes of its body. */
  readonly titles?: readonly string[];
  readonly parameters?: readonly QueryParameter[];
  readonly reply: ReplyDescription;
}

/** The reply of a route that succeeds. */
interface ReplyDescription {
  readonly status: 200 | 201 | 204;
  readonly description: string;
  /** The JSON Schema of the content. Absent: there is no content. */
  readonly schema?: JsonObject;
  /** The media type of the content. Absent: JSON. */
  readonly mediaType?: string;
  /** Fields that this reply has and others do not, such as `Location`. */
  readonly headers?: readonly string[];
}

/** A row of the route table with its description. */
export interface DescribedRoute extends Route, Description {
  readonly operationId: string;
  readonly tag: string;
}

/** Returns the routes that the document has, each with its description. */
export function describe(routes: readonly Route[], dialect?: string): DescribedRoute[] {
  const collections = [...new Set(routes.flatMap(({ of }) => of?.collection ?? []))];
  const hasItems = collections.some(({ isBuiltIn }) => isBuiltIn);
  const services = new Map<string, Description>(
    Object.entries({ ...signInDescriptions(hasItems), ...serverDescriptions }),
  );
  return routes.flatMap((route) => {
    const { operationId, of, own } = route;
    if (operationId === undefined) return [];
    if (of !== undefined) {
      const { collection, operation } = of;
      const description =
        operation === 'remove' && dialect !== undefined
          ? removalOf(collection)
          : operations[operation](collection);
      return [{ ...route, operationId, tag: collection.name, ...description }];
    }
    if (own !== undefined) return [{ ...route, operationId, ...describeOwn(route, own) }];
    const tag = operationId in serverDescriptions ? 'server' : 'sign-in';
    const description = services.get(operationId);
    return description === undefined ? [] : [{ ...route, operationId, tag, ...description }];
  });
}

/** Describes a route of a program. */
function describeOwn(
  { operationId = '', path, method }: Route,
  { summary, query = {}, reply, isKept }: NonNullable<Route['own']>,
): Description & { readonly tag: string } {
  const title = capitalized(operationId);
  const [, tag = ''] = path.split('/');
  return {
    tag,
    summary,
    titles: [`${title}Body`],
    parameters: Object.entries(query).map(([name, field]) => ({
      name,
      required: isRequired(field, 'create'),
      description: '',
      schema: fieldSchema(field, 'create'),
    })),
    reply: {
      status: 200,
      description: 'The result.',
      schema: reply === undefined ? {} : resourceSchema(`${title}Reply`, reply),
      ...(isKept && method === 'POST' && { headers: ['Idempotency-Replayed'] }),
    },
  };
}

const ofUser = [
  { name: 'userId', description: 'The id of another user. Administrators only.', schema: idSchema },
];

/** Describes signing in and the caller's own account, of a server with or without items. */
// prettier-ignore
const signInDescriptions = (hasItems: boolean): { readonly [id: string]: Description } => ({
  login: {
    summary: 'Sign in and get a session cookie',
    titles: ['Credentials'],
    reply: content(200, 'You are signed in.', startedSessionSchema, 'Set-Cookie'),
  },
  logout: {
    summary: "End the cookie's session, or all sessions of its user",
    titles: ['Logout'],
    reply: { status: 204, description: 'You are signed out.', headers: ['Set-Cookie'] },
  },
  createToken: {
    summary: 'Get an access token and a refresh token for a password or for a refresh token',
    titles: ['Credentials', 'RefreshToken'],
    reply: content(201, 'The new tokens (RFC 6749 §5.1).', tokensSchema),
  },
  revokeToken: {
    summary: 'End the session of a refresh token',
    titles: ['RefreshToken'],
    reply: { status: 204, description: 'The token is not valid any more, if it ever was (RFC 7009).' },
  },
  me: {
    summary: 'Read your own user record',
    reply: content(200, 'Your user record.', userSchema, 'ETag', 'Content-Location'),
  },
  dashboard: {
    summary: 'Read an overview for the signed-in user',
    reply: content(
      200, `Your record, counts, ${hasItems ? 'the latest items, ' : ''}your session.`, dashboardSchema(hasItems),
    ),
  },
  listSessions: {
    summary: 'List your sessions, or as an administrator those of any user',
    parameters: ofUser,
    reply: content(200, 'The sessions, oldest first.', { type: 'array', items: sessionSchema }),
  },
  removeSession: {
    summary: 'End one of your sessions, or as an administrator any session',
    reply: { status: 204, description: 'The session has ended.' },
  },
  inviteUser: {
    summary: 'Invite a user who has no password to choose one',
    reply: content(201, 'The path of the page for it, which is shown once.', invitationSchema),
  },
  acceptInvitation: {
    summary: 'Choose your password, by an invitation',
    titles: ['NewPassword'],
    reply: { status: 204, description: 'The password is set, and the invitation has ended.' },
  },
  createApiKey: {
    summary: 'Make an API key, for a script or a device',
    titles: ['NewApiKey'],
    reply: content(201, 'The new API key, which is shown once.', newApiKeySchema),
  },
  listApiKeys: {
    summary: 'List your API keys, or as an administrator those of any user',
    parameters: ofUser,
    reply: content(200, 'The API keys, oldest first.', { type: 'array', items: apiKeySchema }),
  },
  removeApiKey: {
    summary: 'End one of your API keys, or as an administrator any',
    reply: { status: 204, description: 'The API key has ended.' },
  },
});

/** Describes the server itself, and the changes of all collections. */
// prettier-ignore
const serverDescriptions: { readonly [id: string]: Description } = {
  changes: {
    summary: 'Follow the changes of all collections that you may list',
    parameters: [
      {
        name: 'since',
        description: 'The id of the last event that you received. `Last-Event-ID` takes precedence.',
        schema: { type: 'string' },
      },
      {
        name: 'collection',
        description: 'Only changes of these collections. Without it, of all that you may list.',
        schema: { type: 'array', items: { type: 'string' }, minItems: 1 },
      },
    ],
    reply: {
      status: 200,
      description: 'Server-sent events: `created`, `replaced`, `removed`, or `reset`: read the lists again.',
      schema: { type: 'string' },
      mediaType: 'text/event-stream',
      headers: ['X-Accel-Buffering'],
    },
  },
  describe: {
    summary: 'Read this OpenAPI document',
    reply: content(200, 'This document.', { type: 'object' }, 'ETag'),
  },
  live: {
    summary: 'Check that the process is running',
    reply: content(200, 'The process is running.', healthSchema),
  },
  status: {
    summary: 'Read the state of the server and its store',
    reply: content(200, 'The state of the server.', statusSchema),
  },
  metrics: {
    summary: 'Read the figures of the server, for Prometheus',
    reply: {
      status: 200,
      description: 'The figures, in the text format 0.0.4 of Prometheus.',
      schema: { type: 'string' },
      mediaType: 'text/plain',
    },
  },
  ready: {
    summary: 'Check that the server is ready for requests',
    reply: content(200, 'The server is ready.', healthSchema),
  },
};

const listHeaders = ['ETag', 'Link', 'X-Total-Count', 'Preference-Applied'];
const newHeaders = ['ETag', 'Location', 'Idempotency-Replayed'];

/** Describes each operation on a collection. */
// prettier-ignore
const operations: { readonly [operation in Operation]: (of: RoutedCollection) => Description } = {
  list: (of) => ({
    summary: `List ${of.name}`,
    parameters: describeList(of),
    reply: content(200, `The ${of.name}.`, { type: 'array', items: readSchemaOf(of) }, ...listHeaders),
  }),
  create: (of) => ({
    summary: `Create a new ${of.singular}`,
    titles: [`New${capitalized(of.singular)}`],
    reply: content(201, `The new ${of.singular}.`, recordSchema(of), ...newHeaders),
  }),
  createMany: (of) => ({
    summary: `Create many ${of.name} at once, all or none`,
    titles: [`New${capitalized(of.singular)}`],
    reply: content(201, `The new ${of.name}, in order.`, manySchema(recordSchema(of)), 'Idempotency-Replayed'),
  }),
  read: (of) => ({
    summary: `Read the ${oneOf(of)}`,
    parameters: of.isSingle ? [] : describeRecord(of),
    reply: content(200, `The ${of.singular}.`, readSchemaOf(of), 'ETag'),
  }),
  replace: (of) => ({
    summary: `Replace the ${oneOf(of)}`,
    titles: [`${capitalized(of.singular)}Replacement`],
    reply: changeReply(of),
  }),
  patch: (of) => ({
    summary: `Change some fields of the ${oneOf(of)}`,
    titles: [`${capitalized(of.singular)}Patch`],
    reply: changeReply(of),
  }),
  remove: (of) => ({
    summary: `Delete the ${of.singular} with this id`,
    reply: { status: 204, description: `The ${of.singular} was deleted.` },
  }),
};

/** Describes the removal of a record as the dialect answers it. */
const removalOf = (of: RoutedCollection): Description => ({
  ...operations.remove(of),
  reply: content(200, `The ${of.singular} was deleted.`, { type: 'object' }),
});

/** One record, or a single resource. */
const oneOf = ({ name, singular, isSingle }: RoutedCollection): string =>
  isSingle ? name : `${singular} with this id`;

function content(
  status: 200 | 201,
  description: string,
  schema: JsonObject,
  ...headers: string[]
): ReplyDescription {
  return { status, description, schema, headers };
}

type Described = Pick<RoutedCollection, 'singular' | 'fields' | 'display' | 'isUsers'>;

/** Returns the schema of a record, with what people call it, and what is embedded in it. */
const recordSchema = (
  { singular, fields, display, isUsers }: Described,
  title = capitalized(singular),
  embedded: JsonObject = {},
): JsonObject => ({
  ...(isUsers ? userSchema : resourceSchema(title, fields, 'representation', embedded)),
  ...(display !== undefined && { 'x-display': display }),
});

/** Describes the reply to a change. One of users may end the caller's session, and begin another. */
function changeReply(collection: RoutedCollection): ReplyDescription {
  const { singular, isUsers } = collection;
  const more = isUsers ? ['Set-Cookie'] : [];
  return content(200, `The changed ${singular}.`, recordSchema(collection), 'ETag', ...more);
}

/** Returns the schema of a record as it is read, in which others may be embedded. */
function readSchemaOf(collection: RoutedCollection): JsonObject {
  const { singular, embeddables } = collection;
  const title = capitalized(singular) + (embeddables.length > 0 ? 'WithEmbedded' : '');
  const members = embeddables.map(({ member, of, kind }) => {
    const record = of.isUsers ? resourceSchema('UserName', of.fields) : recordSchema(of);
    const many = { type: 'array', items: record, maxItems: limits.embeddedMax };
    return [member, kind === 'one' ? record : many];
  });
  return recordSchema(collection, title, Object.fromEntries(members));
}
