import { problemReply } from '../../api/replies.ts';
import type { SharedPlace, SharedPurpose, SharedTools } from '../../api/shared-place.ts';
import {
  KeyRingError,
  keyRingOfSecret,
  newKeyRing,
  parseKeyRing,
  serialiseKeyRing,
  type KeyRing,
} from '../../auth/keys.ts';
import { CairnError, reasonOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Clock, Random } from '../../base/system.ts';
import { ownerField } from '../../collections/registry.ts';
import { servedCollections, type Served } from '../../collections/served.ts';
import { OptionError, type ClusterOptions } from '../../config/options.ts';
import type { Reply, Request } from '../../http/message.ts';
import type { Log } from '../../log/log.ts';
import { referenceIn, type Field } from '../../schema/field.ts';
import { imageOf, type Image } from '../../store/format/snapshot.ts';
import { newEpoch } from '../../store/log.ts';
import { isServerTable, Tables } from '../../store/memory/table.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/store.ts';
import type { Declaration } from './declaration.ts';
import { ClusterError, Etcd, hasValue, isAt, put, range, remove } from './etcd.ts';
import { findLog, metaOf, noCluster, openMs, roomTest } from './founding.ts';
import { firstHead } from './group-format.ts';
import { SharedLog } from './shared-log.ts';
import { writeSnapshot, type Place } from './shared-snapshot.ts';

