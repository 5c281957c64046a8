/**
 * The log that several nodes share, in etcd; its keys are listed in `founding.ts`.
 *
 * A group is a line as in `journal-format.ts` with an id in front, that of its writer and a count. One txn writes the
 * group and the new head, on the condition that head and meta are what this node knows. Since no two heads are alike,
 * the log is extended only by a node that has applied all of it; a node that slept through a removal of old groups, a
 * restore of etcd, or a change of the format is refused. The same condition alone confirms that a node is up to date.
 *
 *   case  what is found                                           what is done
 *   ----  ------------------------------------------------------  -------------------------------------------------
 *   A1    the condition held                                       won
 *   A2    it did not, and the next group has our id                won: an attempt that was not answered got through
 *   A3    it did not, and the next group has another id            lost: its groups are applied, the batch runs again
 *   A4    it did not, and the next group is missing or does not    whether ours was taken is unknown; the process ends
 *         fit, or meta differs                                     with 75, and starts anew
 *   A5    no answer, or a 5xx                                      the same txn at the next member until it is known;
 *                                                                  after 5 s the callers are told so
 *   A6    the quota is used up                                     refused: nothing was written
 *   A9    a single transaction is too large for etcd               refused for it alone
 *   W1    the watch brings the next group, and its chain fits      taken
 *   W2    one that is known                                        passed over
 *   W3    a later one, or one that does not fit                    a confirmation brings what is missing
 *   W4    the watch ends, or is silent for 5 s                     the same, and a new watch at the next member
 *   F1    a confirming read finds what A4 finds                    as A4
 *   F2    no confirming read for `maxAgeMs`                        not current, until there is one
 *   C1    a collection that this version does not register         carried along
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CairnError } from '../../base/errors.ts';
import { decodeLine, encodeLine, groupBody } from '../journal/journal-format.ts';
import { type Answer, type ForeignGroup, type Group, type Log, type LogEvents, type Won } from '../log.ts';
import { isCollectionName, tableOf, type AnyTable } from '../memory/table.ts';
import { ClusterError, type ClusterStatus } from '../store.ts';
import { Checkpoints, type CheckpointOptions } from './checkpoints.ts';
import {
  endOf, hasValue, isAt, put, range, remove, type Etcd, type KeyValue, type Txn, type TxnAnswer,
} from './etcd.ts';
import { findLog, type FoundingOptions } from './founding.ts';
import { damaged, groupKey, type Head } from './shared-snapshot.ts';
import { Turns } from './turns.ts';

export interface SharedLogOptions extends FoundingOptions, CheckpointOptions {
  /** For how long after a confirmation the node answers reads. */
  readonly maxAgeMs: number;
  /** Called with the content of the key ring in etcd, first and whenever it has changed. */
  readonly onKeys: (content: Buffer) => void;
}

/** After how long without an answer the callers are told that the outcome is unknown. */
const stalledMs = 5000;
/** How often the head is looked at where nothing is written; the size of etcd's database, at each such time. */
const confirmMs = 500;
const ticksPerSize = 20;
/** The pause before a watch is begun again. */
const watchPauseMs = 20;
/** How many groups are read at a time: the more, the smaller they were. */
const groupsPerRead = { least: 8, most: 128, smallBytes: 256 * 1024 };
/** How many groups of the watch are held during a request; others are read afterwards. */
const groupsHeldMax = 64;
/** The answer to a request, with what it has found where it has won. */
type Asked = Exclude<Answer, Won> | (Won & Pick<TxnAnswer, 'found'>);

/** One node's end of the log in etcd. */
export class SharedLog implements Log {
  readonly isFull = false;
  readonly #options: SharedLogOptions;
  readonly #etcd: Etcd;
  readonly #prefix: string;
  readonly #tables: Map<string, AnyTable>;
  readonly #turns: Turns;
  readonly #checkpoints: Checkpoints;
  #events: LogEvents | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticks = 0;
  #isClosed = false;
  #epoch = '';
  /** The revisions of etcd that last wrote these keys. */
  #metaRevision = 0;
  #keysRevision = 0;
  /** The last group that the writer has. */
  #head: Head = { sequence: 0, id: '', chain: 0 };
  /** What the watch has brought since it was last looked at. */
  #arrived: readonly KeyValue[] = [];
  /** The revisions of etcd up to which nothing is missing here, and at which a group is known to have come. */
  #seenRevision = 0;
  #heardRevision = 0;
  /** When the last request was begun, and the last one that confirmed the head. */
  #askedAt = -Infinity;
  #confirmedAt = -Infinity;
  #appendMs = 0;
  #readLimit = groupsPerRead.least;
  readonly #cluster = { lostAppends: 0, reruns: 0, unansweredAppends: 0, etcdBytes: NaN, etcdQuotaBytes: NaN };

