import type { SharedPlace } from '../api/shared-place.ts';
import type { Role } from '../auth/access.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { ReferenceRules, Registry } from '../collections/registry.ts';
import type { Observe } from '../collections/writes.ts';
import { settings, valuesOf, type ClusterOptions, type Settings } from '../config/options.ts';
import { errorLog, type Log } from '../log/log.ts';
import type { Route } from '../api/call.ts';
import type { Administrator } from './administrator.ts';

/** The options of an app besides its settings. Every member may be left out. */
export interface BasicOptions {
  /** The directory of the data files. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** The etcd that has the data instead of a directory, for several nodes. */
  readonly cluster?: ClusterOptions | undefined;
  /**
   * The signing key, 32 to 1,024 bytes of UTF-8. Absent: the first start makes one and
   * keeps it in the directory.
   */
  readonly secret?: string | undefined;
  /** Collections in addition to `items`, made by `defineCollection`. */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  /** False: there is no collection `items`. */
  readonly items?: boolean | undefined;
  /** The roles that users may have besides `admin` and `member`; cells of `access` name them. */
  readonly roles?: readonly Role[] | undefined;
  /** False: there are no users, and nobody signs in. It requires `auth: 'none'`. */
  readonly users?: boolean | undefined;
  /** Absent: the clock of the machine. */
  readonly clock?: Clock | undefined;
  /** Absent: the generator of the operating system. */
  readonly random?: Random | undefined;
  /**
   * A log made by `createLog`. Absent: only errors of the server itself are written, to
   * standard error.
   */
  readonly log?: Log | undefined;
  /**
   * Called once when the store cannot write any more. Reads go on, but the process should
   * end.
   */
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** The administrator that is made if there is no user. Absent: none is made. */
  readonly administrator?: Administrator | undefined;
  /** False: there is no page for browsers at `/`. */
  readonly page?: boolean | undefined;
}

/** The options of an app: checked, and with defaults for those that were left out. */
export interface CompleteOptions extends BasicOptions {
  readonly settings: Settings;
  readonly collections: readonly CollectionDeclaration[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The place that has the data, if it was joined before; else `openApp` joins the `cluster`. */
  readonly place?: SharedPlace | undefined;
  /** The rules of references. `openApp` loads them if a declared field refers. */
  readonly references?: ReferenceRules | undefined;
  /** Returns the rows of a program's own routes. */
  readonly ownRoutes?: ((registry: Registry) => readonly Route[]) | undefined;
  /** Returns what observes the writes to the collections of `registry`. */
  readonly observer?: ((registry: Registry) => Observe) | undefined;
  /** Called when the app stops, before it waits for the requests in flight. */
  readonly onStop?: (() => void) | undefined;
  /** Waits for what runs after writes. */
  readonly settled?: (() => Promise<void>) | undefined;
}

/** The options of an app that is given none. */
export const defaultOptions: CompleteOptions = {
  settings: valuesOf(settings, (option) => option.default),
  collections: [],
  clock: systemClock,
  random: systemRandom,
  log: errorLog,
};
