/**
 * The log that several nodes share in etcd. `founding.ts` lists its keys.
 *
 * One transaction writes a group and the new head, if `head` and `meta` are still as this node
 * knows them. No two heads are alike, so only a node that has applied the whole log can extend it.
 * The same condition without a group confirms that a node is up to date.
 *
 *   case  what is found                            what is done
 *   ----  ---------------------------------------  -------------------------------------------
 *   A1    the condition held                       won
 *   A2    not; the next group has our id           won: an earlier attempt succeeded
 *   A3    not; the next group has another id       lost: it is applied, the batch runs again
 *   A4    not; the next group is missing or does   the outcome is unknown: the process ends
 *         not match, or meta has another epoch     with 75, and has to be started again
 *   A5    no answer, or a 5xx                      the same again at the next member, until the
 *                                                  outcome is known; callers are told after 5 s
 *   A6    the quota is used up                     refused: nothing was written; an idle node
 *                                                  finds out by a test each 10 s
 *   A9    one transaction is too large for etcd    only that one is refused
 *   W1    the watch brings the next group          applied
 *   W2    it brings a group that is known          ignored
 *   W3    it brings one that does not match        a confirmation reads what is missing
 *   W4    it ends, or is silent for 5 s            the same, and a new watch at another member
 *   F1    a confirmation finds what A4 finds       as A4
 *   F2    no confirmation for `maxAgeMs`           reads are refused until there is one
 *   C1    a collection that is not registered      kept and written to snapshots
 */
import { CairnError, invariant } from '../../base/errors.ts';
import { type Clock, timers } from '../../base/system.ts';
import { takeViews } from '../../store/format/snapshot.ts';
import {
  lost,
  storageFull,
  refuseMisfit,
  won,
  type Answer,
  type Group,
  type CommitLog,
  type LogClient,
  type LogProblem,
  type ReadGroup,
} from '../../store/log.ts';
import {
  conflictsIn,
  isCollectionName,
  findOrAddTable,
  type Tables,
} from '../../store/memory/table.ts';
import { applyChange, listChanges } from '../../store/memory/transaction.ts';
import type { Figure, RecordChange } from '../../store/store.ts';
import { Checkpoints, type CheckpointOptions } from './checkpoints.ts';
import { misfit } from './declaration.ts';
import {
  ClusterError,
  rangeEnd,
  hasValue,
  isAt,
  put,
  range,
  remove,
  type KeyValue,
  type Txn,
  type TxnAnswer,
} from './etcd.ts';
import { addDeclaration, readEpoch, findLog, roomTest, type FoundingOptions } from './founding.ts';
import { decodeGroup, encodeGroup, firstHead, groupKey, type GroupHead } from './group-format.ts';
import { damaged, parsePointer, unreadable } from './shared-snapshot.ts';
import { WriterTurns } from './turns.ts';

export interface SharedLogOptions extends FoundingOptions, CheckpointOptions {
  readonly clock: Clock;
  /** How long after a confirmation the node serves reads. */
  readonly maxAgeMs: number;
  /** Receives the key ring, first and after each change. */
  readonly onKeys: (content: Buffer) => void;
}

/** The silence after which callers are told that the outcome is unknown. */
const stalledMs = 5000;
const confirmMs = 500;
const roomTestMs = 10_000;
const watchPauseMs = 20;
/** Doubles while the groups are small. */
const groupsPerRead = { least: 8, most: 128, smallBytes: 256 * 1024 };
/** The most groups of the watch kept during a request; others are read afterwards. */
const groupsKeptMax = 64;

/**
 * etcd's words in cases A9 and A6. Its codes are ambiguous: a request that gRPC finds too large and
 * a used-up quota are both 8, with 429; one that etcd finds too large is 3.
 */
const tooLarge = /too large|larger than/;
const spaceExceeded = /space exceeded/;

