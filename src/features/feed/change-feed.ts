import type { RoutedCollection } from '../../api/call.ts';
import type { Principal } from '../../auth/access.ts';
import { Budget } from '../../base/budget.ts';
import { CairnError } from '../../base/errors.ts';
import { oldGenerationBytes } from '../../base/heap.ts';
import { limits } from '../../base/limits.ts';
import { readId, type RecordId } from '../../base/record-id.ts';
import { type Clock, timers } from '../../base/system.ts';
import { createSlices, type YieldToEventLoop } from '../../base/turns.ts';
import { decidingNames, findPermission, type Permission } from '../../collections/permissions.ts';
import { leavable, type StreamedBody } from '../../http/message.ts';
import { fieldValue, representationWriter, type Write } from '../../schema/record.ts';
import { estimateSize } from '../../store/memory/size.ts';
import type { RecordChange, Store, StoredRecord } from '../../store/store.ts';

/** A collection whose changes are reported to callers that may list it. */
type Reported = Pick<RoutedCollection, 'name' | 'fields' | 'access' | 'isSingle'>;

/** The collections that a listener follows, with the test of the records that it sees. */
type Followed = ReadonlyMap<Source, Permission['test']>;

interface Source extends Reported {
  readonly write: Write;
  /** The fields that decide who sees a record; empty if only the caller's role does. */
  readonly deciding: readonly string[];
}

interface FeedRequest {
  readonly principal: Principal;
  readonly caller: string;
  readonly signal: AbortSignal;
  /** The id of the last event received. If absent, only new changes are reported. */
  readonly since: string | undefined;
  /** The collections to follow. If absent, all that the caller may list. */
  readonly collections: readonly string[] | undefined;
  /** True while the caller has access. Called at each change, and every 15 s. */
  readonly isAdmitted: () => boolean;
}

type Kind = 'created' | 'replaced' | 'removed';

interface Event {
  readonly sequence: number;
  readonly source: Source;
  readonly kind: Kind;
  /** The deciding values before and after, if records decide who sees them. */
  readonly before: StoredRecord | undefined;
  readonly after: StoredRecord | undefined;
  /** Null for a single resource, which has no id. */
  readonly id: RecordId | null;
  /** Its approximate memory: first of its record, then of its text. */
  bytes: number;
  /** Replaced by the text, for all listeners, when the first one reads it. */
  record: StoredRecord | undefined;
  text?: string;
}

/** Events as one text. */
interface Piece {
  /** The positions of the first event, and after the last one. */
  readonly start: number;
  readonly end: number;
  /** The end of the readable events when the piece was built. */
  readonly horizon: number;
  /** Sequence number of the last commit that was read completely. */
  readonly passed: number | undefined;
  readonly text: string;
}

interface Listener {
  wake: () => void;
}

const retryMs = 2000;
/** One more than the events kept: a new one is written before the oldest is forgotten. */
const ringLength = limits.eventsMax + 1;
const comment = ':\n\n';
const listenersPerTurn = 32;
/** Each at most about 128 KiB, unless it is the text of one event. */
const piecesMax = 16;

/**
 * Changes of all collections as server-sent events (WHATWG HTML §9.2), in commit order. The latest
 * events are kept once for all listeners. A listener is a position among them: when its connection
 * has room, it is sent the events from there on, so nothing is queued for it. If its position has
 * been forgotten, it is disconnected.
 *
 * The last event of a commit has the id `<epoch>-<sequence>`. The others have none: a listener that
 * was disconnected within a commit gets the whole commit again.
 */
