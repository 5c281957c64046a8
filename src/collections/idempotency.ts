import { createHash } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import { storedRecordCheck } from '../schema/check.ts';
import { integer, text, type Input } from '../schema/field.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';

/** One of perhaps several attempts at the same request (draft-ietf-httpapi-idempotency-key-header). */
export interface Attempt {
  /** The key of the caller's share; each caller has keys of their own. */
  readonly caller: string;
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** What is asked for, without its secrets: it tells requests apart that share a key. */
  readonly content: string;
}

/** Where a request to create something comes from. */
export interface Origin {
  readonly address?: string | undefined;
  /** Absent: it is made once. */
  readonly attempt?: Attempt | undefined;
}

/** What a request has created: one record, or several. */
export interface Created<R extends StoredRecord | StoredRecord[]> {
  readonly created: R;
  /** Whether an earlier attempt has created it. */
  readonly isReplay: boolean;
}

const keptFields = {
  caller: text(),
  /** The hash of the caller and the key, by which the result is found. */
  lookupHash: text(),
  contentHash: text(),
  /** The id of the first record. The others follow it, and all have the revision of this one. */
  firstId: integer({ min: 1 }),
  createdAt: integer(),
};

/** What is kept of a request: its result follows from the request and the ids that it got. */
type KeptResult = StoredRecord & Input<typeof keptFields>;

/**
 * The results of requests that may be sent again. Each is in the same commit as what the request has created, and is
 * looked up in the transaction that would create it: so it is done once, whatever is lost between, and on any node.
 */
export class IdempotencyKeys {
  readonly #results: Collection<KeptResult>;
  readonly #clock: Clock;

  /** Registers the collection of results with a store that has not started. */
  constructor(store: Store, clock: Clock) {
    const misfit = storedRecordCheck(keptFields);
    const isKept = (record: object): record is KeptResult => misfit({ ...record }) === undefined;
    this.#clock = clock;
    this.#results = store.collection<KeptResult>({
      name: 'idempotency-keys',
      parse: (record) => (isKept(record) ? record : misfit(record)),
      unique: { lookup: ({ lookupHash }) => lookupHash },
      groups: { caller: ({ caller }) => caller },
      whenFull: true,
    });
  }

  /**
   * Creates what `create` creates now, unless an earlier attempt has: then it is as `recall` makes it, of the id and
   * the revision of the first record and the time of that attempt. Without an attempt, nothing is kept.
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
    const [lookupHash, contentHash] = [hashOf(`${caller}\n${key}`), hashOf(content)];
    const kept = transaction.find(this.#results, 'lookup', lookupHash);
    // However old it is: a clock that was set forward must not create anything twice.
    if (kept?.contentHash === contentHash) {
      const { firstId: id, revision, createdAt } = kept;
      return { created: recall({ id, revision }, createdAt), isReplay: true };
    }
    if (kept !== undefined && !this.#isOver(kept)) {
      throw new CairnError('key_reused', 'Cannot create: the Idempotency-Key came with another body before');
    }
    const created = create(now);
    const firstId = (Array.isArray(created) ? created[0]?.id : created.id) ?? 0;
    if (kept !== undefined) transaction.remove(this.#results, kept.id);
    this.#makeRoom(transaction, caller);
    transaction.insert(this.#results, { caller, lookupHash, contentHash, firstId, createdAt: now });
    return { created, isReplay: false };
  }

  /** Removes what is over, and where there are too many, the caller's oldest; who has none takes the oldest of all. */
  #makeRoom(transaction: Transaction, caller: string): void {
    const own = transaction.oldest(this.#results, 'caller', caller);
    const oldest = this.#oldest(transaction);
    const count = transaction.countAtMost(this.#results, 'caller', caller);
    const isFull = count >= limits.keysPerCallerMax || this.#results.size >= limits.keysMax;
    const surplus = isFull ? (own ?? oldest) : undefined;
    for (const kept of [own, oldest]) {
      if (kept !== undefined && (kept === surplus || this.#isOver(kept))) transaction.remove(this.#results, kept.id);
    }
  }

  #oldest(transaction: Transaction): KeptResult | undefined {
    for (const block of this.#results.view().blocks) {
      for (const { id } of block) {
        const kept = transaction.get(this.#results, id);
        if (kept !== undefined) return kept;
      }
    }
    return undefined;
  }

  #isOver({ createdAt }: KeptResult): boolean {
    return createdAt + limits.keySecondsMax * 1000 <= this.#clock.now();
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
