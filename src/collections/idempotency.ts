import { hash } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import { storedRecordParser } from '../schema/check.ts';
import type { Input, Shape } from '../schema/field.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';

/**
 * One attempt at a request that may be repeated
 * (draft-ietf-httpapi-idempotency-key-header).
 */
export interface Attempt {
  /** The key of the caller's share. Each caller has its own idempotency keys. */
  readonly caller: string;
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** The request without its secrets, to detect different requests with the same key. */
  readonly content: string;
}

/** Where a request to create records comes from. */
export interface Origin {
  readonly address?: string | undefined;
  /** Absent if the request has no `Idempotency-Key`. */
  readonly attempt?: Attempt | undefined;
}

/** The result of a request that creates one record or several. */
export interface Created<R extends StoredRecord | StoredRecord[]> {
  readonly created: R;
  /** Whether an earlier attempt created it. */
  readonly isReplay: boolean;
}

const keptFields = {
  caller: { kind: 'text' },
  /** Hash of the caller and the key. Results are found by it. */
  lookupHash: { kind: 'text' },
  contentHash: { kind: 'text' },
  /**
   * Id of the first record. The others follow it, and all have the revision of this
   * result.
   */
  firstId: { kind: 'integer', min: 1 },
  /** Milliseconds since the epoch. */
  createdAt: { kind: 'integer' },
} as const satisfies Shape;

/**
 * What is stored about a request. Its response follows from the request and these ids.
 */
type KeptResult = StoredRecord & Input<typeof keptFields>;

/**
 * Results of requests with an `Idempotency-Key`. Each result is committed together with
 * the records of the request, and is looked up in the transaction that would create them.
 * So the records are created once, even after a crash, and on any node.
 */
export class IdempotencyKeys {
  readonly #results: Collection<KeptResult>;
  readonly #clock: Clock;

  /** Registers the collection of results with a store that has not started. */
  constructor(store: Store, clock: Clock) {
    this.#clock = clock;
    this.#results = store.collection<KeptResult>({
      name: 'idempotency-keys',
      parse: storedRecordParser(keptFields),
      unique: { lookup: ({ lookupHash }) => lookupHash },
      groups: { caller: ({ caller }) => caller, all: () => '' },
      whenFull: true,
    });
  }

  /**
   * Runs `create`, unless an earlier attempt did. Then `recall` returns the earlier
   * result from the id and revision of its first record and the time of that attempt.
   * Without an `attempt` nothing is stored.
   * @throws CairnError `key_reused`
   */
  once<R extends StoredRecord | StoredRecord[]>(
    transaction: Transaction,
    attempt: Attempt | undefined,
    create: (now: number) => R,
    recall: (first: StoredRecord, then: number) => R,
  ): Created<R> {
    const now = this.#clock.now();
    if (attempt === undefined) return { created: create(now), isReplay: false };
    const { caller, key, content } = attempt;
    const [lookupHash, contentHash] = [digest(`${caller}\n${key}`), digest(content)];
    const kept = transaction.find(this.#results, 'lookup', lookupHash);
    // At any age: a clock that was set forward must not create anything twice.
    if (kept?.contentHash === contentHash) {
      const { firstId: id, revision, createdAt } = kept;
      return { created: recall({ id, revision }, createdAt), isReplay: true };
    }
    if (kept !== undefined) {
      if (!this.#isExpired(kept)) {
        const message = 'Cannot create the record: the Idempotency-Key was used with another body';
        throw new CairnError('key_reused', message);
      }
      transaction.remove(this.#results, kept.id);
    }
    const created = create(now);
    const [{ id: firstId } = { id: 0 }] = [created].flat();
    this.#makeRoom(transaction, caller);
    const result = { caller, lookupHash, contentHash, firstId, createdAt: now };
    transaction.insert(this.#results, result);
    return { created, isReplay: false };
  }

  /**
   * Removes expired results. Where there are too many, also removes the caller's oldest
   * one, or the oldest of all if the caller has none.
   */
  #makeRoom(transaction: Transaction, caller: string): void {
    const own = transaction.oldest(this.#results, 'caller', caller);
    const oldest = transaction.oldest(this.#results, 'all', '');
    const count = transaction.countAtMost(this.#results, 'caller', caller);
    const isFull = count >= limits.keysPerCallerMax || this.#results.size >= limits.keysMax;
    const surplus = isFull ? (own ?? oldest) : undefined;
    for (const kept of [own, oldest]) {
      if (kept !== undefined && (kept === surplus || this.#isExpired(kept))) {
        transaction.remove(this.#results, kept.id);
      }
    }
  }

  #isExpired({ createdAt }: KeptResult): boolean {
    return createdAt + limits.keySecondsMax * 1000 <= this.#clock.now();
  }
}

const digest = (text: string): string => hash('sha256', text, 'base64url');
