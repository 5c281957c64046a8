import { problemReply } from '../../api/replies.ts';
import type { SharedPurpose, SharedTools } from '../../api/shared-place.ts';
import {
  KeyRingError,
  keyRingOfSecret,
  newKeyRing,
  parseKeyRing,
  serialiseKeyRing,
  type KeyRing,
} from '../../auth/keys.ts';
import { CairnError, readReason } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Clock, Random } from '../../base/system.ts';
import { ownerField } from '../../collections/declared-rules.ts';
import { servedCollections, type Served } from '../../collections/served.ts';
import { OptionError, type ClusterOptions } from '../../config/options.ts';
import type { Handle, Reply, Request } from '../../http/message.ts';
import type { Log } from '../../log/log.ts';
import { referenceIn, type Field } from '../../schema/field.ts';
import { takeImage, type Image } from '../../store/format/snapshot.ts';
import { newEpoch } from '../../store/log.ts';
import { isServerTable, Tables } from '../../store/memory/table.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/store.ts';
import type { Declaration } from './declaration.ts';
import { ClusterError, Etcd, hasValue, isAt, put, range, remove } from './etcd.ts';
import { findLog, encodeMeta, noCluster, openMs, roomTest } from './founding.ts';
import { firstHead } from './group-format.ts';
import { SharedLog } from './shared-log.ts';
import { writeSnapshot, type LogPlace } from './shared-snapshot.ts';

export interface NodeOptions extends Served {
  readonly secret?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Prepares a node. It contacts etcd when its store starts. @throws OptionError */
export function joinCluster(
  cluster: ClusterOptions,
  options: NodeOptions,
  purpose: SharedPurpose,
): ClusterNode {
  // In etcd, only a table's name shows if it holds users or a collection called `users`.
  if (options.users === false)
    throw new OptionError('Cannot use "users": false in a cluster: remove it, or use --data');
  return new ClusterNode(cluster, options, purpose);
}

export class ClusterNode implements SharedTools, LogPlace {
  readonly etcd: Etcd;
  readonly prefix: string;
  /** The id of the key derived from `secret`; `null` if the key ring is in etcd. */
  readonly kid: string | null;
  onRing: SharedTools['onRing'] = () => undefined;
  readonly #cluster: ClusterOptions;
  readonly #options: NodeOptions;
  readonly #purpose: SharedPurpose;
  readonly #keys: string;
  readonly #password: string;
  #ring: KeyRing | undefined;
  #log: SharedLog | undefined;

