import type { Role } from '../auth/access.ts';
import { limits } from '../base/limits.ts';
import { capitalized } from '../collections/declaration.ts';
import type { Declared } from '../collections/registry.ts';
import type { EntryDraft, NewEntry } from '../collections/resource.ts';
import { newUserRules, userChangeRules, userFields, withRoles } from '../accounts/user-fields.ts';
import type { NewUser, UserDraft } from '../accounts/users.ts';
import type { Shape } from '../schema/field.ts';
import { bodiesFor, either, manyOf, newRecord, oneOf } from './body.ts';
import type { Operation, Route, RoutedCollection } from './call.ts';

/**
 * The route table: what can be requested, and by which callers. `features/openapi` describes
 * it.
 */

/**
 * The credentials of a user. Any password is compared with the stored one, so the rules
 * for new ones do not apply.
 */
const credentialsFields = {
  email: { kind: 'text', min: 1, max: 254, example: 'ada@example.org' },
  password: { kind: 'password', writeOnly: true },
} as const satisfies Shape;

/** The body that gets new tokens, or ends a session. */
const refreshTokenFields = {
  refresh_token: { kind: 'text', min: 1, max: 200, writeOnly: true, example: 'x'.repeat(67) },
} as const satisfies Shape;

const logoutFields = {
  everywhere: { kind: 'boolean', optional: true, description: 'End all sessions of the user.' },
} as const satisfies Shape;

const credentials = newRecord({ shape: credentialsFields });
const refreshToken = newRecord({ shape: refreshTokenFields });
const logout = { ...newRecord({ shape: logoutFields }), optional: true };

/** Signing in and out. */
// prettier-ignore
export const signInRoutes = {
  login: { operationId: 'login', method: 'POST', path: '/login', access: 'public', pages: 'own', body: credentials },
  logout: { operationId: 'logout', method: 'POST', path: '/logout', access: 'public', pages: 'own', body: logout },
  createToken: {
    operationId: 'createToken', method: 'POST', path: '/tokens', access: 'public', pages: 'allowed',
    body: either(credentials, 'refresh_token', refreshToken),
  },
  revokeToken: {
    operationId: 'revokeToken', method: 'POST', path: '/tokens/revoke', access: 'public', pages: 'allowed',
    body: refreshToken,
  },
} as const;

/** The caller's own account. */
// prettier-ignore
export const accountRoutes = {
  me: { operationId: 'me', method: 'GET', path: '/me', access: 'user', conditional: true },
  dashboard: { operationId: 'dashboard', method: 'GET', path: '/dashboard', access: 'session' },
  listSessions: {
    operationId: 'listSessions', method: 'GET', path: '/sessions', access: 'user', refusesKeys: true, query: 'read',
  },
  removeSession: {
    operationId: 'removeSession', method: 'DELETE', path: '/sessions/{id}', access: 'user', refusesKeys: true,
  },
} as const;

/** The state of the server. */
// prettier-ignore
export const healthRoutes = {
  live: { operationId: 'live', method: 'GET', path: '/livez', access: 'public', isAlwaysServed: true },
  status: { operationId: 'status', method: 'GET', path: '/status', access: 'admin' },
  ready: { operationId: 'ready', method: 'GET', path: '/readyz', access: 'public', isAlwaysServed: true },
} as const;

/**
 * The server's own paths that a collection may have instead, if nobody signs in and a dialect is
 * spoken: then `/status` is at `/-/status`.
 */
export const yieldedPaths: readonly string[] = ['/status', '/changes', '/metrics'];

/** The options of an installation that change the route table. */
export interface RouteOptions {
  readonly registration?: 'open' | 'closed' | undefined;
  readonly requireIfMatch?: boolean | undefined;
  /** The name of another server: its clients may ask in its way. */
  readonly dialect?: string | undefined;
  readonly passwordLengthMin?: number | undefined;
  /** The roles that users may have besides `admin` and `member`. */
  readonly roles?: readonly Role[] | undefined;
  /** False: nobody signs in, and there are no users. */
  readonly users?: boolean | undefined;
}