/** What a node needs of its app. */
export interface NodeOptions extends Served {
  readonly secret?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** This process as a node of a cluster. */
export interface ClusterNode extends SharedPlace, Place {
  /** The id of the key made of `secret`; `null` where the key ring is in etcd. */
  readonly kid: string | null;
}

/** Prepares a node. Nothing is asked before its store starts. @throws OptionError */
export function joinCluster(
  cluster: ClusterOptions,
  options: NodeOptions,
  purpose: SharedPurpose,
): ClusterNode {
  const { secret, clock, random, log } = options;
  // What a table holds is told by its name alone.
  if (options.users === false) throw new OptionError('Cannot use "users": false in a cluster');
  const { members, prefix = 'cairn/', maxAgeMs = 5000, sessions, tls = {}, user } = cluster;
  const onNotice = (notice: string, level: 'warn' | 'error' = 'warn'): void =>
    log.message(level, `The cluster says: ${notice}`);
  const etcd = new Etcd({ members, tls, user, onNotice }, random(1)[0] ?? 0);
  const given = secret === undefined ? undefined : keyRingOfSecret(secret, clock.now());
  const kid = given?.keys[0].kid ?? null;
  const keys = `${prefix}keys`;
  /** @throws KeyRingError that names the place in etcd */
  const ringOf = (content: Buffer): KeyRing => {
    try {
      return parseKeyRing(content);
    } catch (error) {
      throw new KeyRingError(`${reasonOf(error)}; it is ${keys} in etcd`);
    }
  };
  let ring = given;
  let shared: SharedLog | undefined;
  const node: ClusterNode = {
    etcd,
    prefix,
    kid,
    log: (tables) =>
      (shared = new SharedLog(
        {
          etcd,
          prefix,
          kid,
          creates: purpose === 'serve',
          declaration: purpose === 'command' ? undefined : declarationOf(options),
          maxAgeMs,
          clock,
          random,
          onNotice,
          onKeys(content) {
            if (given !== undefined) return;
            try {
              node.onRing((ring = ringOf(content)));
            } catch (error) {
              // What somebody writes there must not end nodes that run.
              if (ring === undefined) throw error;
              onNotice(`${reasonOf(error)}. The former keys stay in use`, 'error');
            }
          },
        },
        tables,
      )),
    async loadKeys() {
      const make = (found?: KeyRing) => found ?? newKeyRing(random, clock.now());
      const made = ring ?? (await node.changeKeys(make));
      // Meanwhile the log may have brought a later one.
      node.onRing((ring ??= made));
    },
    async changeKeys(change) {
      const meta = `${prefix}meta`;
      for (;;) {
        const patience = AbortSignal.timeout(openMs);
        const { found } = await etcd.txn({ success: [range(meta), range(keys)] }, patience);
        const [[made] = [], [kept] = []] = found;
        if (made === undefined) throw noCluster(prefix, undefined);
        const former = kept && ringOf(kept.value);
        const next = change(former);
        if (next === undefined || next === former) return next;
        const compare = [isAt(keys, kept?.revision ?? 0)];
        const text = serialiseKeyRing(next);
        const failure = [range(keys)];
        const answer = await etcd.txn({ compare, success: [put(keys, text)], failure });
        // An earlier attempt may have succeeded without an answer.
        const isWritten = String(answer.found[0]?.[0]?.value) === text;
        if (answer.succeeded || isWritten) return next;
      }
    },
    onRing: () => undefined,
    onlyCurrent: (handle, store, alwaysServed) => (request) => {
      const answerStale = (): Reply => problemReply(stale, request);
      if (shared?.isCurrent === false && !alwaysServed.has(request.target)) {
        return answerStale();
      }
      const handleAgain = () => store.confirm().then(() => handle(request), answerStale);
      const mayHaveEnded = sessions === 'confirmed' && request.fields.get('cookie') !== undefined;
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
    },
  };
  return node;
}

/** Joins a cluster as a node that can do the work of commands, too. @throws OptionError */
export function joinWithTools(
  cluster: ClusterOptions,
  options: NodeOptions,
  purpose: SharedPurpose,
): SharedTools {
  const node = joinCluster(cluster, options, purpose);
  const { etcd, prefix, kid } = node;
  const { clock, random } = options;
  const passwordKey = `${prefix}admin-password`;
  /** Only servers make a cluster, when their store starts. */
  const open = async () => {
    let tables = new Tables();
    const store = openStore({ clock, random, log: (given) => node.log((tables = given)) });
    await store.start();
    return { store, tables };
  };
  return Object.assign(node, {
    async read() {
      const { store, tables } = await open();
      const image = imageOf(tables.values(), store.epoch, store.sequence);
      const ring = kid === null ? await node.changeKeys((found) => found) : undefined;
      await store.close();
      return { image, keys: ring && Buffer.from(serialiseKeyRing(ring)) };
    },

    /** @throws ClusterError where a cluster is there, or would take records for users */
    async write({ views, through }: Image) {
      const refusal = (problem: string): ClusterError =>
        new ClusterError(78, `Cannot restore to ${prefix} in etcd: ${problem}`);
      for (const { name, isServers } of views)
        if (isServers !== isServerTable(name))
          throw refusal(
            `${name} is a collection, and in a cluster a table of the server; ${rename}`,
          );
      const key = `${prefix}head`;
      const name = random(8).toString('hex');
      const { metaRevision } = await findLog({ ...node, creates: true, random }, new Tables());
      const isEmpty = hasValue(key, JSON.stringify(firstHead));
      const compare = [isAt(`${prefix}meta`, metaRevision), isEmpty];
      const head = { ...firstHead, sequence: through };
      const also = [put(key, JSON.stringify(head))];
      if (await writeSnapshot(node, { views, head }, name, compare, also)) return;
      throw refusal('it is not empty; use another --cluster-prefix');
    },

    /**
     * Running nodes end, no former entity tag matches, and the next node declares what records look
     * like. A snapshot first replaces versions of records that do not fit its declaration any more.
     */
    async renewEpoch() {
      const { store } = await open();
      await store.checkpoint();
      const key = `${prefix}meta`;
      const [[meta] = []] = (await etcd.txn({ success: [range(key)] })).found;
      const compare = [isAt(key, meta?.revision ?? 0)];
      await etcd.txn({ compare, success: [put(key, metaOf(newEpoch(random), kid))] });
      await store.close();
    },

    async keep(password: string) {
      const compare = [isAt(passwordKey, 0)];
      const kept = range(passwordKey);
      const success = [put(passwordKey, password), kept];
      const { found } = await etcd.txn({ compare, success, failure: [kept] });
      const where = `etcd: see "etcdctl get --print-value-only ${passwordKey}"`;
      return { password: String(found.at(-1)?.[0]?.value), where };
    },

    forget: () => etcd.txn({ success: [remove(passwordKey)] }),

    /** @throws ClusterError */
    async testRoom() {
      await etcd.txn(roomTest(prefix), AbortSignal.timeout(openMs));
    },
  });
}

const rename =
  'rename it in what "cairn export" prints, "cairn import" that into a directory, and restore this';

/** What the records of the declared collections look like. */
function declarationOf(options: NodeOptions): Declaration {
  const forms = servedCollections(options).flatMap(({ name, isSingle, fields, ownerRemoved }) => [
    ...(isSingle ? [[`${name}.id`, { kind: 'single' }] as const] : []),
    ...Object.entries({ ...fields, ...(ownerRemoved && { ownerId: ownerField }) }).map(
      ([field, each]) => {
        const { to = '' } = referenceIn(each) ?? {};
        return [`${name}.${field}`, { ...formOf(each), ...(to && { to }) }] as const;
      },
    ),
  ]);
  return Object.fromEntries(forms);
}

/**
 * What other nodes have to know of a field: all but what only holds for writes and for queries, and
 * what describes it. A flag that is not set is left out, and members are in the order of their names.
 */
function formOf(field: Field): JsonObject {
  const { optional, readOnly, nullable = false, ...others } = field;
  const required = readOnly === true || !(optional || others.default !== undefined);
  const within = field.kind === 'object' && {
    fields: inOrder(Object.entries(field.fields).map(([name, each]) => [name, formOf(each)])),
  };
  // No element is absent.
  const element = field.kind === 'list' && { of: { ...formOf(field.of), required: undefined } };
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
]);

const inOrder = (members: readonly (readonly [name: string, value: unknown])[]): object =>
  Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** Whether another node may know the credentials that were refused here. */
function isUnknownHere(error: unknown): boolean {
  return error instanceof CairnError && ['invalid_session', 'invalid_token'].includes(error.code);
}

const stale = new CairnError('store_unavailable', 'Cannot answer: etcd does not answer', {
  retryAfterSeconds: 2,
});
/** The fields of requests that name entity tags or events. The target may name an event, too. */
const namingFields = ['if-match', 'if-none-match', 'last-event-id'];

/** Whether a request names a version or an event of a commit that is not published here yet. */
function isAhead({ fields, target }: Request, store: Store): boolean {
  const named = [target, ...namingFields.map((name) => fields.get(name))].join();
  const commits = [...named.matchAll(/([0-9a-f]{16})-(\d+)/g)];
  return commits.some(
    ([, epoch, sequence]) => epoch === store.epoch && Number(sequence) > store.sequence,
  );
}