const quotaUsedUp = 'the quota of etcd is used up';
const makeRoom = 'start its members with a larger quota, and run "etcdctl alarm disarm"';
const findLeader = 'most of its members have to run: see "etcdctl endpoint status --cluster"';

type State = 'writable' | 'full' | 'unavailable';

export class SharedLog implements CommitLog {
  readonly #options: SharedLogOptions;
  readonly #prefix: string;
  readonly #tables: Tables;
  readonly #turns: WriterTurns;
  readonly #checkpoints: Checkpoints;
  #client: LogClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #epoch = '';
  #metaRevision = 0;
  #keysRevision = 0;
  #head = firstHead;
  /** Groups to apply: found by a request, and brought by the watch. */
  #found: readonly KeyValue[] = [];
  #arrived: readonly KeyValue[] = [];
  /**
   * All groups up to the first revision are known here; the second revision wrote the last known
   * group.
   */
  #seenRevision = 0;
  #heardRevision = 0;
  /** When the last request was sent, and the last one that confirmed the head. */
  #askedAt = -Infinity;
  #confirmedAt = -Infinity;
  /** When etcd's room was last known or tested. */
  #roomTestedAt = -Infinity;
  #state: State = 'writable';
  #appendMs = 0;
  #readLimit = groupsPerRead.least;
  readonly #counts = { lostAppends: 0, reruns: 0, unansweredAppends: 0 };
  #isKeepingUp = false;
  #isStalled = false;
  #isClosed = false;
  #onStalled: () => void = () => undefined;
  #checkpointing: Promise<void> | undefined;

  /** The tables are empty until the log is open. */
  constructor(options: SharedLogOptions, tables: Tables) {
    this.#options = options;
    this.#prefix = options.prefix;
    this.#tables = tables;
    this.#turns = new WriterTurns(options.random, options.clock);
    this.#checkpoints = new Checkpoints(options);
  }

