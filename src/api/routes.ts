import type { Access } from '../auth/access.ts';
import type { ErrorCode } from '../base/errors.ts';
import { items, type CollectionAccess, type CollectionDeclaration } from '../resources/collection.ts';
import { fieldsParameter, listParameters } from '../resources/list-query.ts';
import { userChangeFields, userFields } from '../resources/users.ts';
import { optional, password, type Shape } from '../schema/field.ts';
import { resourceSchema } from '../schema/json-schema.ts';
import type { Route } from './route.ts';
import { credentialsFields, dashboardSchema, healthSchema, logoutFields } from './schemas.ts';
import { revocationFields, sessionSchema, startedSessionSchema, tokenSchema } from './schemas.ts';

/** The route table: what can be asked for, by whom, and what comes back. Nothing here knows how it is done. */

export const serviceRoutes = {
  login: {
    method: 'POST',
    path: '/login',
    summary: 'Sign in and get a session cookie',
    access: 'public',
    sameSite: true,
    body: { shape: credentialsFields, purpose: 'create', title: 'Credentials' },
    reply: { status: 200, schema: startedSessionSchema, headers: ['Set-Cookie'] },
    problems: ['invalid_credentials', 'too_many_requests', 'overloaded'],
  },
  logout: {
    method: 'POST',
    path: '/logout',
    summary: 'End the session of the cookie, or all sessions of its user',
    access: 'public',
    sameSite: true,
    body: { shape: logoutFields, purpose: 'create', title: 'Logout', optional: true },
    reply: { status: 204, headers: ['Set-Cookie'] },
  },
  dashboard: {
    method: 'GET',
    path: '/dashboard',
    summary: 'What the signed-in user sees first',
    access: 'session',
    signInAt: '/',
    reply: { status: 200, schema: dashboardSchema },
  },
  createToken: {
    method: 'POST',
    path: '/tokens',
    summary: 'Get an access token and a refresh token, for e-mail address and password or for a refresh token',
    access: 'public',
    sameSite: true,
    body: {
      shape: credentialsFields,
      purpose: 'create',
      title: 'Credentials',
      or: { shape: revocationFields, title: 'Revocation' },
    },
    reply: { status: 201, schema: tokenSchema },
    problems: ['invalid_credentials', 'too_many_requests', 'overloaded'],
  },
  revokeToken: {
    method: 'POST',
    path: '/tokens/revoke',
    summary: 'End the session that a refresh token belongs to',
    access: 'public',
    sameSite: true,
    body: { shape: revocationFields, purpose: 'create', title: 'Revocation' },
    reply: { status: 204 },
  },
  listSessions: {
    method: 'GET',
    path: '/sessions',
    summary: "List one's own sessions, or for an administrator those of the user that `userId` names",
    access: 'user',
    query: [{ name: 'userId', description: 'Whose; for administrators.', schema: { type: 'integer', minimum: 1 } }],
    reply: { status: 200, schema: { type: 'array', items: sessionSchema } },
    problems: ['insufficient_scope'],
  },
  removeSession: {
    method: 'DELETE',
    path: '/sessions/{id}',
    summary: "End a session of one's own, or for an administrator any",
    access: 'user',
    reply: { status: 204 },
    problems: ['actor_changed'],
  },
  describe: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'Describe all of this as an OpenAPI document',
    access: 'public',
    conditional: true,
    reply: { status: 200, schema: { type: 'object', examples: [{ openapi: '3.1.0' }] }, headers: ['ETag'] },
  },
  live: {
    method: 'GET',
    path: '/livez',
    summary: 'Whether the process answers',
    access: 'public',
    reply: { status: 200, schema: healthSchema },
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    summary: 'Whether the server takes requests',
    access: 'public',
    reply: { status: 200, schema: healthSchema },
    problems: ['draining', 'store_failed', 'storage_full'],
  },
} as const satisfies { readonly [operationId: string]: Route };

export type ServiceOperation = keyof typeof serviceRoutes;

/** What every collection offers; users are one too. */
export type CollectionOperation = keyof CollectionAccess;

/** A collection as its routes see it. */
export interface RoutedCollection extends Omit<CollectionDeclaration, 'access'> {
  readonly access: { readonly [K in CollectionOperation]: Access };
  /** What may be sent to change a record, where that is more than what creates one. */
  readonly changeFields?: Shape;
  /** What a reply to a change may carry beside the usual. */
  readonly changeHeaders?: readonly string[];
  /** What can go wrong beside what goes wrong in any collection. */
  readonly problems?: { readonly [K in CollectionOperation]?: readonly ErrorCode[] };
}

const changeOfUser = ['actor_changed', 'email_taken', 'last_admin', 'too_many_requests'] as const;

