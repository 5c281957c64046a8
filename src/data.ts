import {
  KeyRingError, keyRingOfSecret, newKeyRing, parseKeyRing, serialiseKeyRing, type KeyRing,
} from './auth/keys.ts';
import { Passwords } from './auth/passwords.ts';
import { Throttle } from './auth/throttle.ts';
import { limits } from './base/limits.ts';
import { systemClock, systemRandom, type Clock, type Random } from './base/system.ts';
import { silentLog, type Log } from './log.ts';
import type { Audit } from './resources/audit.ts';
import { CollectionResource, type CollectionDeclaration } from './resources/collection.ts';
import type { Hooks } from './resources/hooks.ts';
import { items } from './resources/items.ts';
import { Sessions } from './resources/sessions.ts';
import { SignIn } from './resources/sign-in.ts';
import { Users } from './resources/users.ts';
import { readWhole, replaceFile, type Files } from './store/files.ts';
import { NodeFiles } from './store/node-files.ts';
import { openStore, type OfflineStore } from './store/open-store.ts';

/** The key ring in the data directory: its secrets sign every token, so it is made with mode 0600. */
export const keyFile = 'keys.json';

export interface KeySource {
  /** Absent for an app in memory, whose keys end with it. */
  readonly files: Files | undefined;
  /** A configured secret takes the place of the file, which is neither read nor made. */
  readonly secret: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The ring to sign and verify with; made, and written to the file, where there is none yet.
 * @throws KeyRingError for a secret or a file that cannot be used
 */
export async function loadKeyRing({ files, secret, clock, random }: KeySource): Promise<KeyRing> {
  if (secret !== undefined) return keyRingOfSecret(secret, clock.now());
  if (files === undefined) return newKeyRing(random, clock.now());
  const content = await readWhole(files, keyFile);
  if (content !== undefined) return parseKeyFile(content);
  const ring = newKeyRing(random, clock.now());
  await saveKeyRing(files, ring);
  return ring;
}

/** @throws KeyRingError that also says what to do about the file */
export function parseKeyFile(content: Buffer): KeyRing {
  try {
    return parseKeyRing(content);
  } catch (error) {
    if (!(error instanceof KeyRingError)) throw error;
    throw new KeyRingError(`${error.message}; put ${keyFile} back from a backup, or remove it for new keys`);
  }
}

/** Puts `ring` in the place of the one in the file, durably and as a whole. */
export async function saveKeyRing(files: Files, ring: KeyRing): Promise<void> {
  await replaceFile(files, keyFile, Buffer.from(serialiseKeyRing(ring)));
}

export interface DataOptions {
  /** Where the data files are. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** Collections of your own beside `items` (`defineCollection`). */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  readonly hooks?: Hooks | undefined;
  readonly sessionIdleSeconds?: number | undefined;
  readonly sessionLifetimeSeconds?: number | undefined;
  /** Sessions that a user may have at a time; one more ends the oldest. */
  readonly sessionsPerUser?: number | undefined;
  readonly passwordLengthMin?: number | undefined;
  readonly scryptCost?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  readonly log?: Log | undefined;
  /** Called once when nothing can be written any more: reads go on, but the process should end. */
  readonly onFailure?: (() => void) | undefined;
}

/** The store with every collection registered, and the resources upon it. */
export interface Data {
  /** `undefined` where everything is in memory. */
  readonly files: Files | undefined;
  readonly store: OfflineStore;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly items: CollectionResource;
  readonly others: readonly CollectionResource[];
}

const hour = 3600;

/** Puts the resources upon a store that has not started: for an application, or to check and repair its files. */
export function openData(options: DataOptions, ring: () => KeyRing): Data {
  const { clock = systemClock, random = systemRandom, log = silentLog, hooks = {} } = options;
  const files = options.directory === undefined ? undefined : new NodeFiles(options.directory);
  const store = openStore({
    ...(files && { files }),
    clock,
    random,
    onFailure(error) {
      log.message('error', 'The store has failed', { reason: error instanceof Error ? error.message : '' });
      options.onFailure?.();
    },
    onNotice: (notice, level = 'warn') => log.message(level, `The store says: ${notice}`),
  });

  const passwords = new Passwords({
    random,
    costExponent: options.scryptCost ?? 15,
    lengthMin: options.passwordLengthMin ?? 15,
  });
  const sessions = new Sessions(store, {
    clock,
    random,
    lifetimes: {
      cookie: {
        idleSeconds: options.sessionIdleSeconds ?? 12 * hour,
        maxSeconds: options.sessionLifetimeSeconds ?? 7 * 24 * hour,
      },
      refresh: { idleSeconds: limits.refreshIdleSecondsMax, maxSeconds: limits.refreshLifetimeSecondsMax },
    },
    perUserMax: options.sessionsPerUser ?? 50,
    ring,
  });
  const throttle = new Throttle({ clock, random });
  const audit: Audit = (event, details) => log.security(event, details);
  const users = new Users({ store, hooks, sessions, passwords, throttle, audit });
  const itemResource = new CollectionResource(items, store, hooks);
  const others = (options.collections ?? []).map((declared) => new CollectionResource(declared, store, hooks));
  const signIn = new SignIn({ store, users, sessions, passwords, audit });
  return { files, store, users, sessions, signIn, items: itemResource, others };
}