export class ChangeFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #sources: ReadonlyMap<string, Source>;
  readonly places = new Budget(limits.listenersMax, limits.listenersPerCallerMax);
  /** Streams that catch up take turns by caller: each piece takes a fraction of a millisecond. */
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #listeners = new Set<Listener>();
  /** A ring of events. Their positions count events since the start. */
  readonly #events: (Event | undefined)[] = [];
  /** By the names of the followed collections. */
  readonly #pieces = new Map<string, Piece>();
  /** The positions of the oldest event, and after the newest one. */
  #first = 0;
  #end = 0;
  #bytes = 0;
  readonly #bytesMax = Math.min(
    limits.eventsBytesMax,
    oldGenerationBytes() * limits.eventsHeapShareMax,
  );
  /** Sequence number of the newest forgotten event: all later commits are still known. */
  #forgotten: number;
  /** Sequence number of the last published commit, which may have no events. */
  #sequence: number;
  /** The position up to which listeners read. It advances when they are woken, to batch. */
  #horizon = 0;
  #isDue = false;
  #isDelivering = false;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #heartbeats = 0;
  #dropped = 0;
  #isClosed = false;

  /** The store must have started. */
  constructor(store: Store, clock: Clock, collections: readonly Reported[]) {
    this.#store = store;
    this.#clock = clock;
    this.#yieldToEventLoop = createSlices(clock);
    this.#sequence = store.sequence;
    this.#forgotten = this.#sequence;
    this.#sources = new Map(
      collections.map((each) => {
        const write = representationWriter(each.fields);
        return [each.name, { ...each, write, deciding: decidingNames(each.access) }];
      }),
    );
    store.onPublished((changes) => this.#remember(changes));
  }

  get load(): { readonly listeners: number; readonly dropped: number } {
    return { listeners: this.#listeners.size, dropped: this.#dropped };
  }

  /**
   * Starts a stream of changes.
   * @throws CairnError `overloaded` if there are too many; `invalid_query` and `insufficient_scope`
   *   for an unknown collection or one that the caller may not follow
   */
  follow(request: FeedRequest): StreamedBody {
    const { caller, signal } = request;
    const followed = this.#findFollowed(request);
    const place = this.places.take(caller, 1);
    if (place === undefined) {
      const message = 'Cannot follow the changes: too many listeners';
      throw new CairnError('overloaded', message, { retryAfterSeconds: 10 });
    }
    const listener: Listener = { wake: () => {} };
    this.#listeners.add(listener);
    if (!this.#isClosed) this.#startHeartbeats();
    const leave = (): void => {
      this.#listeners.delete(listener);
      place.release();
      listener.wake();
    };
    // Also needed because a response that is never sent is not read to its end.
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return leavable(this.#stream(request, followed, listener, leave), leave);
  }

  #startHeartbeats(): void {
    this.#heartbeatTimer ??= timers
      .setInterval(() => {
        this.#heartbeats += 1;
        void this.#wakeAll();
      }, limits.heartbeatMs)
      .unref();
  }

  #findFollowed({ principal, collections }: FeedRequest): Followed {
    const followed = new Map<Source, Permission['test']>();
    const all = [...this.#sources.keys()];
    for (const name of collections ?? all) {
      const source = this.#sources.get(name);
      if (source === undefined) {
        const message = `Cannot read the query: "collection" must be one or more of ${all.join(', ')}`;
        throw new CairnError('invalid_query', message);
      }
      const { isRefused, test } = findPermission(source.access, principal, 'list');
      if (!isRefused) followed.set(source, test);
      else if (collections !== undefined) {
        const message = `Cannot follow ${name}: this caller may not list them`;
        throw new CairnError('insufficient_scope', message);
      }
    }
    return followed;
  }

  /** Streams that start later end as well. */
  close(): void {
    this.#isClosed = true;
    timers.clearInterval(this.#heartbeatTimer);
    for (const { wake } of this.#listeners) wake();
  }

  async *#stream(
    { caller, since, isAdmitted }: FeedRequest,
    followed: Followed,
    listener: Listener,
    leave: () => void,
  ): AsyncGenerator<string> {
    try {
      const known = since === undefined ? undefined : this.#positionAfter(since);
      let position = known ?? this.#end;
      let heartbeats = this.#heartbeats;
      let passed: number | undefined;
      const isShared = [...followed.values()].every((sees) => sees === undefined);
      const key = isShared ? Array.from(followed.keys(), ({ name }) => name).join() : undefined;
      const reset = since !== undefined && known === undefined ? 'event: reset\ndata: {}\n' : '';
      const end = known === undefined ? this.#writeEnd(this.#sequence) : '\n';
      yield `retry: ${retryMs}\n${reset}${end}`;
      if (position < this.#horizon) await this.#yieldToEventLoop(caller);
      while (this.#listeners.has(listener) && !this.#isClosed && isAdmitted()) {
        if (position < this.#first) {
          this.#dropped += 1;
          return;
        }
        const piece = this.#read(position, key, followed);
        position = piece.end;
        passed = piece.passed ?? passed;
        if (piece.text !== '') {
          yield piece.text;
          if (position < this.#horizon) await this.#yieldToEventLoop(caller);
        } else if (heartbeats !== this.#heartbeats) {
          heartbeats = this.#heartbeats;
          // Lets a caller that sees none of the changes resume after them.
          yield passed === undefined ? comment : this.#writeEnd(passed);
        } else {
          await new Promise<void>((resolve) => (listener.wake = resolve));
        }
      }
    } finally {
      leave();
    }
  }

  /**
   * Returns the events from `start` on. The last piece of each `key` is kept, because most listeners
   * read the same events at the same time. Only listeners that see every record of the same
   * collections have a key in common.
   */
  #read(start: number, key: string | undefined, followed: Followed): Piece {
    const horizon = this.#horizon;
    const known = key === undefined ? undefined : this.#pieces.get(key);
    if (known?.start === start && known.horizon === horizon) return known;
    let text = '';
    let end = start;
    let passed: number | undefined;
    let isTold = true;
    for (; end < horizon && text.length < limits.pieceLengthMax; end += 1) {
      const event = this.#at(end);
      if (event === undefined) continue;
      const { sequence, source, bytes } = event;
      const isLast = this.#at(end + 1)?.sequence !== sequence;
      const ending = isLast ? this.#writeEnd(sequence) : '\n';
      const shown = followed.has(source) ? writeFor(event, followed.get(source), ending) : '';
      this.#bytes += event.bytes - bytes;
      // A long text is a piece by itself: its only copy in memory serves all listeners.
      if (text !== '' && shown.length > limits.pieceLengthMax) break;
      text += shown;
      if (isLast) [passed, isTold] = [sequence, shown !== ''];
    }
    // This caller does not see the last events, but needs the id of their commit.
    if (text !== '' && passed !== undefined && !isTold) text += this.#writeEnd(passed);
    this.#forget();
    const piece = { start, horizon, end, passed, text };
    if (key === undefined) return piece;
    if (this.#pieces.size === piecesMax) this.#pieces.clear();
    this.#pieces.set(key, piece);
    return piece;
  }

  #at(position: number): Event | undefined {
    const isKnown = position >= this.#first && position < this.#end;
    return isKnown ? this.#events[position % ringLength] : undefined;
  }

  #writeEnd(sequence: number): string {
    return `id: ${this.#store.epoch}-${sequence}\n\n`;
  }

  #remember(changes: readonly RecordChange[]): void {
    for (const change of changes) {
      const source = this.#sources.get(change.collection.name);
      if (source === undefined) continue;
      const event = toEvent(change, source);
      this.#events[this.#end % ringLength] = event;
      this.#end += 1;
      this.#bytes += event.bytes;
      this.#forget();
    }
    this.#sequence = changes.at(-1)?.sequence ?? this.#sequence;
    this.#isDue = true;
    void this.#deliver();
  }

  /** Forgets the oldest events if there are too many. */
  #forget(): void {
    while (this.#end - this.#first > limits.eventsMax || this.#bytes > this.#bytesMax) {
      const oldest = this.#at(this.#first);
      this.#bytes -= oldest?.bytes ?? 0;
      this.#forgotten = oldest?.sequence ?? this.#forgotten;
      this.#events[this.#first % ringLength] = undefined;
      this.#first += 1;
    }
  }

  /** Returns the position after this event; `undefined` if later events may be missing. */
  #positionAfter(id: string): number | undefined {
    const [, epoch, digits] = /^([0-9a-f]+)-(\d{1,16})$/.exec(id) ?? [];
    const sequence = Number(digits);
    const isKnown = sequence >= this.#forgotten && sequence <= this.#sequence;
    if (epoch !== this.#store.epoch || !isKnown) return undefined;
    let position = this.#end;
    while ((this.#at(position - 1)?.sequence ?? 0) > sequence) position -= 1;
    return position;
  }

  /**
   * Wakes listeners after each publication, with pauses, so that serving them takes a bounded share
   * of time.
   */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      this.#horizon = this.#end;
      if (this.#listeners.size === 0) break;
      const began = this.#clock.elapsed();
      await this.#wakeAll();
      const due = began + this.#listeners.size * limits.msPerListener;
      // This timer keeps the process alive: listeners wait for the rest.
      await timers.sleep(Math.max(0, due - this.#clock.elapsed()));
    }
    this.#isDelivering = false;
  }

  async #wakeAll(): Promise<void> {
    let woken = 0;
    for (const { wake } of this.#listeners) {
      if (woken % listenersPerTurn === 0) await new Promise(timers.setImmediate);
      wake();
      woken += 1;
    }
  }
}

function toEvent(change: RecordChange, source: Source): Event {
  const { sequence, record, before } = change;
  const id = source.isSingle ? null : readId(record ?? before ?? change);
  const written = before === undefined ? 'created' : 'replaced';
  const event: Event = {
    sequence,
    source,
    kind: record === undefined ? 'removed' : written,
    id,
    bytes: 0,
    record,
    before: keepDeciding(before, source.deciding),
    after: keepDeciding(record, source.deciding),
  };
  event.bytes = estimateSize(record) + estimateSize(event.before) + estimateSize(event.after);
  return event;
}

function keepDeciding(
  record: StoredRecord | undefined,
  names: readonly string[],
): StoredRecord | undefined {
  if (record === undefined || names.length === 0) return undefined;
  const values = names.map((name) => [name, fieldValue(record, name)]);
  return { ...Object.fromEntries(values), id: record.id, revision: record.revision };
}

/**
 * Returns the text of an event for a listener, with its `ending`; empty if the listener sees the
 * record neither before nor after. A record that becomes visible is created for it; one that
 * becomes invisible is removed.
 */
function writeFor(event: Event, sees: Permission['test'], ending: string): string {
  if (sees === undefined) return writeText(event, ending);
  const { before, after } = event;
  const seesBefore = before !== undefined && sees(before);
  const seesAfter = after !== undefined && sees(after);
  if (!seesAfter) return seesBefore ? `${writeHead(event, 'removed')}}\n${ending}` : '';
  const text = writeText(event, ending);
  if (seesBefore || event.kind === 'created') return text;
  return writeHead(event, 'created') + text.slice(writeHead(event, event.kind).length);
}

function writeHead({ source, id }: Event, kind: Kind): string {
  return `event: ${kind}\ndata: {"collection":"${source.name}","id":${JSON.stringify(id)}`;
}

function writeText(event: Event, ending: string): string {
  if (event.text !== undefined) return event.text;
  const { source, kind, record } = event;
  const shown = record === undefined ? '' : `,"record":${source.write(record)}`;
  event.text = `${writeHead(event, kind)}${shown}}\n${ending}`;
  // Characters that JSON escapes can make the text several times as long as its record.
  event.bytes += estimateSize(event.text) - estimateSize(record);
  event.record = undefined;
  return event.text;
}
