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
 *   A6    the quota is used up                     refused: nothing was written; a node
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
import { CairnError } from '../../base/errors.ts';
import { timers } from '../../base/system.ts';
import { takeViews } from '../../store/format/snapshot.ts';
import {
  lost,
  refuseMisfit,
  won,
  type Answer,
  type CommitLog,
  type Group,
  type LogClient,
  type LogProblem,
} from '../../store/log.ts';
import { conflictsIn, type Tables } from '../../store/memory/table.ts';
import type { Figure } from '../../store/store.ts';
import { Availability, noAnswer } from './availability.ts';
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
  type Txn,
  type TxnAnswer,
} from './etcd.ts';
import { addDeclaration, readEpoch, findLog, type FoundingOptions } from './founding.ts';
import { decodeGroup, encodeGroup, groupKey } from './group-format.ts';
import { damaged, parsePointer } from './shared-snapshot.ts';
import { Tail } from './tail.ts';
import { WriterTurns } from './turns.ts';

export interface SharedLogOptions extends FoundingOptions, CheckpointOptions {
  /** The longest time after a confirmation in which the node serves reads. */
  readonly maxAgeMs: number;
  /** Receives the key ring, first and after each change. */
  readonly onKeys: (content: Buffer) => void;
}

const confirmMs = 500;
const watchPauseMs = 20;
/**
 * The groups of one read: `least` at first, doubled up to `most` while a read returns less than
 * `smallBytes`.
 */
const groupsPerRead = { least: 8, most: 128, smallBytes: 256 * 1024 };

/** Watched groups wait while etcd does not answer an append. Each may have 1.5 MB. */
const waitingMax = 64;

/**
 * A node's access to the log in etcd. `tail.ts` tracks the applied groups, and `availability.ts`
 * handles an etcd that accepts none.
 */
export class SharedLog implements CommitLog {
  readonly #options: SharedLogOptions;
  readonly #tables: Tables;
  readonly #availability: Availability;
  readonly #tail: Tail;
  readonly #turns: WriterTurns;
  readonly #checkpoints: Checkpoints;
  readonly #counts = { appendMs: 0, lostAppends: 0, reruns: 0 };
  /** Set when the log opens. */
  #client!: LogClient;
  #timer: NodeJS.Timeout | undefined;
  /** The epoch, and the revisions of etcd that last wrote the keys `meta` and `keys`. */
  #known = { epoch: '', meta: 0, keys: 0 };
  /** The start of the last request that confirmed the head. */
  #confirmedAt = -Infinity;
  #readLimit = groupsPerRead.least;
  #isKeepingUp = false;

  /** The tables are empty until the log is open. */
  constructor(options: SharedLogOptions, tables: Tables) {
    this.#options = options;
    this.#tables = tables;
    this.#availability = new Availability(options);
    this.#turns = new WriterTurns(options.random, options.clock);
    this.#tail = new Tail(options.prefix, tables, this.#turns);
    this.#checkpoints = new Checkpoints(options);
  }