  constructor(cluster: ClusterOptions, options: NodeOptions, purpose: SharedPurpose) {
    const { secret, clock, random } = options;
    const { members, prefix = 'cairn/', tls = {}, user } = cluster;
    this.#cluster = cluster;
    this.#options = options;
    this.#purpose = purpose;
    this.prefix = prefix;
    this.#keys = `${prefix}keys`;
    this.#password = `${prefix}admin-password`;
    this.etcd = new Etcd({ members, tls, user, onNotice: this.#notify }, random(1)[0] ?? 0);
    this.kid = secret === undefined ? null : keyRingOfSecret(secret, clock.now()).keys[0].kid;
  }

  readonly log = (tables: Tables): SharedLog => {
    const { maxAgeMs = 5000 } = this.#cluster;
    const { clock, random } = this.#options;
    this.#log = new SharedLog(
      {
        etcd: this.etcd,
        prefix: this.prefix,
        kid: this.kid,
        creates: this.#purpose === 'serve',
        declaration: this.#purpose === 'command' ? undefined : describeCollections(this.#options),
        maxAgeMs,
        clock,
        random,
        onNotice: this.#notify,
        onKeys: (content) => this.#takeKeys(content),
      },
      tables,
    );
    return this.#log;
  };

  readonly #notify = (notice: string, level: 'warn' | 'error' = 'warn'): void =>
    this.#options.log.message(level, `The cluster says: ${notice}`);

  #takeKeys(content: Buffer): void {
    if (this.kid !== null) return;
    try {
      this.#ring = this.#parseRing(content);
      this.onRing(this.#ring);
    } catch (error) {
      // A bad ring in etcd must not end running nodes.
      if (this.#ring === undefined) throw error;
      this.#notify(`${readReason(error)}. The previous keys stay in use`, 'error');
    }
  }

  /** @throws KeyRingError that names the place in etcd */
  #parseRing(content: Buffer): KeyRing {
    try {
      return parseKeyRing(content);
    } catch (error) {
      throw new KeyRingError(`${readReason(error)}; it is ${this.#keys} in etcd`);
    }
  }

  async loadKeys(): Promise<void> {
    const { random, clock } = this.#options;
    const make = (found?: KeyRing) => found ?? newKeyRing(random, clock.now());
    const made = this.#ring ?? (await this.changeKeys(make));
    // The log may have brought a later ring meanwhile.
    this.onRing((this.#ring ??= made));
  }

  async changeKeys<R extends KeyRing | undefined>(change: (ring?: KeyRing) => R): Promise<R> {
    for (;;) {
      const success = [range(`${this.prefix}meta`), range(this.#keys)];
      const { found } = await this.etcd.txn({ success }, AbortSignal.timeout(openMs));
      const [[made] = [], [kept] = []] = found;
      if (made === undefined) throw noCluster(this.prefix, undefined);
      const former = kept && this.#parseRing(kept.value);
      const next = change(former);
      if (next === undefined || next === former) return next;
      const compare = [isAt(this.#keys, kept?.revision ?? 0)];
      const text = serialiseKeyRing(next);
      const failure = [range(this.#keys)];
      const answer = await this.etcd.txn({ compare, success: [put(this.#keys, text)], failure });
      // An earlier attempt may have succeeded without a response.
      const isWritten = String(answer.found[0]?.[0]?.value) === text;
      if (answer.succeeded || isWritten) return next;
    }
  }

  onlyCurrent(handle: Handle, store: Store, alwaysServed: ReadonlySet<string>): Handle {
    const isConfirmed = this.#cluster.sessions === 'confirmed';
    return (request) => {
      const answerStale = (): Reply => problemReply(stale, request);
      if (this.#log?.isCurrent === false && !alwaysServed.has(request.target)) {
        return answerStale();
      }
      const handleAgain = () => store.confirm().then(() => handle(request), answerStale);
      const mayHaveEnded = isConfirmed && request.fields.get('cookie') !== undefined;
      if (mayHaveEnded || isAhead(request, store)) return handleAgain();
      const afterError = (error: unknown): Promise<Reply> => {
        if (isUnknownHere(error)) return handleAgain();
        throw error;
      };
      try {
        const reply = handle(request);
        return reply instanceof Promise ? reply.catch(afterError) : reply;
      } catch (error) {
        return afterError(error);
      }
    };
  }

  /** Only servers create a cluster. */
  async #open() {
    const { clock, random } = this.#options;
    let tables = new Tables();
    const store = openStore({ clock, random, log: (given) => this.log((tables = given)) });
    await store.start();
    return { store, tables };
  }

  async read() {
    const { store, tables } = await this.#open();
    const image = takeImage(tables.values(), store.epoch, store.sequence);
    const ring = this.kid === null ? await this.changeKeys((found) => found) : undefined;
    await store.close();
    return { image, keys: ring && Buffer.from(serialiseKeyRing(ring)) };
  }

  /**
   * @throws ClusterError if the prefix is not empty, or if a collection has the name of a table of
   * the server, such as `users`
   */
  async write({ views, through }: Image): Promise<void> {
    const { prefix } = this;
    const { random } = this.#options;
    const refusal = (problem: string): ClusterError =>
      new ClusterError(78, `Cannot restore to ${prefix} in etcd: ${problem}`);
    for (const { name, isServers } of views)
      if (isServers !== isServerTable(name))
        throw refusal(`${name} is a collection, and in a cluster a table of the server; ${rename}`);
    const key = `${prefix}head`;
    const name = random(8).toString('hex');
    const { metaRevision } = await findLog({ ...this, creates: true, random }, new Tables());
    const isEmpty = hasValue(key, JSON.stringify(firstHead));
    const compare = [isAt(`${prefix}meta`, metaRevision), isEmpty];
    const head = { ...firstHead, sequence: through };
    const also = [put(key, JSON.stringify(head))];
    if (await writeSnapshot(this, { views, head }, name, compare, also)) return;
    throw refusal('it is not empty; use another --cluster-prefix');
  }

  /**
   * Ends running nodes, invalidates earlier entity tags, and lets the next node declare the form of
   * records. A snapshot first replaces record versions that would no longer fit its declaration.
   */
  async renewEpoch(): Promise<void> {
    const { store } = await this.#open();
    await store.checkpoint();
    const key = `${this.prefix}meta`;
    const [[meta] = []] = (await this.etcd.txn({ success: [range(key)] })).found;
    const compare = [isAt(key, meta?.revision ?? 0)];
    const renewed = encodeMeta(newEpoch(this.#options.random), this.kid);
    await this.etcd.txn({ compare, success: [put(key, renewed)] });
    await store.close();
  }

  async keep(password: string) {
    const compare = [isAt(this.#password, 0)];
    const kept = range(this.#password);
    const success = [put(this.#password, password), kept];
    const { found } = await this.etcd.txn({ compare, success, failure: [kept] });
    const where = `etcd: see "etcdctl get --print-value-only ${this.#password}"`;
    return { password: String(found.at(-1)?.[0]?.value), where };
  }

  forget() {
    return this.etcd.txn({ success: [remove(this.#password)] });
  }

  /** @throws ClusterError */
  async testRoom(): Promise<void> {
    await this.etcd.txn(roomTest(this.prefix), AbortSignal.timeout(openMs));
  }
}

const rename =
  'rename it in what "cairn export" prints, "cairn import" that into a directory, and restore this';

function describeCollections(options: NodeOptions): Declaration {
  const forms = servedCollections(options).flatMap(({ name, isSingle, fields, ownerRemoved }) => [
    ...(isSingle ? [[`${name}.id`, { kind: 'single' }] as const] : []),
    ...Object.entries({ ...fields, ...(ownerRemoved && { ownerId: ownerField }) }).map(
      ([field, each]) => {
        const { to = '' } = referenceIn(each) ?? {};
        return [`${name}.${field}`, { ...describeField(each), ...(to && { to }) }] as const;
      },
    ),
  ]);
  return Object.fromEntries(forms);
}

/**
 * Returns the members of a field that other nodes have to know: all except descriptions and rules
 * for writes and queries only. Unset flags are omitted, and members are sorted by name.
 */
function describeField(field: Field): JsonObject {
  const { optional, readOnly, nullable = false, ...others } = field;
  const required = readOnly === true || !(optional || others.default !== undefined);
  const within = field.kind === 'object' && {
    fields: inOrder(
      Object.entries(field.fields).map(([name, each]) => [name, describeField(each)]),
    ),
  };
  // Elements are never absent.
  const element = field.kind === 'list' && {
    of: { ...describeField(field.of), required: undefined },
  };
  const compared = Object.entries({ ...others, ...within, ...element }).filter(
    ([name, value]) => !notCompared.has(name) && (value !== false || name === 'default'),
  );
  const form = inOrder([...compared, ['nullable', nullable], ['required', required]]);
  return JSON.parse(JSON.stringify(form));
}

const notCompared = new Set([
  'min',
  'max',
  'bytesMax',
  'multiline',
  'like',
  'show',
  'description',
  'example',
  'label',
  'format',
  'colors',
  'set',
]);

const inOrder = (members: readonly (readonly [name: string, value: unknown])[]): object =>
  Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** Another node may know these credentials. */
function isUnknownHere(error: unknown): boolean {
  return error instanceof CairnError && ['invalid_session', 'invalid_token'].includes(error.code);
}

const stale = new CairnError(
  'store_unavailable',
  'Cannot respond: etcd does not answer; try again',
  {
    retryAfterSeconds: 2,
  },
);
/** Header fields that name entity tags or events. So can the target. */
const namingFields = ['if-match', 'if-none-match', 'last-event-id'];

/** True if a request names a version or event that is not published here yet. */
function isAhead({ fields, target }: Request, store: Store): boolean {
  const named = [target, ...namingFields.map((name) => fields.get(name))].join();
  const commits = [...named.matchAll(/([0-9a-f]{16})-(\d+)/g)];
  return commits.some(
    ([, epoch, sequence]) => epoch === store.epoch && Number(sequence) > store.sequence,
  );
}
