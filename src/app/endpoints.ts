import { statfsSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { batchEndpoints, collectionEndpoints } from '../api/collections.ts';
import type { Endpoint } from '../api/call.ts';
import { declaredCollection, usersCollection } from '../api/routes.ts';
import { accountEndpoints, type AccountServices } from '../api/account.ts';
import { healthEndpoints, type HealthServices } from '../api/health.ts';
import { signInEndpoints, type SignInServices } from '../api/sign-in.ts';
import { version } from '../base/version.ts';
import { CollectionResource } from '../collections/resource.ts';
import type { ListPool } from '../lists/list-pool.ts';
import type { Load } from '../log/operated.ts';
import type { Store } from '../store/store.ts';
import type { Data } from './data.ts';
import type { CompleteOptions } from './options.ts';
import type { Feature, Parts } from './parts.ts';

/** What was asked of a server beyond its bounds. */
interface Pressed {
  readonly listPool: ListPool;
  readonly load: () => Load;
}

/** Returns the route table, with a handler for each operation. */
export function endpointsOf(
  services: Data & SignInServices & AccountServices & Omit<HealthServices, 'status'> & Pressed,
  complete: CompleteOptions,
  features: readonly Feature[],
  { dialect, singles }: Pick<Parts, 'dialect' | 'singles'>,
): Endpoint[] {
  const { settings, roles, formerRoles } = complete;
  const { store, writes, users, hasUsers, registry } = services;
  const options = {
    ...settings,
    writes,
    store,
    listPool: services.listPool,
  };
  const endpoints = [
    ...(hasUsers
      ? collectionEndpoints(usersCollection({ ...settings, roles, formerRoles }), users, options)
      : []),
    ...[...registry.values()].flatMap((declared) => {
      const collection = declaredCollection(declared);
      if (declared.isSingle) {
        const spoken = dialect?.spoken(collection) ?? collection;
        return singles?.singleEndpoints(spoken, declared, { ...options, ...complete }) ?? [];
      }
      if (dialect !== undefined) return dialect.endpointsOf(declared, registry, options, complete);
      const resource = new CollectionResource(declared, complete);
      return [
        ...collectionEndpoints(collection, resource, options),
        ...batchEndpoints(collection, resource, options),
      ];
    }),
    ...(hasUsers ? [...signInEndpoints(services), ...accountEndpoints(services)] : []),
    ...healthEndpoints({ ...services, status: statusOf(services, features, complete) }),
    ...(complete.ownEndpoints?.(registry) ?? []),
  ];
  for (const feature of features) {
    endpoints.push(...feature.endpoints(endpoints.map(({ route }) => route)));
  }
  return endpoints;
}

/** Returns a function that writes the status of the server and its store. */
function statusOf(
  { store, load }: Pick<Pressed, 'load'> & { readonly store: Store },
  features: readonly Feature[],
  { clock, directory }: CompleteOptions,
): () => string {
  const startedAt = new Date(clock.now()).toISOString();
  return () => {
    const { state, journalBytes, checkpointedAt, ...figures } = store.status();
    const { memoryBytes, memoryMaxBytes, slowestWaitMs } = figures;
    const { used_heap_size: heapUsedBytes, heap_size_limit: heapMaxBytes } = getHeapStatistics();
    return JSON.stringify({
      version,
      startedAt,
      state,
      records: store.size,
      memoryBytes,
      memoryMaxBytes,
      slowestWaitMs: Math.round(slowestWaitMs),
      refusals: load().refusals,
      journalBytes,
      checkpointedAt:
        checkpointedAt === undefined ? undefined : new Date(checkpointedAt).toISOString(),
      freeBytes: directory === undefined ? undefined : freeBytes(directory),
      heapUsedBytes,
      heapMaxBytes,
      ...Object.fromEntries(features.flatMap(({ status }) => Object.entries(status?.() ?? {}))),
    });
  };
}

function freeBytes(directory: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  } catch {
    // A locked-down process may not ask for this.
    return undefined;
  }
}
