import { hash } from 'node:crypto';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import { storedRecordParser } from '../schema/validate.ts';
import type { Input, Shape } from '../schema/field.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';

/**
 * A request that may be repeated, because it has a key
 * (draft-ietf-httpapi-idempotency-key-header).
 */
export interface KeyedRequest {
  /** The key of the caller's share. Each caller has its own idempotency keys. */
  readonly caller: string;
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** The request without its secrets, to detect different requests with the same key. */
  readonly content: string;
}

/** What is known of a request that creates records. */
export interface CreationRequest {
  readonly address?: string | undefined;
  /** Absent if the request has no `Idempotency-Key`. */
  readonly keyed?: KeyedRequest | undefined;
}

/** The result of a request that creates one record or several. */
export interface Created<R extends StoredRecord | StoredRecord[]> {
  readonly created: R;
  /** Whether an earlier request created it. */
  readonly isReplay: boolean;
}

const keptFields = {
  caller: { kind: 'text' },
  /** The rank of the number of results that the caller had before this one. */
  rank: { kind: 'integer', default: 0 },
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
  readonly #keysMax: number;

  /** Registers the collection of results with a store that has not started. */
  constructor(store: Store, clock: Clock, keysMax: number = limits.keysMax) {
    this.#clock = clock;
    this.#keysMax = keysMax;
    this.#results = store.collection<KeptResult>({
      name: 'idempotency-keys',
      parse: storedRecordParser(keptFields),
      unique: { lookup: ({ lookupHash }) => lookupHash },
      groups: { caller: ({ caller }) => caller, rank: ({ rank }) => rank, all: () => '' },
      whenFull: true,
    });
  }

  /**
   * Runs `create`, unless an earlier request with the key did. Then `recall` returns the
   * earlier result from the id and revision of its first record and the time of that
   * request. Without a key nothing is stored.
   * @throws CairnError `key_reused`
   */
  once<R extends StoredRecord | StoredRecord[]>(
    transaction: Transaction,
    keyed: KeyedRequest | undefined,
    create: (now: number) => R,
    recall: (first: StoredRecord, then: number) => R,
  ): Created<R> {
    const now = this.#clock.now();
    if (keyed === undefined) return { created: create(now), isReplay: false };
    const { caller, key, content } = keyed;
    const [lookupHash, contentHash] = [digest(`${caller}\n${key}`), digest(content)];
    const kept = transaction.of(this.#results).find('lookup', lookupHash);
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
      transaction.of(this.#results).remove(kept.id);
    }
    const created = create(now);
    const first: StoredRecord | undefined = Array.isArray(created) ? created[0] : created;
    invariant(first !== undefined, 'a request creates at least one record');
    const count = transaction.of(this.#results).referring('caller', caller).countAtMost;
    this.#makeRoom(transaction, caller, count);
    const rank = rankOf(count);
    const result = { caller, rank, lookupHash, contentHash, firstId: first.id, createdAt: now };
    transaction.of(this.#results).insert(result);
    return { created, isReplay: false };
  }

  /**
   * Removes expired results. A caller with too many loses its oldest one. Where all callers
   * together have too many, the oldest goes of those with the highest rank, so that the
   * results of callers with few are kept.
   */
  #makeRoom(transaction: Transaction, caller: string, count: number): void {
    const results = this.#results;
    const kept = transaction.of(results);
    const [own] = kept.referring('caller', caller);
    const [oldest] = kept.referring('all', '');
    let surplus = count >= limits.keysPerCallerMax ? own : undefined;
    for (let rank = rankMax; surplus === undefined && results.size >= this.#keysMax; rank -= 1) {
      [surplus = rank < 0 ? oldest : undefined] = kept.referring('rank', rank);
    }
    for (const result of new Set([own, oldest, surplus])) {
      if (result !== undefined && (result === surplus || this.#isExpired(result)))
        kept.remove(result.id);
    }
  }

  #isExpired({ createdAt }: KeptResult): boolean {
    return createdAt + limits.keySecondsMax * 1000 <= this.#clock.now();
  }
}

/** Numbers from 2^n - 1 to 2^(n + 1) - 2 have the rank n. */
const rankOf = (count: number): number => 31 - Math.clz32(count + 1);
const rankMax = rankOf(limits.keysPerCallerMax);

const digest = (text: string): string => hash('sha256', text, 'base64url');
