import type { Audit } from '../accounts/events.ts';
import type { AccountContext } from '../accounts/context.ts';
import { Invitations } from '../accounts/invitations.ts';
import { accountRecords } from '../accounts/records.ts';
import { Sessions } from '../accounts/sessions.ts';
import { SignIn } from '../accounts/sign-in.ts';
import { Users } from '../accounts/users.ts';
import { Passwords } from '../auth/passwords.ts';
import { Throttle } from '../auth/throttle.ts';
import { readReason } from '../base/errors.ts';
import { servedCollections } from '../collections/served.ts';
import { IdempotencyKeys } from '../collections/idempotency.ts';
import { makeRegistry, targetUsers } from '../collections/registry.ts';
import type { TableRules } from '../collections/declared.ts';
import { Writes } from '../collections/writes.ts';
import { NodeFiles } from '../store/disk/node-files.ts';
import { Tables } from '../store/memory/table.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import type { Writer } from '../store/writer.ts';
import { SigningKeys } from './key-file.ts';
import type { CompleteOptions } from './options.ts';
import type { Context } from '../api/context.ts';
import type { SharedPlace } from '../api/shared-place.ts';

/** The store with every collection registered, and the services on top of it. */
export interface Data extends Omit<Context, 'tokens' | 'listPool'> {
  readonly keys: SigningKeys;
  readonly store: Writer;
}

/** The tables of a server without users: empty, and in no store. */
const emptyTables: Pick<Store, 'collection'> = {
  collection: (definition) => new Tables().add(definition),
};

/**
 * Registers users, sessions and collections with a store that has not started. `place` provides the
 * store's log, `audit` receives security events, and `rules` adds indexes.
 * @throws InvariantError for a collection that was not declared by `defineCollection`
 */
export function openData(
  options: CompleteOptions,
  audit: Audit = () => undefined,
  place?: SharedPlace,
  rules?: TableRules,
): Data {
  const { settings, directory, clock, random, log } = options;
  const files = directory === undefined ? undefined : new NodeFiles(directory);
  const store = openStore({
    files,
    log: place?.log,
    memoryMax: settings.memoryMax && settings.memoryMax * 2 ** 20,
    clock,
    random,
    onFailure(error) {
      log.message('error', 'The store has failed', { reason: readReason(error) });
      options.onFailure?.(error);
    },
    onNotice: (notice, level = 'warn') => log.message(level, `The store says: ${notice}`),
  });
  const keys = new SigningKeys({ files, secret: options.secret, clock, random, place, audit });
  const passwords = new Passwords({ random, ...settings });
  const idempotencyKeys = new IdempotencyKeys({ store, clock });
  const hasUsers = options.users !== false;
  const records = accountRecords(hasUsers ? store : emptyTables);
  const users = targetUsers(records.users);
  const { references } = options;
  const registry = makeRegistry({
    store,
    declarations: servedCollections(options),
    users: hasUsers ? users : undefined,
    references,
    recordsPerOwner: settings.recordsPerOwner,
    rules,
  });
  const writes = new Writes({ store, idempotencyKeys, observe: options.observer?.(registry) });
  const context: AccountContext = {
    ...settings,
    records,
    store,
    writes,
    clock,
    passwords,
    throttle: new Throttle(clock),
    random,
    audit,
    references,
    usersAsTarget: users,
    roles: options.roles ?? [],
    ring: keys.ring,
  };
  const sessions = new Sessions(context);
  return {
    ...context,
    keys,
    store,
    registry,
    hasUsers,
    users: new Users(context, sessions),
    sessions,
    signIn: new SignIn(context, sessions),
    invitations: new Invitations(context, sessions),
  };
}