/** What of an installation's options shows in the route table. */
export interface RouteOptions {
  readonly registration?: 'open' | 'closed' | undefined;
  readonly requireIfMatch?: boolean | undefined;
  readonly passwordLengthMin?: number | undefined;
  /** False: there is no page to show to a browser, or to sign in at. */
  readonly page?: boolean | undefined;
}

export function routedServices({ page }: RouteOptions): { readonly [K in ServiceOperation]: Route } {
  const { signInAt, ...dashboard } = serviceRoutes.dashboard;
  return { ...serviceRoutes, dashboard: { ...dashboard, ...(page !== false && { signInAt }) } };
}

/** Users, for whom anybody may register where `registration` is open. */
export function routedUsers({ registration, passwordLengthMin = 1 }: RouteOptions): RoutedCollection {
  const ofPassword = { password: optional(password({ min: passwordLengthMin })) };
  return {
    name: 'users',
    singular: 'user',
    fields: { ...userFields, ...ofPassword },
    changeFields: { ...userChangeFields, ...ofPassword },
    changeHeaders: ['Set-Cookie'],
    problems: {
      create: ['actor_changed', 'email_taken', 'too_many_requests'],
      replace: changeOfUser,
      patch: changeOfUser,
      remove: ['actor_changed', 'last_admin'],
    },
    access: {
      list: 'admin',
      create: registration === 'open' ? 'optional' : 'admin',
      read: 'self',
      replace: 'self',
      patch: 'self',
      remove: 'self',
    },
  };
}

/** The routes of a collection. */
export function collectionRoutes(
  collection: RoutedCollection,
  { requireIfMatch }: RouteOptions,
): { readonly [K in CollectionOperation]: Route } {
  const { name, singular, fields, access, changeFields = fields, changeHeaders = [], problems = {} } = collection;
  const [all, one] = [`/${name}`, `/${name}/{id}`];
  const title = capitalized(singular);
  const schema = resourceSchema(title, fields);
  const selectable = { anyOf: [schema, resourceSchema(`${title}Selection`, fields, 'selection')] };
  const writing = (operation: CollectionOperation) => ({
    access: access[operation],
    problems: ['write_refused', ...(problems[operation] ?? [])] as const,
  });
  const changing = (operation: 'replace' | 'patch', bodyTitle: string) =>
    ({
      ...writing(operation),
      path: one,
      conditional: true,
      requireIfMatch,
      body: { shape: changeFields, purpose: operation, title: bodyTitle },
      prefer: 'return=minimal',
      reply: { status: 200, schema, headers: ['ETag', ...changeHeaders] },
    }) as const;
  return {
    list: {
      method: 'GET',
      path: all,
      summary: `List ${name}`,
      access: access.list,
      conditional: true,
      query: listParameters(fields),
      prefer: 'count=exact',
      reply: { status: 200, schema: { type: 'array', items: selectable }, headers: ['ETag', 'Link', 'X-Total-Count'] },
    },
    create: {
      ...writing('create'),
      method: 'POST',
      path: all,
      summary: `Create a new ${singular}`,
      body: { shape: fields, purpose: 'create', title: `New${title}` },
      prefer: 'return=minimal',
      reply: { status: 201, schema, headers: ['ETag', 'Location'] },
    },
    read: {
      method: 'GET',
      path: one,
      summary: `Read the ${singular} with this id`,
      access: access.read,
      conditional: true,
      query: [fieldsParameter(fields)],
      reply: { status: 200, schema: selectable, headers: ['ETag'] },
    },
    replace: {
      ...changing('replace', `${title}Replacement`),
      method: 'PUT',
      summary: `Replace the ${singular} with this id`,
    },
    patch: {
      ...changing('patch', `${title}Patch`),
      method: 'PATCH',
      summary: `Change some fields of the ${singular} with this id`,
    },
    remove: {
      ...writing('remove'),
      method: 'DELETE',
      path: one,
      summary: `Remove the ${singular} with this id`,
      conditional: true,
      requireIfMatch,
      reply: { status: 204 },
    },
  };
}

/** `items` → `Items`, `spare-parts` → `SpareParts`. */
function capitalized(name: string): string {
  return name.replaceAll(/(?:^|-)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The whole route table, by operation id such as `listItems`, in the order in which people look for things. */
export function routeTable(
  collections: readonly RoutedCollection[] = [items],
  options: RouteOptions = {},
): ReadonlyMap<string, Route> {
  const table = new Map<string, Route>();
  for (const collection of [routedUsers(options), ...collections]) {
    for (const [operation, route] of Object.entries(collectionRoutes(collection, options))) {
      table.set(operation + capitalized(operation === 'list' ? collection.name : collection.singular), route);
    }
  }
  for (const [operationId, route] of Object.entries(routedServices(options))) table.set(operationId, route);
  return table;
}
