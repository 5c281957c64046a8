/**
 * The log that several nodes share, in etcd. `founding.ts` lists its keys.
 *
 * One transaction writes a group and the new head, on the condition that `head` and `meta` are
 * what this node knows. No two heads are alike, so only a node that has applied all of the log
 * can extend it. The same condition without a group confirms that a node is up to date.
 *
 *   case  what is found                            what is done
 *   ----  ---------------------------------------  -------------------------------------------
 *   A1    the condition held                       won
 *   A2    not; the next group has our id           won: an earlier attempt succeeded
 *   A3    not; the next group has another id       lost: it is applied, the batch runs again
 *   A4    not; the next group is missing or does   the outcome is unknown: the process ends
 *         not match, or meta differs               with 75, and has to be started again
 *   A5    no answer, or a 5xx                      the same again at the next member, until the
 *                                                  outcome is known; callers are told after 5 s
 *   A6    the quota is used up                     refused: nothing was written
 *   A9    one transaction is too large for etcd    only that one is refused
 *   W1    the watch brings the next group          applied
 *   W2    it brings a group that is known          ignored
 *   W3    it brings one that does not match        a confirmation reads what is missing
 *   W4    it ends, or is silent for 5 s            the same, and a new watch at another member
 *   F1    a confirmation finds what A4 finds       as A4
 *   F2    no confirmation for `maxAgeMs`           reads are refused until there is one
 *   C1    a collection that is not registered      kept and written to snapshots
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CairnError } from '../../base/errors.ts';
import {
  won,
  type Answer,
  type ForeignGroup,
  type Group,
  type Log,
  type LogEvents,
} from '../log.ts';
import { isCollectionName, tableOf, type AnyTable } from '../memory/table.ts';
import { viewsOf } from '../recovery/snapshot.ts';
import { ClusterError, type ClusterStatus } from '../store.ts';
import { Checkpoints, type CheckpointOptions } from './checkpoints.ts';
import {
  endOf,
  hasValue,
  isAt,
  put,
  range,
  remove,
  type KeyValue,
  type Txn,
  type TxnAnswer,
} from './etcd.ts';
import { findLog, type FoundingOptions } from './founding.ts';
import { decodeGroup, encodeGroup, firstHead, groupKey, type Head } from './group-format.ts';
import { damaged, parsePointer } from './shared-snapshot.ts';
import { Turns } from './turns.ts';

export interface SharedLogOptions extends FoundingOptions, CheckpointOptions {
  /** For how long after a confirmation the node answers reads. */
  readonly maxAgeMs: number;
  /** Called with the content of the key ring in etcd, first and after each change. */
  readonly onKeys: (content: Buffer) => void;
}

/** The time without an answer after which callers are told that the outcome is unknown. */
const stalledMs = 5000;
/** How often a node that writes nothing confirms, and after how many times it asks etcd's size. */
const confirmMs = 500;
const ticksPerSize = 20;
/** The pause before a new watch. */
const watchPauseMs = 20;
/** How many groups are read at a time. The number doubles while the groups are small. */
const groupsPerRead = { least: 8, most: 128, smallBytes: 256 * 1024 };
/** How many groups of the watch are kept during a request; others are read afterwards. */
const groupsKeptMax = 64;

/** One node's end of the log in etcd. */
export class SharedLog implements Log {
  readonly isFull = false;
  readonly #options: SharedLogOptions;
  readonly #prefix: string;
  readonly #tables: Map<string, AnyTable>;
  readonly #turns: Turns;
  readonly #checkpoints: Checkpoints;
  #events: LogEvents | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticks = 0;
  /** The revisions of etcd that last wrote these keys. */
  #metaRevision = 0;
  #keysRevision = 0;
  /** The last group that the writer has. */
  #head = firstHead;
  /** The groups that the watch has brought and `ready` has not returned yet. */
  #arrived: readonly KeyValue[] = [];
  /** The revision of etcd up to which no group is missing here, and that of the last known group. */
  #seenRevision = 0;
  #heardRevision = 0;
  /** When the last request was sent, and the last one that confirmed the head. */
  #askedAt = -Infinity;
  #confirmedAt = -Infinity;
  #appendMs = 0;
  #readLimit = groupsPerRead.least;
  readonly #counts = { lostAppends: 0, reruns: 0, unansweredAppends: 0 };
  #size = { etcdBytes: NaN, etcdQuotaBytes: NaN };