  /** Applies the groups after the snapshot like other nodes' groups. */
  async open(client: LogClient) {
    const { epoch, metaRevision, snapshot } = await findLog(this.#options, this.#tables);
    this.#epoch = epoch;
    this.#metaRevision = metaRevision;
    this.#checkpoints.snapshot = snapshot;
    this.#head = snapshot.head;
    this.#client = client;
    try {
      const answer = await this.#confirm();
      if (answer.outcome !== 'won') throw answer.error;
      for (const { name, problem } of conflictsIn(this.#tables)) {
        throw misfit(`in ${name}, ${problem}`);
      }
      if (this.#options.creates) this.#metaRevision = await addDeclaration(this.#options);
    } catch (error) {
      this.#options.etcd.close();
      throw error;
    }
    this.#timer = timers.setInterval(() => {
      if (this.#isDue) this.#keepUp();
      void this.#testRoom();
    }, confirmMs);
    void this.#watch();
    return { epoch, sequence: this.#head.sequence };
  }

  async append(group: Group): Promise<Answer> {
    try {
      const answer = await this.#append(group);
      // Until then, the writer begins no other group.
      if (answer.outcome === 'lost' || this.#turns.isOfOthers) this.#keepUp();
      return answer;
    } catch (error) {
      return { outcome: 'unknown', error };
    } finally {
      this.#checkpointIfDue();
    }
  }

  get problem(): LogProblem | undefined {
    if (!this.isCurrent || this.#state === 'unavailable') {
      return { state: 'unavailable', reason: 'etcd does not answer' };
    }
    return this.#state === 'full' ? { state: 'full', reason: quotaUsedUp } : undefined;
  }

  get isCurrent(): boolean {
    return this.#since(this.#confirmedAt) <= this.#options.maxAgeMs;
  }

  checkpoint(): Promise<void> {
    const view = async () => ({ head: this.#head, views: takeViews(this.#tables.values()) });
    const isSame = isAt(`${this.#prefix}meta`, this.#metaRevision);
    const between = () => this.#owner.between(view);
    this.#checkpointing ??= this.#checkpoints.write(between, isSame).finally(() => {
      this.#checkpointing = undefined;
    });
    return this.#checkpointing;
  }

  async close(answered: Promise<void>): Promise<void> {
    timers.clearInterval(this.#timer);
    this.#timer = undefined;
    const stalled = new Promise<void>((resolve) => (this.#onStalled = resolve));
    const finished = answered.then(() => this.#checkpointing).catch(() => undefined);
    if (!this.#isStalled) await Promise.race([finished, stalled]);
    this.#isClosed = true;
    this.#options.etcd.close();
    await finished;
  }

  status() {
    const { lostAppends, reruns, unansweredAppends } = this.#counts;
    const ageMs = this.#since(this.#confirmedAt);
    // prettier-ignore
    const figures: Figure[] = [
      ['gauge', 'cairn_cluster_age_seconds',
        'Time since this node was last known to be up to date', ageMs / 1000],
      ['counter', 'cairn_cluster_lost_appends_total',
        'Appends refused because another node was first', lostAppends],
      ['counter', 'cairn_cluster_reruns_total',
        'Transactions that were run again after a lost append', reruns],
      ['counter', 'cairn_cluster_unknown_appends_total',
        'Appends that etcd did not answer within 5 s', unansweredAppends],
    ];
    const journalBytes = this.#checkpoints.logBytes(this.#head);
    return { journalBytes, appendMs: this.#appendMs, ...this.#checkpoints.counts, figures };
  }

  get #owner(): LogClient {
    invariant(this.#client !== undefined, 'the log is used before it is open');
    return this.#client;
  }

  get #isBehind(): boolean {
    return this.#heardRevision > this.#seenRevision;
  }

  get #isDue(): boolean {
    return this.#isBehind || this.#since(this.#confirmedAt) >= confirmMs;
  }

  #since(time: number): number {
    return this.#options.clock.elapsed() - time;
  }

  /** Applies others' groups until it is this node's turn. */
  async #applyArrived(): Promise<void> {
    for (;;) {
      await this.#turns.wait(() => this.#isBehind || this.#found.length > 0);
      if (this.#apply() > 0) continue;
      // The watch has lost a group.
      if (!this.#isBehind || (await this.#ask({ success: [] })).outcome !== 'lost') return;
    }
  }

  /** Makes sure that all groups of the log have been applied. No group may be in flight. */
  async #confirm(): Promise<Exclude<Answer, typeof lost>> {
    for (;;) {
      const answer = await this.#ask({ success: [] });
      if (answer.outcome !== 'lost') return answer;
      this.#apply();
    }
  }

  async #append(group: Group): Promise<Answer> {
    const refusal = refuseMisfit(group, this.#head.sequence);
    if (refusal !== undefined) return refusal;
    if (group.commits.length === 0) return this.#ask({ success: [] });
    const { line, next } = encodeGroup(group, this.#head, this.#turns.name);
    const turns = `${this.#prefix}turns/`;
    const waiting = [range(turns, rangeEnd(turns)), remove(turns, rangeEnd(turns))];
    const head = put(`${this.#prefix}head`, JSON.stringify(next));
    const success = [...waiting, put(groupKey(this.#prefix, group.first), line), head];
    const failure = [put(turns + this.#turns.name, '')];
    const answer = await this.#ask({ success, failure }, next.id);
    const tookMs = this.#since(this.#askedAt);
    this.#turns.measure(tookMs);
    this.#appendMs += tookMs;
    if (answer.outcome === 'won') this.#advance(next);
    if (answer.outcome === 'lost') {
      this.#counts.lostAppends += 1;
      this.#counts.reruns += group.commits.length;
    }
    return answer;
  }

  /** Applies groups that have arrived, and confirms if it is time, before the next group. */
  #keepUp(): void {
    if (this.#isKeepingUp) return;
    this.#isKeepingUp = true;
    const keepUp = async (): Promise<void> => {
      await this.#applyArrived();
      const answer = this.#isDue ? await this.#confirm() : won;
      if (answer.outcome === 'unknown') throw answer.error;
      this.#checkpointIfDue();
    };
    this.#owner
      .between(keepUp)
      .catch((error: unknown) => this.#owner.onFailure(error))
      .finally(() => (this.#isKeepingUp = false));
  }

  #checkpointIfDue(): void {
    const { creates } = this.#options;
    if (creates && this.#checkpoints.isDue(this.#head)) void this.checkpoint();
  }

  /** Runs `success` if the log ends here; `id` names the group that it writes. */
  async #ask({ success, failure = [] }: Txn, id?: string): Promise<Answer> {
    const meta = `${this.#prefix}meta`;
    const head = hasValue(`${this.#prefix}head`, JSON.stringify(this.#head));
    const next = groupKey(this.#prefix, this.#head.sequence + 1);
    const limit = String(this.#readLimit);
    const following = range(next, rangeEnd(`${this.#prefix}log/`), { limit });
    // Also read by appends, because a node that only writes never confirms.
    const others = [range(`${this.#prefix}keys`), range(`${this.#prefix}snapshot`)];
    this.#askedAt = this.#options.clock.elapsed();
    const stalled = timers.setTimeout(() => this.#stall(id), stalledMs);
    let answer: TxnAnswer;
    try {
      answer = await this.#options.etcd.txn({
        compare: [head, isAt(meta, this.#metaRevision)],
        success: [...others, ...success],
        failure: [range(meta), following, ...failure],
      });
    } catch (error) {
      if (error instanceof ClusterError) {
        return { outcome: 'refused', error: this.#noteRefusal(error.message) };
      }
      // After a close, all callers have had their responses.
      if (this.#isClosed) return { outcome: 'refused', error: unavailable() };
      return { outcome: 'unknown', error };
    } finally {
      timers.clearTimeout(stalled);
      if (this.#isStalled) this.#owner.unavailable(undefined);
      this.#isStalled = false;
    }
    if (id !== undefined) this.#roomTestedAt = this.#askedAt;
    if (id !== undefined || this.#state === 'unavailable') this.#note('writable');
    return answer.succeeded ? this.#win(answer) : this.#lose(answer, id);
  }

  async #testRoom(): Promise<void> {
    const pauseMs = this.#state === 'full' ? 0 : roomTestMs;
    if (this.#since(this.#roomTestedAt) < pauseMs) return;
    this.#roomTestedAt = this.#options.clock.elapsed();
    try {
      await this.#options.etcd.txn(roomTest(this.#prefix), AbortSignal.timeout(confirmMs));
      if (this.#state === 'full') this.#note('writable');
    } catch (error) {
      if (error instanceof ClusterError) this.#noteRefusal(error.message);
    }
  }

  /** Cases A6 and A9. */
  #noteRefusal(reason: string): CairnError {
    if (tooLarge.test(reason)) {
      return new CairnError('content_too_large', 'Cannot write: this is too much for etcd');
    }
    if (spaceExceeded.test(reason)) {
      this.#note('full', `${quotaUsedUp}, and no write succeeds: ${makeRoom}`);
      return storageFull(quotaUsedUp);
    }
    this.#note('unavailable', `no write succeeds: ${reason}`);
    return unavailable();
  }

  #note(state: State, problem = 'etcd accepts writes again'): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#options.onNotice(problem, state === 'writable' ? 'warn' : 'error');
  }

  #stall(id: string | undefined): void {
    if (id !== undefined) this.#counts.unansweredAppends += 1;
    const reason = `etcd does not answer, and no write succeeds (${this.#options.etcd.problem})`;
    this.#note('unavailable', `${reason}: ${findLeader}`);
    this.#isStalled = true;
    this.#owner.unavailable(unavailable());
    this.#onStalled();
  }

  #win({ found, revision }: TxnAnswer): Answer {
    const [[keys] = [], [pointer] = [], turns = []] = found;
    if (keys !== undefined && keys.revision !== this.#keysRevision) {
      this.#keysRevision = keys.revision;
      this.#options.onKeys(keys.value);
    }
    const { snapshot } = this.#checkpoints;
    this.#checkpoints.snapshot = (pointer && parsePointer(pointer)) ?? snapshot;
    for (const { key } of turns) this.#turns.note(key.slice(`${this.#prefix}turns/`.length));
    this.#confirmedAt = this.#askedAt;
    this.#seenRevision = revision;
    return won;
  }

  /** Cases A2 to A4, and F1. */
  #lose({ found, revision }: TxnAnswer, id: string | undefined): Answer {
    const [[meta] = [], groups = []] = found;
    const isSame = meta !== undefined && readEpoch(meta, this.#options.kid) === this.#epoch;
    if (!isSame) return this.#left('has a new epoch or format');
    if (String(groups[0]?.value).startsWith(`{"id":"${id}"`)) return won;
    const isRedeclared = meta.revision !== this.#metaRevision;
    this.#metaRevision = meta.revision;
    const isNext =
      groups[0] !== undefined && decodeGroup(groups[0].value, this.#head) !== undefined;
    if (!isNext && !isRedeclared) {
      return this.#left('goes on with a group that does not follow the last one here');
    }
    if (groups.length < this.#readLimit) this.#seenRevision = revision;
    const { least, most, smallBytes } = groupsPerRead;
    const bytes = groups.reduce((sum, { value }) => sum + value.length, 0);
    this.#readLimit = bytes < smallBytes ? Math.min(most, 2 * this.#readLimit) : least;
    this.#found = groups;
    return lost;
  }

  /** Applies the groups that follow the last one here, and returns their number. */
  #apply(): number {
    const groups = [...this.#found, ...this.#arrived];
    this.#found = this.#arrived = [];
    let count = 0;
    for (const { value, revision } of groups) {
      const group = decodeGroup(value, this.#head);
      if (group === undefined) continue;
      this.#owner.published(this.#applyChanges(group));
      this.#seenRevision = Math.max(this.#seenRevision, revision);
      this.#advance(group.next);
      count += 1;
    }
    return count;
  }

  #applyChanges(group: ReadGroup): RecordChange[] {
    return Array.from(listChanges(group), ([change, sequence]) => {
      const name = Array.isArray(change) && change[0];
      if (typeof name === 'string' && isCollectionName(name)) findOrAddTable(this.#tables, name);
      const applied = applyChange(change, sequence, this.#tables);
      if ('problem' in applied) throw unreadable(String(name), applied);
      return applied;
    });
  }

  #advance(head: GroupHead): void {
    this.#head = head;
    this.#turns.advance(head.id);
  }

  /** Listens for groups. A confirmation finds those that the watch loses. */
  async #watch(): Promise<void> {
    const hear = (groups: readonly KeyValue[]): void => {
      this.#arrived = [...this.#arrived, ...groups].slice(-groupsKeptMax);
      this.#heardRevision = groups.at(-1)?.revision ?? this.#heardRevision;
      if (this.#isBehind) this.#keepUp();
    };
    const log = `${this.#prefix}log/`;
    while (this.#timer !== undefined) {
      await this.#options.etcd.watch(log, this.#seenRevision + 1, hear).catch(() => undefined);
      await timers.sleep(watchPauseMs);
    }
  }

  /** Ends a node that the log has left behind or that is ahead of it. At the start it is damage. */
  #left(problem: string): Answer {
    const error =
      this.#confirmedAt === -Infinity
        ? damaged(`its log ${problem}`)
        : new ClusterError(75, `Cannot go on: the log in etcd ${problem}; start the node again`);
    return { outcome: 'unknown', error };
  }
}

function unavailable(): CairnError {
  const message = 'Cannot reach the log of the store';
  return new CairnError('store_unavailable', message, { retryAfterSeconds: 2 });
}
