import { problemReply } from '../../api/replies.ts';
import { healthRoutes } from '../../api/routes.ts';
import type { SharedPlace, SharedPurpose } from '../../api/shared-place.ts';
import {
  keyRingOfSecret,
  newKeyRing,
  parseKeyRing,
  serialiseKeyRing,
  type KeyRing,
} from '../../auth/keys.ts';
import { CairnError } from '../../base/errors.ts';
import type { JsonValue } from '../../base/json.ts';
import type { Clock, Random } from '../../base/system.ts';
import { ownerField } from '../../collections/registry.ts';
import { servedCollections, type Served } from '../../collections/served.ts';
import { OptionError, type ClusterOptions } from '../../config/options.ts';
import type { Reply, Request } from '../../http/message.ts';
import type { Log } from '../../log/log.ts';
import { referenceIn, type Field } from '../../schema/field.ts';
import type { Store } from '../../store/store.ts';
import type { Declaration } from './declaration.ts';
import { Etcd, isAt, put, range } from './etcd.ts';
import { noCluster, openMs } from './founding.ts';
import { SharedLog } from './shared-log.ts';
import type { Place } from './shared-snapshot.ts';

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
            if (given === undefined) node.onRing((ring = parseKeyRing(content)));
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
      const keys = `${prefix}keys`;
      for (;;) {
        const patience = AbortSignal.timeout(openMs);
        const { found } = await etcd.txn({ success: [range(meta), range(keys)] }, patience);
        const [[made] = [], [kept] = []] = found;
        if (made === undefined) throw noCluster(prefix, undefined);
        const former = kept && parseKeyRing(kept.value);
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
    onlyCurrent: (handle, store) => (request) => {
      const answerStale = (): Reply => problemReply(stale, request);
      if (shared?.isCurrent === false && request.target !== healthRoutes.live.path) {
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

/** What the records of the declared collections look like. */
function declarationOf(options: NodeOptions): Declaration {
  const fields = servedCollections(options).flatMap(({ name, fields, ownerRemoved }) =>
    Object.entries({ ...fields, ...(ownerRemoved && { ownerId: ownerField }) }).map(
      ([field, form]) => [`${name}.${field}`, formOf(form)] as const,
    ),
  );
  return Object.fromEntries(fields);
}

/** What other nodes have to know of a field: not its bounds, which only hold for writes. */
function formOf(field: Field): JsonValue {
  const { optional, default: fallback, readOnly } = field;
  const required = readOnly === true || !(optional || fallback !== undefined);
  return JSON.parse(
    JSON.stringify({ ...field, required, to: referenceIn(field)?.to }, formMembers),
  );
}

/** The members to keep, also of the elements of a list. */
const formMembers = ['kind', 'of', 'values', 'unique', 'to', 'onDelete', 'renamedFrom', 'required'];

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