  /** Applies the groups after the snapshot like other nodes' groups. */
  async open(client: LogClient) {
    const { epoch, metaRevision, snapshot } = await findLog(this.#options, this.#tables);
    this.#known = { epoch, meta: metaRevision, keys: 0 };
    this.#checkpoints.snapshot = snapshot;
    this.#tail.head = snapshot.head;
    this.#client = client;
    try {
      await this.#confirm();
      for (const { name, problem } of conflictsIn(this.#tables)) {
        throw misfit(`in ${name}, ${problem}`);
      }
      if (this.#options.creates) this.#known.meta = await addDeclaration(this.#options);
    } catch (error) {
      this.#options.etcd.close();
      throw error;
    }
    this.#timer = timers.setInterval(() => {
      if (this.#isDue) this.#keepUp();
      void this.#availability.testRoom();
    }, confirmMs);
    void this.#watch();
    return { epoch, sequence: this.#tail.head.sequence };
  }

  async append(group: Group): Promise<Answer> {
    const refusal = refuseMisfit(group, this.#tail.head.sequence);
    if (refusal !== undefined) return refusal;
    try {
      const hasWon = await (group.commits.length === 0 ? this.#ask() : this.#append(group));
      // The writer begins no other group until this is done.
      this.#keepUp();
      return hasWon ? won : lost;
    } catch (error) {
      if (error instanceof CairnError) return { outcome: 'refused', error };
      return { outcome: 'unknown', error };
    }
  }

  get problem(): LogProblem | undefined {
    return this.isCurrent ? this.#availability.problem : noAnswer;
  }

  get isCurrent(): boolean {
    return this.#since(this.#confirmedAt) <= this.#options.maxAgeMs;
  }

  checkpoint(): Promise<void> {
    const view = async () => ({ head: this.#tail.head, views: takeViews(this.#tables.values()) });
    const isSame = isAt(`${this.#options.prefix}meta`, this.#known.meta);
    return this.#checkpoints.write(() => this.#client.between(view), isSame);
  }

  close(answered: Promise<unknown>): Promise<void> {
    timers.clearInterval(this.#timer);
    this.#timer = undefined;
    const finished = answered.then(() => this.#checkpoints.writing).catch(() => undefined);
    return this.#availability.close(finished);
  }

  status() {
    const { appendMs, lostAppends, reruns } = this.#counts;
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
        'Appends that etcd did not answer within 5 s', this.#availability.stalledAppends],
    ];
    const journalBytes = this.#checkpoints.logBytes(this.#tail.head);
    return { journalBytes, appendMs, ...this.#checkpoints.counts, figures };
  }

  get #isDue(): boolean {
    return this.#tail.waiting > 0 || this.#since(this.#confirmedAt) >= confirmMs;
  }

  #since(time: number): number {
    return this.#options.clock.elapsed() - time;
  }

  /** Makes sure that all groups of the log are applied here. */
  async #confirm(): Promise<void> {
    while (!(await this.#ask())) this.#tail.apply(this.#client);
  }

  async #append(group: Group): Promise<boolean> {
    const { prefix, clock } = this.#options;
    const { line, next } = encodeGroup(group, this.#tail.head, this.#turns.name);
    const turns = `${prefix}turns/`;
    const waiting = [range(turns, rangeEnd(turns)), remove(turns, rangeEnd(turns))];
    const head = put(`${prefix}head`, JSON.stringify(next));
    const success = [...waiting, put(groupKey(prefix, group.first), line), head];
    const failure = [put(turns + this.#turns.name, '')];
    const askedAt = clock.elapsed();
    const hasWon = await this.#ask({ success, failure }, next.id);
    const tookMs = this.#since(askedAt);
    this.#turns.measure(tookMs);
    this.#counts.appendMs += tookMs;
    if (hasWon) {
      this.#tail.advance(next);
    } else {
      this.#counts.lostAppends += 1;
      this.#counts.reruns += group.commits.length;
    }
    return hasWon;
  }

  /** Applies others' groups until it is this node's turn, and confirms if it is time. */
  #keepUp(): void {
    if (this.#isKeepingUp) return;
    this.#isKeepingUp = true;
    const keepUp = async (): Promise<void> => {
      let isBehind: boolean;
      do {
        await this.#turns.wait(() => this.#tail.waiting > 0);
        isBehind = this.#tail.waiting > 0;
      } while (this.#tail.apply(this.#client));
      // If a group does not follow, the watch has lost an earlier one.
      if (isBehind || this.#isDue) await this.#confirm();
      const { creates } = this.#options;
      if (creates && this.#checkpoints.isDue(this.#tail.head)) void this.checkpoint();
    };
    this.#client
      .between(keepUp)
      .catch((error: unknown) => {
        if (!(error instanceof CairnError)) this.#client.onFailure(error);
      })
      .finally(() => (this.#isKeepingUp = false));
  }

  /**
   * Runs `success` and returns true if the log ends here; `id` names the group that it writes.
   * Otherwise keeps what follows, to be applied. @throws CairnError if nothing was written
   */
  async #ask({ success, failure = [] }: Txn = { success: [] }, id?: string): Promise<boolean> {
    const { prefix, clock } = this.#options;
    const meta = `${prefix}meta`;
    const head = hasValue(`${prefix}head`, JSON.stringify(this.#tail.head));
    const limit = String(this.#readLimit);
    const following = range(this.#tail.nextKey, rangeEnd(`${prefix}log/`), { limit });
    // Also read by appends, because a node that only writes never confirms.
    const others = [range(`${prefix}keys`), range(`${prefix}snapshot`)];
    const txn = {
      compare: [head, isAt(meta, this.#known.meta)],
      success: [...others, ...success],
      failure: [range(meta), following, ...failure],
    };
    const askedAt = clock.elapsed();
    const answer = await this.#availability.txn(txn, this.#client, id !== undefined);
    if (!answer.succeeded) return this.#takeFollowing(answer, id);
    this.#confirmedAt = askedAt;
    this.#takeConfirmation(answer);
    return true;
  }

  #takeConfirmation({ found, revision }: TxnAnswer): void {
    const [[keys] = [], [pointer] = [], turns = []] = found;
    if (keys !== undefined && keys.revision !== this.#known.keys) {
      this.#known.keys = keys.revision;
      this.#options.onKeys(keys.value);
    }
    const { snapshot } = this.#checkpoints;
    this.#checkpoints.snapshot = (pointer && parsePointer(pointer)) ?? snapshot;
    for (const { key } of turns)
      this.#turns.note(key.slice(`${this.#options.prefix}turns/`.length));
    this.#tail.revision = revision;
  }

  /** Cases A2 to A4, and F1. Returns true in case A2. */
  #takeFollowing({ found }: TxnAnswer, id: string | undefined): boolean {
    const [[meta] = [], groups = []] = found;
    const { epoch, meta: metaRevision } = this.#known;
    const isSame = meta !== undefined && readEpoch(meta, this.#options.kid) === epoch;
    if (!isSame) throw this.#divergence('has a new epoch or format');
    if (String(groups[0]?.value).startsWith(`{"id":"${id}"`)) return true;
    this.#known.meta = meta.revision;
    const isNext = groups[0] && decodeGroup(groups[0].value, this.#tail.head) !== undefined;
    // A new declaration changes `meta` as well.
    if (!isNext && meta.revision === metaRevision) {
      throw this.#divergence('goes on with a group that does not follow the last one here');
    }
    const { least, most, smallBytes } = groupsPerRead;
    const bytes = groups.reduce((sum, { value }) => sum + value.length, 0);
    this.#readLimit = bytes < smallBytes ? Math.min(most, 2 * this.#readLimit) : least;
    this.#tail.add(groups);
    return false;
  }

  /** Listens for groups. A confirmation finds any that the watch loses. */
  async #watch(): Promise<void> {
    const { etcd, prefix } = this.#options;
    while (this.#timer !== undefined) {
      const watching = etcd.watch(`${prefix}log/`, this.#tail.revision + 1, (groups) => {
        // A confirmation finds what is left out.
        if (this.#tail.waiting < waitingMax) this.#tail.add(groups);
        if (this.#tail.waiting > 0) this.#keepUp();
      });
      await watching.catch(() => undefined);
      await timers.sleep(watchPauseMs);
    }
  }

  /**
   * Returns the error for a node that no longer matches the log. Before the first confirmation,
   * this is damage.
   */
  #divergence(problem: string): ClusterError {
    if (this.#confirmedAt === -Infinity) return damaged(`its log ${problem}`);
    return new ClusterError(75, `Cannot go on: the log in etcd ${problem}; start the node again`);
  }
}
