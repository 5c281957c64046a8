import type { SharedPlace } from '../api/shared-place.ts';
import type { Role } from '../auth/access.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { ReferenceRules, Registry } from '../collections/declared.ts';
import type { Observe } from '../collections/writes.ts';
import { settings, valuesOf, type ClusterOptions, type Settings } from '../config/options.ts';
import { errorLog, type Log } from '../log/log.ts';
import type { Route } from '../api/call.ts';
import type { Administrator } from './administrator.ts';

/** The options of an app in addition to its settings. All are optional. */
export interface BasicOptions {
  /** The data directory. If absent, everything is in memory. */
  readonly directory?: string | undefined;
  /** The etcd that has the data instead of a directory, for several nodes. */
  readonly cluster?: ClusterOptions | undefined;
  /**
   * The signing key, 32 to 1,024 bytes of UTF-8. If absent, the first start creates one in the
   * directory.
   */
  readonly secret?: string | undefined;
  /** Collections in addition to `items`, made by `defineCollection`. */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  /** False for no collection `items`. */
  readonly items?: boolean | undefined;
  /** The roles of users in addition to `admin` and `member`, for rules in `access`. */
  readonly roles?: readonly Role[] | undefined;
  /** False for no users and no sign-in, which requires `auth: 'none'`. */
  readonly users?: boolean | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Default: the operating system's generator. */
  readonly random?: Random | undefined;
  /** A log made by `createLog`. Default: errors of the server itself go to standard error. */
  readonly log?: Log | undefined;
  /** Called once when the store can no longer write. Reads continue, but the process should end. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** The administrator to create if there is no user. */
  readonly administrator?: Administrator | undefined;
  /** False for no page at `/`. */
  readonly page?: boolean | undefined;
}

export interface CompleteOptions extends BasicOptions {
  readonly settings: Settings;
  readonly collections: readonly CollectionDeclaration[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The place of the data, if already joined. Otherwise `openApp` joins the `cluster`. */
  readonly place?: SharedPlace | undefined;
  /** The rules of references. `openApp` loads them if a declared field refers. */
  readonly references?: ReferenceRules | undefined;
  readonly ownRoutes?: ((registry: Registry) => readonly Route[]) | undefined;
  readonly observer?: ((registry: Registry) => Observe) | undefined;
  /** Called when the app stops, before it waits for the requests in flight. */
  readonly onStop?: (() => void) | undefined;
  readonly settled?: (() => Promise<void>) | undefined;
}

export const defaultOptions: CompleteOptions = {
  settings: valuesOf(settings, (option) => option.default),
  collections: [],
  clock: systemClock,
  random: systemRandom,
  log: errorLog,
};