/** Returns the collection of users. With open registration, anyone can create one. */
export function usersCollection({
  registration,
  passwordLengthMin = 1,
  roles = [],
}: RouteOptions): RoutedCollection<NewUser, UserDraft> {
  return {
    name: 'users',
    noun: 'Users',
    singular: 'user',
    isUsers: true,
    fields: withRoles(userFields, roles),
    ids: undefined,
    hasOwners: false,
    shapeTag: '',
    references: undefined,
    embeddables: [],
    bodies: bodiesFor(
      newUserRules(passwordLengthMin, roles),
      userChangeRules(passwordLengthMin, roles),
    ),
    // prettier-ignore
    access: {
      list: 'admin', create: registration === 'open' ? 'optional' : 'admin',
      read: 'self', replace: 'self', patch: 'self', remove: 'self',
    },
  };
}

/** Returns a declared collection with the bodies of its routes. */
export function declaredCollection(declared: Declared): RoutedCollection<NewEntry, EntryDraft> {
  const { fields, isBuiltIn } = declared;
  const rules = { shape: fields };
  const { create, replace, patch } = bodiesFor(rules, rules);
  // Those of `items` are small.
  const size = isBuiltIn ? {} : { bytesMax: limits.recordBytesMax };
  return {
    ...declared,
    bodies: {
      create: { ...create, ...size },
      replace: { ...replace, ...size },
      patch: { ...patch, ...size },
    },
  };
}

/** The routes of one collection, by operation. */
interface CollectionRoutes<N, C> {
  readonly list: Route;
  readonly create: Route<N>;
  readonly read: Route;
  readonly replace: Route<C>;
  readonly patch: Route<C>;
  readonly remove: Route;
}

export function collectionRoutes<N, C>(
  collection: RoutedCollection<N, C>,
  { requireIfMatch, dialect }: RouteOptions,
): CollectionRoutes<N, C> {
  const { name, access, bodies, ids, isSingle } = collection;
  const path = `/${name}`;
  const one = { path: isSingle ? path : `${path}/{id}`, ids, conditional: true };
  // Clients of another server add what they like to the path of a single resource, such as the time.
  const single = dialect === undefined ? undefined : 'ignored';
  const change = { ...one, requireIfMatch };
  const created = collection.isUsers ? bodies.create : oneOf(bodies.create, `${path}/batch`);
  // prettier-ignore
  return {
    list: {
      ...named(collection, 'list'), method: 'GET', path, access: access.list, query: 'read', conditional: true,
    },
    create: { ...named(collection, 'create'), method: 'POST', path, access: access.create, body: created },
    read: {
      ...named(collection, 'read'), method: 'GET', ...one, access: access.read, query: isSingle ? single : 'read',
    },
    replace: {
      ...named(collection, 'replace'), method: 'PUT', ...change, access: access.replace, body: bodies.replace,
    },
    patch: { ...named(collection, 'patch'), method: 'PATCH', ...change, access: access.patch, body: bodies.patch },
    remove: { ...named(collection, 'remove'), method: 'DELETE', ...change, access: access.remove },
  };
}

/** The routes of a single resource, by operation. */
export function singleRoutes<N, C>(
  collection: RoutedCollection<N, C>,
  options: RouteOptions,
): Pick<CollectionRoutes<N, C>, 'read' | 'replace' | 'patch'> {
  const { read, replace, patch } = collectionRoutes(collection, options);
  return { read, replace, patch };
}

/** The route that creates many records of a declared collection at once. */
// prettier-ignore
export function batchRoutes<N, C>(
  collection: RoutedCollection<N, C>,
): { readonly createMany: Route<readonly N[]> } {
  const { name, access, bodies } = collection;
  return {
    createMany: {
      ...named(collection, 'createMany'), method: 'POST', path: `/${name}/batch`, access: access.create,
      body: manyOf(bodies.create),
    },
  };
}

/** Returns what names a route of a collection. */
function named(
  collection: RoutedCollection,
  operation: Operation,
): Pick<Route, 'operationId' | 'of'> {
  const isOfMany = operation === 'list' || operation === 'createMany';
  const noun = isOfMany ? collection.noun : capitalized(collection.singular);
  return { operationId: operation + noun, of: { collection, operation } };
}
