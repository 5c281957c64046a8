import {
  dependsOnOthers,
  shapeTagOf,
  type CollectionDeclaration,
} from '../collections/declaration.ts';
import { items } from '../collections/items.ts';
import type { EntryDraft, NewEntry } from '../collections/resource.ts';
import { listParameters, recordParameters } from '../lists/query.ts';
import { newUserRules, userChangeRules, userFields } from '../accounts/user-fields.ts';
import type { NewUser, UserDraft } from '../accounts/users.ts';
import { manySchema, resourceSchema } from '../schema/json-schema.ts';
import { bodiesFor, either, manyOf, newRecord } from './body.ts';
import { embeddablesOf, readSchemaOf, subjectOf } from './embedding.ts';
import { content, idSchema, type Route, type RoutedCollection } from './call.ts';
import {
  capitalized,
  credentialsFields,
  dashboardSchema,
  feedParameters,
  healthSchema,
  logoutFields,
  refreshTokenFields,
  sessionSchema,
  startedSessionSchema,
  statusSchema,
  tokensSchema,
  userSchema,
} from './schemas.ts';

/** The route table: what can be requested, by which callers, and what is returned. */

const credentials = newRecord('Credentials', { shape: credentialsFields });
const refreshToken = newRecord('RefreshToken', { shape: refreshTokenFields });

/** The options of an installation that change the route table. */
export interface RouteOptions {
  readonly registration?: 'open' | 'closed' | undefined;
  readonly requireIfMatch?: boolean | undefined;
  readonly passwordLengthMin?: number | undefined;
}

/** Signing in and out. */
// prettier-ignore
export const signInRoutes = {
  login: {
    method: 'POST', path: '/login', access: 'public', pages: 'own',
    summary: 'Sign in and get a session cookie',
    body: credentials,
    reply: content(200, 'You are signed in.', startedSessionSchema, 'Set-Cookie'),
    refusals: [401, 429],
  },
  logout: {
    method: 'POST', path: '/logout', access: 'public', pages: 'own',
    summary: "End the cookie's session, or all sessions of its user",
    body: { ...newRecord('Logout', { shape: logoutFields }), optional: true },
    reply: { status: 204, description: 'You are signed out.', headers: ['Set-Cookie'] },
    refusals: [409],
  },
  createToken: {
    method: 'POST', path: '/tokens', access: 'public', pages: 'allowed',
    summary: 'Get an access token and a refresh token for a password or for a refresh token',
    body: either(credentials, 'refresh_token', refreshToken),
    reply: content(201, 'The new tokens (RFC 6749 §5.1).', tokensSchema),
    refusals: [401, 429],
  },
  revokeToken: {
    method: 'POST', path: '/tokens/revoke', access: 'public', pages: 'allowed',
    summary: 'End the session of a refresh token',
    body: refreshToken,
    reply: { status: 204, description: 'The token is not valid any more, if it ever was (RFC 7009).' },
  },
} as const;

/** Returns the routes of the caller's own account, of a server with or without items. */
// prettier-ignore
export const accountRoutes = (hasItems: boolean) => ({
  me: {
    method: 'GET', path: '/me', access: 'user', conditional: true,
    summary: 'Read your own user record',
    reply: content(200, 'Your user record.', userSchema, 'ETag', 'Content-Location'),
    refusals: [404],
  },
  dashboard: {
    method: 'GET', path: '/dashboard', access: 'session',
    summary: 'Read an overview for the signed-in user',
    reply: content(
      200, `Your record, counts, ${hasItems ? 'the latest items, ' : ''}your session.`, dashboardSchema(hasItems),
    ),
  },
  listSessions: {
    method: 'GET', path: '/sessions', access: 'user',
    summary: 'List your sessions, or as an administrator those of any user',
    query: [{ name: 'userId', description: 'The id of another user. Administrators only.', schema: idSchema }],
    reply: content(200, 'The sessions, oldest first.', { type: 'array', items: sessionSchema }),
    refusals: [403],
  },
  removeSession: {
    method: 'DELETE', path: '/sessions/{id}', access: 'user',
    summary: 'End one of your sessions, or as an administrator any session',
    reply: { status: 204, description: 'The session has ended.' },
  },
} as const);

/** The server itself, and the changes of all collections. */
// prettier-ignore
export const serverRoutes = {
  changes: {
    method: 'GET', path: '/changes', access: 'user',
    summary: 'Follow the changes of all collections that you may list',
    query: feedParameters,
    refusals: [403],
    reply: {
      status: 200,
      description: 'Server-sent events: `created`, `replaced`, `removed`, or `reset`: read the lists again.',
      schema: { type: 'string' },
      mediaType: 'text/event-stream',
      headers: ['X-Accel-Buffering'],
    },
  },
  describe: {
    method: 'GET', path: '/openapi.json', access: 'public', conditional: true,
    summary: 'Read this OpenAPI document',
    reply: content(200, 'This document.', { type: 'object' }, 'ETag'),
  },
  live: {
    method: 'GET', path: '/livez', access: 'public',
    summary: 'Check that the process is running',
    reply: content(200, 'The process is running.', healthSchema),
  },
  status: {
    method: 'GET', path: '/status', access: 'admin',
    summary: 'Read the state of the server and its store',
    reply: content(200, 'The state of the server.', statusSchema),
  },
  ready: {
    method: 'GET', path: '/readyz', access: 'public',
    summary: 'Check that the server is ready for requests',
    reply: content(200, 'The server is ready.', healthSchema),
    refusals: [507],
  },
} as const;

