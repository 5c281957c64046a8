import type { KeyRing } from '../auth/keys.ts';
import type { Handle } from '../http/message.ts';
import type { CommitLog } from '../store/log.ts';
import type { AnyTable } from '../store/memory/table.ts';
import type { Store } from '../store/store.ts';
import type { CompleteOptions } from './options.ts';

/** A place that several processes share, which has the data instead of a directory. */
export interface SharedPlace {
  /** Makes the log of the store. */
  log(tables: Map<string, AnyTable>): CommitLog;
  /** Calls `onRing` with the key ring, and makes it where there is none. @throws KeyRingError */
  loadKeys(): Promise<void>;
  /** Called with each ring, and never with an earlier one afterwards. */
  onRing: (ring: KeyRing) => void;
  /**
   * Makes a handler that answers with `handle` only what `store` has published recently, and
   * that first fetches the commits of others where the answer may depend on them.
   */
  onlyCurrent(handle: Handle, store: Store): Handle;
}

/** Returns the place that the options name. Its code is not loaded without one. */
export async function sharedPlaceOf(options: CompleteOptions): Promise<SharedPlace | undefined> {
  const { cluster } = options;
  return cluster && (await import('../options/cluster/node.ts')).joinCluster(cluster, options);
}
