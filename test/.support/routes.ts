import { routeTable } from '../../src/api/routes.ts';
import { routes as feedRoutes } from '../../src/features/feed/feed.ts';
import { routes as openApiRoutes } from '../../src/features/openapi/openapi.ts';

/** Returns the routes of a server with its features, but for the files of the page. */
export function allRoutes(...of: Parameters<typeof routeTable>) {
  return [...routeTable(...of), ...Object.values(feedRoutes), ...Object.values(openApiRoutes)];
}
