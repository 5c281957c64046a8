import { notFound, type KeyPrincipal, type Principal } from '../../auth/access.ts';
import { secretHash } from '../../auth/secrets.ts';
import { apiKeyPrefix, invalidToken } from '../../auth/tokens.ts';
import type { AccountContext } from '../../accounts/context.ts';
import { checkPrincipal } from '../../accounts/principal.ts';
import type { ApiKeyRecord } from '../../accounts/records.ts';
import { CairnError } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import { validationFailed } from '../../schema/validate.ts';
import type { Transaction } from '../../store/store.ts';

type NewKey = Pick<ApiKeyRecord, 'name' | 'readOnly' | 'expiresAt'>;

interface MadeKey {
  /** Its only copy: `cairn_` and 256 random bits as 43 characters of base64url. */
  readonly key: string;
  readonly record: ApiKeyRecord;
}

const hourMs = 3_600_000;

export class ApiKeys {
  readonly #context: AccountContext;
  /** Keys whose use is being recorded: of many simultaneous requests, one writes it. */
  readonly #recording = new Set<number>();

  constructor(context: AccountContext) {
    this.#context = context;
  }

  /**
   * Creates a key for a user. `address` is the caller's.
   * @throws CairnError `validation_failed` for a key that has expired; `write_refused` for too many
   */
  make(tx: Transaction, userId: number, input: NewKey, address?: string): MadeKey {
    const { clock, random, audit } = this.#context;
    const keys = tx.of(this.#context.records.apiKeys);
    const key = apiKeyPrefix + random(32).toString('base64url');
    const createdAt = new Date(clock.now()).toISOString();
    const { name, readOnly, expiresAt } = input;
    if (expiresAt !== undefined && expiresAt <= createdAt) {
      const detail = 'must be in the future';
      throw validationFailed([{ pointer: '/expiresAt', code: 'too_small', detail }]);
    }
    for (const each of [...keys.referring('user', userId)])
      if (!this.#isLive(each)) keys.remove(each.id);
    if ([...keys.referring('user', userId)].length >= limits.apiKeysPerUserMax) {
      const most = `a user has at most ${limits.apiKeysPerUserMax}`;
      throw new CairnError('write_refused', `Cannot make the API key: ${most}, so remove one`);
    }
    const record = keys.insert({
      ...{ userId, name, readOnly, createdAt, hash: secretHash(key) },
      ...(expiresAt !== undefined && { expiresAt }),
    });
    tx.onCommit(() => audit('key_made', { userId, keyId: record.id, readOnly, address }));
    return { key, record };
  }

  /** Returns the current role as well. @throws CairnError `invalid_token` */
  resume(key: string): KeyPrincipal {
    const { apiKeys, users } = this.#context.records;
    const record = apiKeys.find('hash', secretHash(key));
    const user = record && users.get(record.userId);
    if (record === undefined || user === undefined || !this.#isLive(record)) throw invalidToken();
    this.#recordUse(record);
    return { kind: 'key', userId: user.id, role: user.role, isReadOnly: record.readOnly };
  }

  /** Oldest first. */
  list(userId: number): ApiKeyRecord[] {
    return this.#context.records.apiKeys.members('user', userId).filter((key) => this.#isLive(key));
  }

  /**
   * Ends one of the principal's keys. Administrators can end any.
   * @throws CairnError `not_found`, `actor_changed`
   */
  remove(tx: Transaction, principal: Principal, keyId: number, address: string): void {
    checkPrincipal(tx, principal, this.#context);
    const keys = tx.of(this.#context.records.apiKeys);
    const record = keys.get(keyId);
    const { userId: by, role } = principal;
    if (record === undefined || (role !== 'admin' && by !== record.userId)) throw notFound();
    const { userId } = record;
    keys.remove(keyId);
    tx.onCommit(() => this.#context.audit('key_removed', { userId, keyId, by, address }));
  }

  #isLive({ expiresAt }: ApiKeyRecord): boolean {
    return expiresAt === undefined || this.#context.clock.now() < Date.parse(expiresAt);
  }

  /** Records the hour in which a key is used, while the request continues. */
  #recordUse({ id, lastUsedAt }: ApiKeyRecord): void {
    const { clock, store } = this.#context;
    const { apiKeys } = this.#context.records;
    const now = clock.now();
    const hour = new Date(now - (now % hourMs)).toISOString();
    const isDue = (last = ''): boolean => last < hour;
    if (!isDue(lastUsedAt) || this.#recording.has(id)) return;
    this.#recording.add(id);
    const written = store.write((tx) => {
      const current = tx.of(apiKeys).get(id);
      if (current !== undefined && isDue(current.lastUsedAt))
        tx.of(apiKeys).replace(id, { ...current, lastUsedAt: hour });
    });
    // If the write fails, the next request tries again.
    const end = (): boolean => this.#recording.delete(id);
    void written.then(end, end);
  }
}