/** Returns the collection of users. With open registration, anyone can create one. */
export function usersCollection({
  registration,
  passwordLengthMin = 1,
}: RouteOptions): RoutedCollection<NewUser, UserDraft> {
  return {
    name: 'users',
    singular: 'user',
    fields: userFields,
    bodies: bodiesFor('User', newUserRules(passwordLengthMin), userChangeRules(passwordLengthMin)),
    changeHeaders: ['Set-Cookie'],
    refusals: [409, 429],
    // prettier-ignore
    access: {
      list: 'admin', create: registration === 'open' ? 'optional' : 'admin',
      read: 'self', replace: 'self', patch: 'self', remove: 'self',
    },
  };
}

/** Returns a declared collection. `all` are those that are served with it. */
export function declaredCollection(
  declaration: CollectionDeclaration,
  all: readonly CollectionDeclaration[],
): RoutedCollection<NewEntry, EntryDraft> {
  const rules = { shape: declaration.fields };
  return {
    ...declaration,
    bodies: bodiesFor(capitalized(declaration.singular), rules, rules),
    hasOwners: declaration.access.list !== 'public',
    refusals: dependsOnOthers(declaration, all) ? [409] : [],
    shapeTag: declaration === items ? undefined : shapeTagOf(declaration.fields),
    embeddables: embeddablesOf(declaration, all),
  };
}

/** The route that creates many records of a declared collection at once. */
// prettier-ignore
export function batchRoutes<N, C>(
  collection: RoutedCollection<N, C>,
): { readonly createMany: Route<readonly N[]> } {
  const { name, singular, fields, access, bodies, refusals = [] } = collection;
  const records = manySchema(resourceSchema(capitalized(singular), fields));
  return {
    createMany: {
      method: 'POST', path: `/${name}/batch`, access: access.create,
      summary: `Create many ${name} at once, all or none`,
      body: manyOf(bodies.create),
      reply: content(201, `The new ${name}, in order.`, records, 'Idempotency-Replayed'),
      retriable: true,
      refusals,
    },
  };
}

/** The routes of one collection, by operation. */
export interface CollectionRoutes<N, C> {
  readonly list: Route;
  readonly create: Route<N>;
  readonly read: Route;
  readonly replace: Route<C>;
  readonly patch: Route<C>;
  readonly remove: Route;
}

export function collectionRoutes<N, C>(
  collection: RoutedCollection<N, C>,
  { requireIfMatch }: RouteOptions,
): CollectionRoutes<N, C> {
  const { name, singular, fields, access, bodies, changeHeaders = [], refusals = [] } = collection;
  const all = { path: `/${name}` };
  const one = { path: `/${name}/{id}`, conditional: true };
  const subject = subjectOf(collection);
  const record = resourceSchema(capitalized(singular), fields);
  const read = readSchemaOf(collection);
  const change = {
    ...one,
    requireIfMatch,
    reply: content(200, `The changed ${singular}.`, record, 'ETag', ...changeHeaders),
    refusals,
  };
  // prettier-ignore
  return {
    list: {
      method: 'GET', ...all, access: access.list,
      conditional: true,
      prefer: 'count=exact',
      summary: `List ${name}`,
      query: listParameters(subject),
      reply: content(200, `The ${name}.`, { type: 'array', items: read }, ...listHeaders),
    },
    create: {
      method: 'POST', ...all, access: access.create,
      summary: `Create a new ${singular}`,
      body: bodies.create,
      reply: content(201, `The new ${singular}.`, record, ...newHeaders),
      retriable: true,
      refusals,
    },
    read: {
      method: 'GET', ...one, access: access.read,
      summary: `Read the ${singular} with this id`,
      query: recordParameters(subject),
      reply: content(200, `The ${singular}.`, read, 'ETag'),
    },
    replace: {
      method: 'PUT', ...change, access: access.replace,
      summary: `Replace the ${singular} with this id`,
      body: bodies.replace,
    },
    patch: {
      method: 'PATCH', ...change, access: access.patch,
      summary: `Change some fields of the ${singular} with this id`,
      body: bodies.patch,
    },
    remove: {
      method: 'DELETE', ...change, access: access.remove,
      summary: `Delete the ${singular} with this id`,
      reply: { status: 204, description: `The ${singular} was deleted.` },
      // A hook may refuse it (422).
      refusals: [422, ...refusals],
    },
  };
}

const newHeaders = ['ETag', 'Location', 'Idempotency-Replayed'];
const listHeaders = ['ETag', 'Link', 'X-Total-Count', 'Preference-Applied'];

/** Returns the whole route table by operation id, such as `listItems`. */
export function routeTable(
  collections: readonly CollectionDeclaration[] = [items],
  options: RouteOptions = {},
): ReadonlyMap<string, Route> {
  const table = new Map<string, Route>();
  const add = <N, C>(collection: RoutedCollection<N, C>, routes: object): void => {
    for (const [operation, route] of Object.entries<Route>({ ...routes })) {
      const isOfMany = operation === 'list' || operation === 'createMany';
      table.set(operation + capitalized(collection[isOfMany ? 'name' : 'singular']), route);
    }
  };
  const users = usersCollection(options);
  add(users, collectionRoutes(users, options));
  for (const declaration of collections) {
    const collection = declaredCollection(declaration, collections);
    add(collection, { ...collectionRoutes(collection, options), ...batchRoutes(collection) });
  }
  const services = {
    ...signInRoutes,
    ...accountRoutes(collections.includes(items)),
    ...serverRoutes,
  };
  for (const [operationId, route] of Object.entries(services)) table.set(operationId, route);
  return table;
}