  /** The tables are empty until the log is open. */
  constructor(options: SharedLogOptions, tables: Map<string, AnyTable>) {
    this.#options = options;
    this.#prefix = options.prefix;
    this.#tables = tables;
    this.#turns = new Turns(options.random, options.clock);
    this.#checkpoints = new Checkpoints(options);
  }

  /** Loads the snapshot. The groups after it come like those of other nodes. */
  async open(events: LogEvents): Promise<{ epoch: string; sequence: number }> {
    const { epoch, metaRevision, snapshot } = await findLog(this.#options, this.#tables);
    this.#metaRevision = metaRevision;
    this.#checkpoints.snapshot = snapshot;
    this.#head = snapshot.head;
    this.#events = events;
    this.#timer = setInterval(() => this.#tick(), confirmMs);
    void this.#watch();
    return { epoch, sequence: this.#head.sequence };
  }

  async ready(): Promise<readonly ForeignGroup[]> {
    await this.#turns.wait(() => this.#isBehind);
    const groups = this.#follow(this.#arrived);
    this.#arrived = [];
    if (groups.length > 0 || !this.#isBehind) return groups;
    const answer = await this.confirm();
    return answer.outcome === 'lost' ? answer.groups : [];
  }

  get isDue(): boolean {
    return this.#isBehind || this.#since(this.#confirmedAt) >= confirmMs;
  }

  get isCurrent(): boolean {
    return this.#since(this.#confirmedAt) <= this.#options.maxAgeMs;
  }

  async append(group: Group): Promise<Answer> {
    const { line, next } = encodeGroup(group, this.#head, this.#turns.name);
    const turns = `${this.#prefix}turns/`;
    const waiting = [range(turns, endOf(turns)), remove(turns, endOf(turns))];
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

  confirm(): Promise<Answer> {
    return this.#ask({ success: [] });
  }

  get checkpointDue(): boolean {
    return this.#checkpoints.isDue(this.#head);
  }

  checkpoint(between: <T>(work: () => Promise<T>) => Promise<T>): Promise<void> {
    const view = async () => ({ head: this.#head, views: viewsOf(this.#tables.values()) });
    const isSame = isAt(`${this.#prefix}meta`, this.#metaRevision);
    return this.#checkpoints.write(() => between(view), isSame);
  }

  /** Abandons the requests in flight. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#options.etcd.close();
  }

  status() {
    const ageMs = this.#since(this.#confirmedAt);
    const cluster: ClusterStatus = { ageMs, ...this.#counts, ...this.#size };
    const journalBytes = this.#checkpoints.logBytes(this.#head);
    return { journalBytes, appendMs: this.#appendMs, ...this.#checkpoints.counts, cluster };
  }

  get #isBehind(): boolean {
    return this.#heardRevision > this.#seenRevision;
  }

  #since(time: number): number {
    return this.#options.clock.elapsed() - time;
  }

  /** Does `success` if the log ends here; `id` is that of the group that this writes. */
  async #ask({ success, failure = [] }: Txn, id?: string): Promise<Answer> {
    const meta = `${this.#prefix}meta`;
    const head = hasValue(`${this.#prefix}head`, JSON.stringify(this.#head));
    const next = groupKey(this.#prefix, this.#head.sequence + 1);
    const limit = String(this.#readLimit);
    const following = range(next, endOf(`${this.#prefix}log/`), { limit });
    // Appends read these, too: a node that only writes confirms nothing else.
    const others = [range(`${this.#prefix}keys`), range(`${this.#prefix}snapshot`)];
    this.#askedAt = this.#options.clock.elapsed();
    const stalled = setTimeout(() => this.#stall(id), stalledMs);
    try {
      const answer = await this.#options.etcd.txn({
        compare: [head, isAt(meta, this.#metaRevision)],
        success: [...others, ...success],
        failure: [range(meta), following, ...failure],
      });
      return answer.succeeded ? this.#win(answer) : this.#lose(answer, id);
    } catch (error) {
      if (!(error instanceof ClusterError)) return { outcome: 'unknown', error };
      // The cases A6 and A9.
      const code = error.message.includes('too large') ? 'content_too_large' : 'storage_full';
      const refusal = new CairnError(code, 'Cannot write: etcd has no room for the records');
      return { outcome: 'refused', error: refusal };
    } finally {
      clearTimeout(stalled);
    }
  }

  #stall(id: string | undefined): void {
    if (id !== undefined) this.#counts.unansweredAppends += 1;
    this.#options.onNotice('etcd does not answer: no write succeeds until it does', 'error');
    this.#events?.onStalled();
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

  /** The cases A2 to A4, and F1. */
  #lose({ found, revision }: TxnAnswer, id: string | undefined): Answer {
    const [[meta] = [], groups = []] = found;
    if (meta?.revision !== this.#metaRevision) return this.#left('has a new epoch or format');
    if (String(groups[0]?.value).startsWith(`{"id":"${id}"`)) return won;
    const foreign = this.#follow(groups);
    if (foreign.length === 0) {
      return this.#left('goes on with a group that does not follow the last one here');
    }
    if (groups.length < this.#readLimit) this.#seenRevision = revision;
    const { least, most, smallBytes } = groupsPerRead;
    const bytes = groups.reduce((sum, { value }) => sum + value.length, 0);
    this.#readLimit = bytes < smallBytes ? Math.min(most, 2 * this.#readLimit) : least;
    return { outcome: 'lost', groups: foreign };
  }

  /** Returns the groups that follow the last one here, and ignores others. */
  #follow(groups: readonly KeyValue[]): ForeignGroup[] {
    return groups.flatMap(({ value, revision }) => {
      const group = decodeGroup(value, this.#head);
      if (group === undefined) return [];
      for (const change of group.commits.flat()) {
        const name = Array.isArray(change) && change[0];
        if (typeof name === 'string' && isCollectionName(name)) tableOf(this.#tables, name);
      }
      this.#seenRevision = revision;
      this.#advance(group.next);
      return [group];
    });
  }

  #advance(head: Head): void {
    this.#head = head;
    this.#turns.advance(head.id);
  }

  #tick(): void {
    if (this.isDue) this.#events?.onDue();
    this.#ticks = (this.#ticks + 1) % ticksPerSize;
    if (this.#ticks !== 1) return;
    this.#options.etcd.size().then(
      (size) => (this.#size = size),
      () => undefined,
    );
  }

  /** Listens for groups. A confirmation finds what the watch loses. */
  async #watch(): Promise<void> {
    const hear = (groups: readonly KeyValue[]): void => {
      this.#arrived = [...this.#arrived, ...groups].slice(-groupsKeptMax);
      this.#heardRevision = groups.at(-1)?.revision ?? this.#heardRevision;
      if (this.#isBehind) this.#events?.onDue();
    };
    const log = `${this.#prefix}log/`;
    while (this.#timer !== undefined) {
      await this.#options.etcd.watch(log, this.#seenRevision + 1, hear).catch(() => undefined);
      await sleep(watchPauseMs);
    }
  }

  /** Ends a node that the log went on, or back, without. At the start it is damage. */
  #left(problem: string): Answer {
    const error =
      this.#confirmedAt === -Infinity
        ? damaged(`its log ${problem}`)
        : new ClusterError(75, `Cannot go on: the log in etcd ${problem}; start the node again`);
    return { outcome: 'unknown', error };
  }
}
