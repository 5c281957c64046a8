import { statfsSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { collectionRoutes } from '../api/collections.ts';
import type { Route } from '../api/call.ts';
import { Operations } from '../api/operations.ts';
import { declaredCollection, metricsPath, usersCollection, yieldedPaths } from '../api/routes.ts';
import { accountRoutes } from '../api/account.ts';
import type { Context } from '../api/context.ts';
import { healthRoutes, type HealthServices } from '../api/health.ts';
import { acceptancePath, invitationRoutes } from '../api/invitations.ts';
import { signInRoutes } from '../api/sign-in.ts';
import type { NewUser, UserDraft } from '../accounts/users.ts';
import { version } from '../base/version.ts';
import { CollectionResource, type EntryDraft, type NewEntry } from '../collections/resource.ts';
import type { Load } from '../log/operated.ts';
import type { Store } from '../store/store.ts';
import type { Data } from './data.ts';
import type { CompleteOptions } from './options.ts';
import type { Feature, Parts } from './part-types.ts';

export interface AllOperations {
  readonly users: Operations<NewUser, UserDraft>;
  readonly declared: ReadonlyMap<string, Operations<NewEntry, EntryDraft>>;
}

export function createOperations(
  { store, registry, users }: Data,
  complete: CompleteOptions,
  { SingleResource = CollectionResource }: Partial<NonNullable<Parts['singles']>> = {},
): AllOperations {
  const { settings, roles } = complete;
  const ofUsers = usersCollection({ ...settings, roles });
  const declared = [...registry.values()].map((each) => {
    const Resource = each.isSingle ? SingleResource : CollectionResource;
    const resource = new Resource(each, complete);
    return [each.name, new Operations(declaredCollection(each), resource, store)] as const;
  });
  return { users: new Operations(ofUsers, users, store), declared: new Map(declared) };
}

/** Parts of the server that shape the routes, and the state for `/status` and `/readyz`. */
type ServerState = Pick<Parts, 'dialect' | 'singles'> &
  Pick<HealthServices, 'unready'> & { readonly load: () => Load };

export function createRoutes(
  operations: AllOperations,
  context: Context,
  complete: CompleteOptions,
  features: readonly Feature[],
  { dialect, singles, load, unready }: ServerState,
): Route[] {
  const { store, writes, hasUsers, registry, listPool } = context;
  const options = { ...complete.settings, writes, listPool };
  const place = dialect === undefined ? (route: Route) => route : yielding;
  const routes = [
    ...(hasUsers ? collectionRoutes(operations.users, options) : []),
    ...[...operations.declared.values()].flatMap((each) => {
      const { collection, resource } = each;
      if (collection.isSingle) {
        const routed = dialect && new Operations(dialect.withBodies(collection), resource, store);
        return singles?.singleRoutes(routed ?? each, options) ?? [];
      }
      const declared = registry.get(collection.name);
      if (dialect !== undefined && declared !== undefined)
        return dialect.createRoutes(declared, registry, options, { ...complete, store });
      return collectionRoutes(each, options);
    }),
    ...(hasUsers ? [...signInRoutes(context), ...accountRoutes(context)] : []),
    ...(hasUsers ? createInvitationRoutes(context, complete) : []),
    ...healthRoutes({
      store,
      unready,
      status: createStatusWriter(store, load, features, complete),
    }).map(place),
    ...(complete.ownRoutes?.(registry) ?? []),
  ];
  const isFree = (route: Route): boolean => !isReplaced(route, routes, complete);
  for (const feature of features) routes.push(...feature.routes(routes).map(place).filter(isFree));
  return routes;
}

function yielding(route: Route): Route {
  return yieldedPaths.includes(route.path) ? { ...route, path: `/-${route.path}` } : route;
}

/** True for the metrics if a collection or a program's route has their path. */
function isReplaced({ path }: Route, others: readonly Route[], { log }: CompleteOptions): boolean {
  if (path !== metricsPath || !others.some((other) => other.path === path)) return false;
  const advice = 'rename it to get the metrics, or read /status';
  log.message('warn', `${path} is not served: a collection or route has its path; ${advice}`);
  return true;
}

/** The routes of invitations, unless a collection has their path. */
function createInvitationRoutes(context: Context, { log }: CompleteOptions): Route[] {
  if (!context.registry.has(acceptancePath.slice(1))) return invitationRoutes(context);
  log.message('warn', `Nobody can be invited: a collection has the path ${acceptancePath}`);
  return [];
}

function createStatusWriter(
  store: Store,
  load: () => Load,
  features: readonly Feature[],
  { clock, directory }: CompleteOptions,
): () => string {
  const startedAt = new Date(clock.now()).toISOString();
  return () => {
    const { state, journalBytes, checkpointedAt, memoryBytes, memoryMaxBytes } = store.status();
    const { used_heap_size: heapUsedBytes, heap_size_limit: heapMaxBytes } = getHeapStatistics();
    return JSON.stringify({
      version,
      startedAt,
      state,
      records: store.size,
      memoryBytes,
      memoryMaxBytes,
      refusals: load().refusals,
      journalBytes,
      checkpointedAt:
        checkpointedAt === undefined ? undefined : new Date(checkpointedAt).toISOString(),
      ...(directory !== undefined && measureDisk(directory)),
      heapUsedBytes,
      heapMaxBytes,
      ...Object.fromEntries(features.flatMap(({ status }) => Object.entries(status?.() ?? {}))),
    });
  };
}

function measureDisk(directory: string): object {
  try {
    const { bavail, blocks, bsize } = statfsSync(directory);
    return { freeBytes: bavail * bsize, diskBytes: blocks * bsize };
  } catch {
    // A locked-down process may not call this.
    return {};
  }
}
