import { accountRecords } from '../../src/accounts/records.ts';
import { routeTable } from '../../src/api/route-table.ts';
import type { Route } from '../../src/api/call.ts';
import type { RouteOptions } from '../../src/api/routes.ts';
import type { CollectionDeclaration } from '../../src/collections/declaration.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { items } from '../../src/collections/items.ts';
import { registryOf, usersAsTarget } from '../../src/collections/registry.ts';
import { routes as feedRoutes } from '../../src/features/feed/feed.ts';
import { routes as keyRoutes } from '../../src/features/keys/keys.ts';
import { routes as metricsRoutes } from '../../src/features/metrics/metrics.ts';
import { routes as openApiRoutes } from '../../src/features/openapi/openapi.ts';
import { openStore } from '../../src/store/open-store.ts';

/** Returns the routes of a server with its features, but for the files of the page. */
export function allRoutes(declarations: readonly CollectionDeclaration[] = [items], options: RouteOptions = {}) {
  const store = openStore({ clock: systemClock, random: systemRandom });
  const registry = registryOf(store, declarations, usersAsTarget(accountRecords(store).users));
  const table = routeTable([...registry.values()], options);
  const features = [feedRoutes, keyRoutes, metricsRoutes, openApiRoutes];
  return [...table, ...features.flatMap((each): Route[] => Object.values(each))];
}
