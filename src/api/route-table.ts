import type { Declared } from '../collections/registry.ts';
import type { Route } from './call.ts';
import { invitationRoutes } from './invitations.ts';
import {
  accountRoutes,
  batchRoutes,
  collectionRoutes,
  declaredCollection,
  healthRoutes,
  signInRoutes,
  singleRoutes,
  usersCollection,
  yieldedPaths,
  type RouteOptions,
} from './routes.ts';

/** The routes without handlers, for commands, and for the names that they leave. */

/** Returns the whole route table of a server with these collections. */
export function routeTable(
  declared: readonly Declared[],
  options: RouteOptions = {},
): readonly Route[] {
  const { users: hasUsers = true } = options;
  const tables: readonly object[] = [
    ...(hasUsers ? [collectionRoutes(usersCollection(options), options)] : []),
    ...declared
      .map(declaredCollection)
      .flatMap((collection): object[] =>
        collection.isSingle
          ? [singleRoutes(collection, options)]
          : [collectionRoutes(collection, options), batchRoutes(collection)],
      ),
    ...(hasUsers ? [signInRoutes, accountRoutes] : []),
    ...(hasUsers && declared.every(({ name }) => name !== 'invitations') ? [invitationRoutes] : []),
    healthRoutes,
  ];
  return tables.flatMap((table) => Object.values<Route>({ ...table }));
}

/**
 * Returns the names that no collection can have: those of the server's own paths and tables. Without
 * users it may have those of `yieldedPaths`, but is served only with a dialect.
 */
export function takenNames(users = true): string[] {
  const paths = routeTable([], { users })
    .map(({ path }) => path)
    .filter((path) => path !== '/invitations' && (users || !yieldedPaths.includes(path)));
  return [
    ...(users ? ['changes'] : []),
    'page',
    'idempotency-keys',
    ...(users ? ['api-keys', 'apiKeys', 'keys'] : []),
    ...paths.map((path) => path.split('/')[1] ?? ''),
  ];
}