  /** The tables are empty until the log is open. */
  constructor(options: SharedLogOptions, tables: Map<string, AnyTable>) {
    this.#options = options;
    this.#etcd = options.etcd;
    this.#prefix = options.prefix;
    this.#tables = tables;
    this.#turns = new Turns(options.random, options.clock);
    this.#checkpoints = new Checkpoints(options, tables);
  }

  /** Loads the snapshot. The groups after it come like those of other nodes. */
  async open(events: LogEvents): Promise<{ epoch: string; sequence: number }> {
    const found = await findLog(this.#options, this.#tables);
    this.#epoch = found.epoch;
    this.#metaRevision = found.metaRevision;
    this.#head = found.head;
    this.#checkpoints.note(found.snapshotRevision, found.head.sequence, found.bytes);
    this.#events = events;
    this.#timer = setInterval(() => this.#tick(), confirmMs);
    void this.#watch();
    return { epoch: this.#epoch, sequence: this.#head.sequence };
  }

  /** Waits for the turn of this node, or until another one has written. */
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

  async append({ first, commits }: Group): Promise<Answer> {
    const id = `${this.#turns.name}-${first}`;
    const { bytes, chain } = encodeLine(`{"id":"${id}",${groupBody(first, commits).slice(1)}`, this.#head.chain);
    const next = { sequence: first + commits.length - 1, id, chain };
    const turns = `${this.#prefix}turns/`;
    const write = [put(groupKey(this.#prefix, first), bytes), put(`${this.#prefix}head`, JSON.stringify(next))];
    const success = [range(turns, endOf(turns)), remove(turns, endOf(turns)), ...write];
    const answer = await this.#ask({ success, failure: [put(turns + this.#turns.name, '')] }, id);
    const tookMs = this.#since(this.#askedAt);
    this.#turns.measure(tookMs);
    this.#appendMs += tookMs;
    if (answer.outcome === 'won') {
      for (const { key } of answer.found[2] ?? []) this.#turns.note(key.slice(turns.length));
      this.#advance(next);
      this.#checkpoints.logBytes += bytes.length;
    } else if (answer.outcome === 'lost') {
      this.#cluster.lostAppends += 1;
      this.#cluster.reruns += commits.length;
    }
    return answer;
  }

  confirm(): Promise<Answer> {
    return this.#ask({ success: [] });
  }

  /** There is always room, as far as is known: etcd alone refuses. */
  async checkRoom(): Promise<void> {}

  /** One of the nodes that write begins; only where it does not, the others do. */
  get checkpointDue(): boolean {
    const { excess } = this.#checkpoints;
    return excess > 2 || (excess > 1 && this.#turns.isFirst);
  }

  checkpoint(between: <T>(work: () => Promise<T>) => Promise<T>): Promise<void> {
    const isSame = isAt(`${this.#prefix}meta`, this.#metaRevision);
    return this.#checkpoints.write(between, () => ({ head: this.#head, epoch: this.#epoch, isSame }));
  }

  /** Gives up what is in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#etcd.close();
  }

  status() {
    const cluster: ClusterStatus = { ageMs: this.#since(this.#confirmedAt), ...this.#cluster };
    const { logBytes: journalBytes, counts } = this.#checkpoints;
    return { journalBytes, appendMs: this.#appendMs, ...counts, cluster };
  }

  get #isBehind(): boolean {
    return this.#heardRevision > this.#seenRevision;
  }

  #since(time: number): number {
    return this.#options.clock.elapsed() - time;
  }

  /** Does `success` if the log ends with the group that this node knows; `id` is that of the group that it writes. */
  async #ask({ success, failure = [] }: Txn, id?: string): Promise<Asked> {
    const [head, meta] = [`${this.#prefix}head`, `${this.#prefix}meta`];
    const end = endOf(`${this.#prefix}log/`);
    const following = range(groupKey(this.#prefix, this.#head.sequence + 1), end, { limit: String(this.#readLimit) });
    this.#askedAt = this.#options.clock.elapsed();
    const stalled = setTimeout(() => {
      if (id !== undefined) this.#cluster.unansweredAppends += 1;
      this.#options.onNotice('etcd does not answer: nothing can be written until it does', 'error');
      this.#events?.onStalled();
    }, stalledMs);
    try {
      const compare = [hasValue(head, JSON.stringify(this.#head)), isAt(meta, this.#metaRevision)];
      // A node that only writes confirms nothing: so an append brings these, too.
      const others = [range(`${this.#prefix}keys`), range(`${this.#prefix}snapshot`, '', { keys_only: true })];
      const answer = await this.#etcd.txn({
        compare, success: [...others, ...success], failure: [range(meta), following, ...failure],
      });
      if (!answer.succeeded) return this.#lose(answer, id);
      const [[keys] = [], [snapshot] = []] = answer.found;
      if (keys !== undefined && keys.revision !== this.#keysRevision) {
        this.#keysRevision = keys.revision;
        this.#options.onKeys(keys.value);
      }
      this.#checkpoints.note(snapshot?.revision ?? 0, this.#head.sequence);
      this.#confirmedAt = this.#askedAt;
      this.#seenRevision = answer.revision;
      return { outcome: 'won', found: answer.found };
    } catch (error) {
      return error instanceof ClusterError ? refused(error) : { outcome: 'unknown', error };
    } finally {
      clearTimeout(stalled);
    }
  }

  /** The cases A2 to A4, and F1. */
  #lose({ found, revision }: TxnAnswer, id: string | undefined): Asked {
    const [[meta] = [], groups = []] = found;
    if (meta?.revision !== this.#metaRevision) return this.#left('has a new epoch or format');
    if (String(groups[0]?.value).startsWith(`{"id":"${id}"`)) return { outcome: 'won', found: [] };
    const foreign = this.#follow(groups);
    if (foreign.length === 0) return this.#left('goes on with a group that does not follow the last one here');
    if (groups.length < this.#readLimit) this.#seenRevision = revision;
    const isSmall = groups.reduce((sum, { value }) => sum + value.length, 0) < groupsPerRead.smallBytes;
    this.#readLimit = isSmall ? Math.min(groupsPerRead.most, 2 * this.#readLimit) : groupsPerRead.least;
    return { outcome: 'lost', groups: foreign };
  }

  /** Takes the groups that follow the last one here. */
  #follow(groups: readonly KeyValue[]): ForeignGroup[] {
    const taken: ForeignGroup[] = [];
    for (const { key, value, revision } of groups) {
      const first = this.#head.sequence + 1;
      const decoded = key === groupKey(this.#prefix, first) ? decodeLine(value, this.#head.chain) : undefined;
      const { id, commits } = decoded?.value ?? {};
      if (decoded === undefined || typeof id !== 'string' || !Array.isArray(commits)) continue;
      const names = commits.flat().map((change) => (Array.isArray(change) ? String(change[0]) : ''));
      if (!names.every(isCollectionName)) continue;
      for (const name of names) tableOf(this.#tables, name);
      taken.push({ first, commits });
      this.#seenRevision = revision;
      this.#checkpoints.logBytes += value.length;
      this.#advance({ sequence: this.#head.sequence + commits.length, id, chain: decoded.chain });
    }
    return taken;
  }

  #advance(head: Head): void {
    this.#head = head;
    this.#turns.advance(head.id);
  }

  #tick(): void {
    if (this.isDue) this.#events?.onDue();
    this.#ticks = (this.#ticks + 1) % ticksPerSize;
    if (this.#ticks === 1) this.#etcd.size().then((size) => Object.assign(this.#cluster, size), () => undefined);
  }

  /** Listens for groups. What the watch loses is found by the next confirmation. */
  async #watch(): Promise<void> {
    const hear = (groups: readonly KeyValue[], revision: number): void => {
      this.#arrived = [...this.#arrived, ...groups].slice(-groupsHeldMax);
      this.#heardRevision = Math.max(this.#heardRevision, revision);
      if (this.#isBehind) this.#events?.onDue();
    };
    while (!this.#isClosed) {
      await this.#etcd.watch(`${this.#prefix}log/`, this.#seenRevision + 1, hear).catch(() => undefined);
      await sleep(watchPauseMs);
    }
  }

  /** What ends a node whose log went on, or back, without it. Before the first confirmation it is damage. */
  #left(problem: string): Asked {
    const left = new ClusterError(75, `Cannot go on: the log in etcd ${problem}; the node has to start anew`);
    return { outcome: 'unknown', error: this.#confirmedAt === -Infinity ? damaged(`its log ${problem}`) : left };
  }
}

/** What becomes of a group that etcd refuses: the cases A6 and A9. */
function refused({ message }: Error): Asked {
  const code = message.includes('too large') ? 'content_too_large' : 'storage_full';
  return { outcome: 'refused', error: new CairnError(code, 'Cannot write: the records have no room in etcd') };
}
