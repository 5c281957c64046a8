import { hash } from 'node:crypto';
import type { Key, KeyRing } from '../auth/keys.ts';
import type { Passwords } from '../auth/passwords.ts';
import { Beginnings } from '../base/beginnings.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock } from '../base/system.ts';
import type { Reply } from '../http/message.ts';
import { storedRecordParser } from '../schema/stored.ts';
import type { Input, Shape } from '../schema/field.ts';
import { sizeOf } from '../store/memory/size.ts';
import type { Collection, Store, StoredRecord, Transaction, Unstored } from '../store/store.ts';
import { SizesByCaller } from './kept-sizes.ts';

/**
 * A request that may be repeated, because it has a key
 * (draft-ietf-httpapi-idempotency-key-header).
 */
export interface KeyedRequest {
  /** The key of the caller's share. Each caller has its own idempotency keys. */
  readonly caller: string;
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** The method and the path. */
  readonly line: string;
  /** The body as it was sent. */
  readonly body: Buffer;
  /** Present where the body has a password: the turn of its hash. */
  readonly turn?: string | undefined;
}

const keptFields = {
  caller: { kind: 'text' },
  /** Hash of the caller and the key. Replies are found by it. */
  lookupHash: { kind: 'text' },
  /** Id of the key of the ring with which `digest` was made. */
  keyId: { kind: 'text', default: '' },
  /**
   * HMAC of method, path and body; where the body has a password, scrypt of that HMAC: with a
   * backup, which has the ring, passwords could be guessed at the speed of SHA-256.
   */
  digest: { kind: 'text', default: '' },
  status: { kind: 'integer', default: 0 },
  /** The fields of the reply: names and values in turn. */
  fields: { kind: 'list', of: { kind: 'text' }, default: [] },
  body: { kind: 'text', default: '' },
  /** Milliseconds since the epoch. */
  createdAt: { kind: 'integer' },
} as const satisfies Shape;

/**
 * What is kept of a request: its reply, as it was sent. Records of former editions have no
 * digest, so a repetition of their requests is refused until they make room for others.
 */
type KeptReply = StoredRecord & Input<typeof keptFields>;

/** A request, compared with what is kept for its key. */
interface Compared {
  /** The reply to repeat. */
  readonly reply?: Reply;
  /** What there was to compare with, and has expired; 0 for nothing. */
  readonly keptId: number;
  /** What to keep of the request. */
  readonly made: Pick<KeptReply, 'caller' | 'lookupHash' | 'keyId' | 'digest'>;
}

interface IdempotencyOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ring: () => KeyRing;
  readonly passwords: Passwords;
}

/**
 * Replies to requests with an `Idempotency-Key`. Each is committed together with the records of
 * the request, and is looked up in the transaction that would create them. So the records are
 * created once, even after a crash, and by any process.
 */
export class IdempotencyKeys {
  readonly #options: IdempotencyOptions;
  readonly #kept: Collection<KeptReply>;
  readonly #sizes = new SizesByCaller();
  /** The most that all kept replies may take: most of the memory is for other records. */
  readonly #bytesMax: number;
  readonly #beginnings: Beginnings;

