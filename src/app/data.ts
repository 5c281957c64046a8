import type { Audit } from '../accounts/events.ts';
import type { AccountParts } from '../accounts/parts.ts';
import { accountRecords, type AccountRecords } from '../accounts/records.ts';
import { Sessions } from '../accounts/sessions.ts';
import { SignIn } from '../accounts/sign-in.ts';
import { userFields } from '../accounts/user-fields.ts';
import { Users } from '../accounts/users.ts';
import {
  KeyRingError,
  keyRingOfSecret,
  newKeyRing,
  parseKeyRing,
  serialiseKeyRing,
  type KeyRing,
} from '../auth/keys.ts';
import { Passwords } from '../auth/passwords.ts';
import { Throttle } from '../auth/throttle.ts';
import { invariant, reasonOf } from '../base/errors.ts';
import type { Clock, Random } from '../base/system.ts';
import { ChangeFeed } from '../collections/change-feed.ts';
import { servedCollections } from '../collections/served.ts';
import { IdempotencyKeys } from '../collections/idempotency.ts';
import { Registry } from '../collections/registry.ts';
import { CollectionResource } from '../collections/resource.ts';
import { Writes } from '../collections/writes.ts';
import { representationWriter } from '../schema/record.ts';
import { logError } from '../log/log.ts';
import { readWhole, replaceFile, type Files } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { openStore } from '../store/open-store.ts';
import type { Writer } from '../store/writer.ts';
import type { CompleteOptions } from './options.ts';
import type { SharedPlace } from './shared-place.ts';

/** The store with every collection registered, and the services that work on it. */
export interface Data {
  readonly keys: Keys;
  readonly store: Writer;
  readonly writes: Writes;
  readonly records: AccountRecords;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  /** All collections except users. `items` comes first, if it is served. */
  readonly collections: readonly CollectionResource[];
}

/** The key ring that an app signs and verifies with. */
export interface Keys {
  /** The ring that was loaded last. */
  ring(): KeyRing;
  /**
   * Loads the ring from the secret or the key file. Without either, makes a ring and
   * writes the file; in memory, a ring that was made before stays.
   * @throws KeyRingError for a secret or a file that cannot be used; the former ring
   *   stays in use
   */
  load(): Promise<void>;
  /** Called with each ring and the one before it, before anything else runs. */
  onRing: (ring: KeyRing, former: KeyRing | undefined) => void;
}

/**
 * The file of the key ring, in the data directory. Its secrets sign every token, so its
 * mode is 0600.
 */
export const keyFile = 'keys.json';

/**
 * Reads the ring from its file; `undefined` if there is none.
 * @throws KeyRingError that says what to do
 */
export async function readKeyRing(files: Files): Promise<KeyRing | undefined> {
  const content = await readWhole(files, keyFile);
  try {
    return content && parseKeyRing(content);
  } catch (error) {
    if (!(error instanceof KeyRingError)) throw error;
    throw new KeyRingError(
      `${error.message}; put ${keyFile} back from a backup, or remove it to get new keys`,
    );
  }
}

/**
 * Registers users, sessions and collections with a store that has not started. With
 * `place`, its log is that of the store. `audit` receives the security events.
 * @throws InvariantError for a collection that was not declared by `defineCollection`
 */
export function openData(
  options: CompleteOptions,
  audit: Audit = () => undefined,
  place?: SharedPlace,
): Data {
  const { settings, directory, hooks, clock, random, log } = options;
  const declarations = servedCollections(options);
  const files = directory === undefined ? undefined : new NodeFiles(directory);
  const store = openStore({
    files,
    log: place?.log,
    atRest: settings.atRest === 'on',
    clock,
    random,
    onFailure(error) {
      log.message('error', 'The store has failed', { reason: reasonOf(error) });
      options.onFailure?.(error);
    },
    onNotice: (notice, level = 'warn') => log.message(level, `The store says: ${notice}`),
  });
  const keys = createKeys(files, options.secret, clock, random, place);
  const onError = (error: unknown): void => logError(log, 'The hook afterWrite failed', error);
  const passwords = new Passwords({ random, clock, ...settings });
  const idempotencyKeys = new IdempotencyKeys({ store, clock, passwords, ring: keys.ring });
  const records = accountRecords(store);
  const registry = new Registry(store, declarations);
  const writes = new Writes({ store, hooks, registry, idempotencyKeys, onError });
  const parts: AccountParts = {
    ...records,
    ...settings,
    store,
    writes,
    clock,
    passwords,
    throttle: new Throttle(clock),
    random,
    audit,
    ring: keys.ring,
  };
  const sessions = new Sessions(parts);
  return {
    keys,
    store,
    writes,
    records,
    users: new Users(parts, sessions),
    sessions,
    signIn: new SignIn(parts, sessions),
    collections: registry.all.map((declared) => new CollectionResource(declared, clock)),
  };
}

/** Returns the feed of the changes of all collections. */
export function openFeed({ store, users, collections }: Data, clock: Clock): ChangeFeed {
  const declared = collections.map(({ declaration: { name, fields, access } }) => ({
    name,
    access: access.list,
    write: representationWriter(fields),
  }));
  return new ChangeFeed(store, clock, [
    { name: users.records.name, access: 'admin', write: representationWriter(userFields) },
    ...declared,
  ]);
}

function createKeys(
  files: Files | undefined,
  secret: string | undefined,
  clock: Clock,
  random: Random,
  place?: SharedPlace,
): Keys {
  // A secret that cannot be used is refused before a store is made.
  const configured = secret === undefined ? undefined : keyRingOfSecret(secret, clock.now());
  let ring: KeyRing | undefined;
  const use = (next: KeyRing): void => {
    const former = ring;
    ring = next;
    keys.onRing(next, former);
  };
  const keys: Keys = {
    ring() {
      invariant(ring !== undefined, 'the key ring is loaded before the first request');
      return ring;
    },
    async load() {
      if (place !== undefined) return place.loadKeys();
      const found = configured ?? (files === undefined ? ring : await readKeyRing(files));
      const loaded = found ?? newKeyRing(random, clock.now());
      if (found === undefined && files !== undefined) {
        await replaceFile(files, keyFile, Buffer.from(serialiseKeyRing(loaded)));
      }
      use(loaded);
    },
    onRing: () => undefined,
  };
  if (place !== undefined) place.onRing = use;
  return keys;
}
