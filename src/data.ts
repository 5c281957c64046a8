import {
  KeyRingError, keyRingOfSecret, newKeyRing, parseKeyRing, serialiseKeyRing, type KeyRing,
} from './auth/keys.ts';
import { createPasswords } from './auth/passwords.ts';
import { Throttle } from './auth/throttle.ts';
import { invariant } from './base/errors.ts';
import { limits } from './base/limits.ts';
import { systemClock, systemRandom, type Clock, type Random } from './base/system.ts';
import { silentLog, type Log } from './log.ts';
import type { Audit } from './resources/audit.ts';
import { createCollection, items, type CollectionDeclaration } from './resources/collection.ts';
import { hookedWrite, type Hooks } from './resources/hooks.ts';
import { createSessions } from './resources/sessions.ts';
import { createSignIn } from './resources/sign-in.ts';
import { createUsers } from './resources/users.ts';
import { settingsOf, type SomeSettings } from './settings.ts';
import { readWhole, replaceFile, type Files } from './store/files.ts';
import { NodeFiles } from './store/node-files.ts';
import { openStore } from './store/open-store.ts';

/** The key ring in the data directory: its secrets sign every token, so it is made with mode 0600. */
export const keyFile = 'keys.json';

/** The ring in the file; `undefined` where there is none. @throws KeyRingError that also says what to do about it */
export async function readKeyRing(files: Files): Promise<KeyRing | undefined> {
  const content = await readWhole(files, keyFile);
  try {
    return content && parseKeyRing(content);
  } catch (error) {
    if (!(error instanceof KeyRingError)) throw error;
    throw new KeyRingError(`${error.message}; put ${keyFile} back from a backup, or remove it for new keys`);
  }
}

export interface DataOptions extends SomeSettings {
  /** The signing key, 32 to 1,024 bytes of UTF-8; absent: made at the first start and kept in the directory. */
  readonly secret?: string | undefined;
  /** Where the data files are. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** Collections of your own beside `items` (`defineCollection`). */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  /** What is asked before each write to users, items and own collections, and told after it. */
  readonly hooks?: Hooks | undefined;
  /** The machine's if absent. */
  readonly clock?: Clock | undefined;
  /** The operating system's if absent. */
  readonly random?: Random | undefined;
  /** Made by `createLog`. Absent: faults alone are told, on standard error. */
  readonly log?: Log | undefined;
  /** Called once when nothing can be written any more: reads go on, but the process should end. */
  readonly onFailure?: (() => void) | undefined;
}

/** The store with every collection registered, and the resources upon it. */
export type Data = ReturnType<typeof openData>;

/** Where nobody gave a log. A fault has to leave a trace, and nothing else is anybody's business. */
export const faultLog: Log = {
  ...silentLog,
  message(level, message, details) {
    if (level === 'error') process.stderr.write(`${JSON.stringify({ level, message, ...details })}\n`);
  },
};

/**
 * Puts the resources upon a store that has not started: for an application, or for commands, which sign nobody in.
 * @throws RangeError for a setting that is not allowed, InvariantError for collections that do not fit together
 */
export function openData(options: DataOptions) {
  const { clock = systemClock, random = systemRandom, log = faultLog, hooks = {}, collections = [] } = options;
  const settings = settingsOf(options);
  const { directory, secret } = options;
  for (const [name, value] of Object.entries({ directory, secret })) {
    if (value === undefined || (typeof value === 'string' && value !== '')) continue;
    throw new RangeError(`Cannot use ${name}: must be a text that is not empty`);
  }
  const files = directory === undefined ? undefined : new NodeFiles(directory);
  const store = openStore({
    files,
    clock,
    random,
    onFailure(error) {
      log.message('error', 'The store has failed', { reason: error instanceof Error ? error.message : '' });
      options.onFailure?.();
    },
    onNotice: (notice, level = 'warn') => log.message(level, `The store says: ${notice}`),
  });

  let ring: KeyRing | undefined;
  const keys = {
    /** What signs and verifies. */
    get ring(): KeyRing {
      return (ring ??= newKeyRing(random, clock.now()));
    },
    /**
     * Takes the secret or what is in the file now; without either it makes a ring, and writes the file.
     * @throws KeyRingError for a secret or a file that cannot be used, and nothing has changed
     */
    async load(): Promise<KeyRing> {
      const found = secret === undefined ? files && (await readKeyRing(files)) : keyRingOfSecret(secret, clock.now());
      const read = found ?? newKeyRing(random, clock.now());
      if (found === undefined && files !== undefined) {
        await replaceFile(files, keyFile, Buffer.from(serialiseKeyRing(read)));
      }
      return (ring = read);
    },
  };

  const audit: Audit = (event, details) => log.security(event, details);
  const passwords = createPasswords({ random, ...settings });
  const sessions = createSessions(store, {
    clock,
    random,
    lifetimes: {
      cookie: { idleSeconds: settings.sessionIdleSeconds, maxSeconds: settings.sessionLifetimeSeconds },
      refresh: { idleSeconds: limits.refreshIdleSecondsMax, maxSeconds: limits.refreshLifetimeSecondsMax },
    },
    perUserMax: settings.sessionsPerUser,
    ring: () => keys.ring,
    audit,
  });
  const throttle = new Throttle({ clock, random });
  const write = hookedWrite(store, hooks, (error) => logFault(log, 'The hook afterWrite failed', error));
  const users = createUsers({ store, write, sessions, passwords, throttle, audit });
  const itemResource = createCollection(items, store, write);
  const others = collections.map((declared) => createCollection(declared, store, write));
  const singulars = [items, ...collections].map(({ singular }) => singular);
  const twice = singulars.find((singular, index) => singulars.indexOf(singular) < index);
  invariant(twice === undefined, `records of two collections cannot both be called "${twice}"`);
  const signIn = createSignIn({ store, users, sessions, passwords, audit });
  return { settings, keys, store, users, sessions, signIn, items: itemResource, others };
}

/** Tells of a fault that no caller is told of. */
export function logFault(log: Log, message: string, error: unknown, id?: string): void {
  log.message('error', message, { id, stack: error instanceof Error ? error.stack : String(error) });
}