  /** Registers the collection of replies with a store that has not started. */
  constructor(options: IdempotencyOptions) {
    this.#options = options;
    const share = options.store.memoryMaxBytes * limits.keptMemoryShareMax;
    this.#bytesMax = Math.min(limits.keptBytesMax, share);
    this.#beginnings = new Beginnings(options.clock);
    this.#kept = options.store.collection<KeptReply>({
      name: 'idempotency-keys',
      isServers: true,
      parse: storedRecordParser(keptFields),
      unique: { lookup: ({ lookupHash }) => lookupHash },
      groups: { caller: ({ caller }) => caller, all: () => '' },
      whenFull: 'written',
    });
    this.#kept.follow((before, after) => {
      if (before !== undefined) this.#sizes.add(before.caller, -sizeOf(before));
      if (after !== undefined) this.#sizes.add(after.caller, sizeOf(after));
    });
  }

  /**
   * Returns the published reply to a request. Hashes no password where none is kept for its key.
   * @throws CairnError as `compare`
   */
  async replay(request: KeyedRequest): Promise<Reply | undefined> {
    const kept = this.#kept.find('lookup', lookupHashOf(request));
    return kept && (await this.compare(request)).reply;
  }

  /**
   * Compares a request with what is published for its key.
   * @throws CairnError `key_reused` for another request; `overloaded`
   */
  async compare(request: KeyedRequest): Promise<Compared> {
    const { caller } = request;
    const ring = this.#options.ring();
    const lookupHash = lookupHashOf(request);
    const kept = this.#kept.find('lookup', lookupHash);
    if (kept !== undefined) {
      const madeWith = ring.keys.find(({ kid }) => kid === kept.keyId);
      const isSame = madeWith !== undefined && (await this.#isSame(request, kept, madeWith));
      // At any age: a clock that was set forward must not create anything twice.
      if (isSame) return { reply: replyOf(kept), keptId: kept.id, made: kept };
      const isComparable = madeWith !== undefined;
      if (!isComparable || !this.#isExpired(kept)) {
        const reason = isComparable ? 'with another body' : 'before the key ring was replaced';
        const message = `Cannot repeat the request: the Idempotency-Key was used ${reason}`;
        throw new CairnError('key_reused', message);
      }
    }
    const [signingKey] = ring.keys;
    const digest = await this.#digest(request, signingKey);
    return { keptId: kept?.id ?? 0, made: { caller, lookupHash, keyId: signingKey.kid, digest } };
  }

  /**
   * Makes a reply and keeps it, unless something else is kept by now than was compared: then it
   * returns `undefined`.
   */
  once(tx: Transaction, { keptId, made }: Compared, make: () => Reply): Reply | undefined {
    const kept = tx.of(this.#kept);
    if ((kept.find('lookup', made.lookupHash)?.id ?? 0) !== keptId) return undefined;
    kept.remove(keptId);
    const reply = make();
    const { status, fields, body = '' } = reply;
    invariant(typeof body === 'string', 'the reply to a request with a key is a text');
    const added = { ...made, status, fields, body, createdAt: this.#options.clock.now() };
    this.#makeRoom(tx, added);
    kept.insert(added);
    return reply;
  }

  async #isSame(request: KeyedRequest, { digest }: KeptReply, madeWith: Key): Promise<boolean> {
    const { turn } = request;
    if (turn === undefined) return digest === macOf(request, madeWith);
    return this.#options.passwords.verify(macOf(request, madeWith), digest, turn);
  }

  async #digest(request: KeyedRequest, key: Key): Promise<string> {
    const { turn } = request;
    if (turn === undefined) return macOf(request, key);
    return this.#options.passwords.hash(macOf(request, key), turn);
  }

  /**
   * Removes expired replies. A caller with too many loses its oldest one. Where all together are
   * too large, the oldest ones go of those that hold the most, so that the replies of callers
   * with few are kept.
   */
  #makeRoom(tx: Transaction, added: Unstored<KeptReply>): void {
    const kept = tx.of(this.#kept);
    const own = kept.referring('caller', added.caller);
    const [oldestOwn] = own;
    const [oldest] = kept.referring('all', '');
    const surplus = own.countAtMost >= limits.keysPerCallerMax ? oldestOwn : undefined;
    const removed = new Set<number>();
    let excess = this.#sizes.sum + sizeOf(added) - this.#bytesMax;
    const remove = (reply: KeptReply): void => {
      if (!removed.has(reply.id)) excess -= sizeOf(reply);
      removed.add(reply.id);
    };
    for (const reply of [oldestOwn, oldest])
      if (reply !== undefined && (reply === surplus || this.#isExpired(reply))) remove(reply);
    for (const caller of excess > 0 ? this.#sizes.largest() : []) {
      for (const reply of kept.referring('caller', caller)) {
        if (excess <= 0) break;
        remove(reply);
      }
      if (excess <= 0) break;
    }
    for (const id of removed) kept.remove(id);
  }

  #isExpired(kept: KeptReply): boolean {
    const endsAt = this.#beginnings.of(kept) + limits.keySecondsMax * 1000;
    return endsAt <= this.#options.clock.now();
  }
}

/** The line end parts the two: no method or path has one. */
const macOf = ({ line, body }: KeyedRequest, { requestMac }: Key): string =>
  requestMac(`${line}\n`, body);

function replyOf({ status, fields, body }: KeptReply): Reply {
  const replayed = [...fields.map(String), 'Idempotency-Replayed', 'true'];
  // Such a status has no content, not even an empty one.
  return { status, fields: replayed, body: body === '' ? undefined : body };
}

const lookupHashOf = ({ caller, key }: KeyedRequest): string =>
  hash('sha256', `${caller}\n${key}`, 'base64url');
