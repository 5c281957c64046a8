import { createHash, hash } from 'node:crypto';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import type { Reply } from '../http/message.ts';
import { storedRecordParser } from '../schema/stored.ts';
import type { CompleteInput, Shape } from '../schema/field.ts';
import { estimateSize } from '../store/memory/size.ts';
import type { Collection, Store, StoredRecord, Transaction, Unstored } from '../store/store.ts';

/**
 * A request that may be repeated, because it has a key (draft-ietf-httpapi-idempotency-key-header).
 */
export interface KeyedRequest {
  /** The key of the caller's share. Each caller has separate idempotency keys. */
  readonly caller: string;
  readonly key: string;
  readonly line: string;
  readonly body: Buffer;
}

const keptFields = {
  caller: { kind: 'text' },
  /** The hash of caller and key, which identifies the response. */
  lookupHash: { kind: 'text' },
  /** The id of the key with which 0.3 made `digest`. Later versions have none. */
  keyId: { kind: 'text', optional: true },
  /** SHA-256 of method, path and body. Versions before 0.3 have none. */
  digest: { kind: 'text', default: '' },
  status: { kind: 'integer', default: 0 },
  /** The headers: names and values in turn. */
  fields: { kind: 'list', of: { kind: 'text' }, default: [] },
  body: { kind: 'text', default: '' },
  /** Milliseconds since the epoch. */
  createdAt: { kind: 'integer' },
} as const satisfies Shape;

type KeptReply = StoredRecord & CompleteInput<typeof keptFields>;

interface IdempotencyOptions {
  readonly store: Pick<Store, 'collection' | 'memoryMaxBytes'>;
  readonly clock: Clock;
}

/**
 * Stores responses to requests with an `Idempotency-Key`. A response is found, compared and kept in
 * the transaction that writes the request's records. So the records are created once, even after a
 * crash, and by any process.
 */
export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #kept: Collection<KeptReply>;
  /** The most that all kept responses may take. Most of the memory is for other records. */
  readonly #bytesMax: number;
  /** The size of the responses, in total and per caller, including the running batch. */
  #bytes = 0;
  readonly #bytesOf = new Map<string, number>();

  constructor({ store, clock }: IdempotencyOptions) {
    this.#clock = clock;
    const share = store.memoryMaxBytes * limits.keptMemoryShareMax;
    this.#bytesMax = Math.min(limits.keptBytesMax, share);
    this.#kept = store.collection<KeptReply>({
      name: 'idempotency-keys',
      isServers: true,
      parse: storedRecordParser(keptFields),
      unique: { lookup: ({ lookupHash }) => lookupHash },
      groups: { caller: ({ caller }) => caller, all: () => '' },
      whenFull: 'written',
      onCount: (before, after) => {
        if (before !== undefined) this.#count(before.caller, -estimateSize(before));
        if (after !== undefined) this.#count(after.caller, estimateSize(after));
      },
    });
  }

  #count(caller: string, bytes: number): void {
    this.#bytes += bytes;
    const held = (this.#bytesOf.get(caller) ?? 0) + bytes;
    if (held > 0) this.#bytesOf.set(caller, held);
    else this.#bytesOf.delete(caller);
  }

  /** @throws CairnError `key_reused` */
  replay(request: KeyedRequest): Reply | undefined {
    return this.#repeat(this.#kept.find('lookup', hashLookupKey(request)), request);
  }

  /**
   * Returns the response kept for a request, or makes and keeps one.
   * @throws CairnError `key_reused`; whatever `make` throws
   */
  once(tx: Transaction, request: KeyedRequest, make: () => Reply): Reply {
    const records = tx.of(this.#kept);
    const lookupHash = hashLookupKey(request);
    const kept = records.find('lookup', lookupHash);
    const repeated = this.#repeat(kept, request);
    if (repeated !== undefined) return repeated;
    if (kept !== undefined) records.remove(kept.id);
    const reply = make();
    const { status, fields, body = '' } = reply;
    invariant(typeof body === 'string', 'the reply to a request with a key is a text');
    const { caller } = request;
    const [digest, createdAt] = [hashRequest(request), this.#clock.now()];
    const added = { caller, lookupHash, digest, status, fields, body, createdAt };
    if (this.#makeRoom(tx, added)) records.insert(added);
    return reply;
  }

  /** @throws CairnError `key_reused` */
  #repeat(kept: KeptReply | undefined, request: KeyedRequest): Reply | undefined {
    if (kept === undefined) return undefined;
    // 0.3 kept a MAC of another form, and earlier versions kept nothing to compare with.
    const isEarlier = kept.keyId !== undefined || kept.digest === '';
    // At any age: a clock that was set forward must not create anything twice.
    if (!isEarlier && kept.digest === hashRequest(request)) return toReply(kept);
    if (!isEarlier && this.#isExpired(kept)) return undefined;
    const reason = isEarlier ? 'with an earlier version of Cairn' : 'for another request';
    const message = `Cannot repeat the request: the Idempotency-Key was used ${reason}`;
    throw new CairnError('key_reused', `${message}; send another key`);
  }

  /**
   * Makes room for a response, and returns true if it succeeds. Removes the oldest of all if it has
   * expired, then the oldest ones of the caller with the most bytes, so that nobody can use up the
   * room of others.
   */
  #makeRoom(tx: Transaction, added: Unstored<KeptReply>): boolean {
    const records = tx.of(this.#kept);
    const size = estimateSize(added);
    const isFull = (): boolean => this.#bytes + size > this.#bytesMax;
    const [oldest] = records.referring('all', '');
    if (oldest !== undefined && this.#isExpired(oldest)) records.remove(oldest.id);
    const own = records.referring('caller', added.caller);
    const [first] = own;
    if (first !== undefined && own.countAtMost >= limits.keysPerCallerMax) records.remove(first.id);
    if (!isFull()) return true;
    const held = this.#bytesOf.get(added.caller) ?? 0;
    let largest = added.caller;
    let most = size + held;
    for (const [caller, bytes] of this.#bytesOf)
      if (bytes > most) [largest, most] = [caller, bytes];
    const isInVain = this.#bytes - held + size > this.#bytesMax;
    if (largest === added.caller && isInVain) return false;
    for (const { id } of [...records.referring('caller', largest)]) {
      if (!isFull()) break;
      records.remove(id);
    }
    return !isFull();
  }

  #isExpired({ createdAt }: KeptReply): boolean {
    return createdAt + limits.keySecondsMax * 1000 <= this.#clock.now();
  }
}

/** A line feed separates the two, because no method or path contains one. */
const hashRequest = ({ line, body }: KeyedRequest): string =>
  createHash('sha256').update(`${line}\n`).update(body).digest('base64url');

function toReply({ status, fields, body }: KeptReply): Reply {
  const replayed = [...fields.map(String), 'Idempotency-Replayed', 'true'];
  // Such a status has no content, not even an empty one.
  return { status, fields: replayed, body: body === '' ? undefined : body };
}

const hashLookupKey = ({ caller, key }: KeyedRequest): string =>
  hash('sha256', `${caller}\n${key}`, 'base64url');
