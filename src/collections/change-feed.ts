import { authorize, type Access, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import type { Clock } from '../base/system.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { Collection, PublishedChange, Store, StoredRecord } from '../store/store.ts';

/** A collection whose changes are told. */
export interface FeedSource {
  readonly records: Collection<StoredRecord>;
  readonly shape: Shape;
  /** Who may list it, and so may see its changes. */
  readonly access: Access;
}

/** A request to be told of changes. */
export interface FeedRequest {
  readonly principal: Principal;
  /** The key of the caller's share. */
  readonly caller: string;
  /** Aborted when nobody listens any more. */
  readonly signal: AbortSignal;
  /** The id of the last event that the caller knows of. Absent: the caller is told of what is to come. */
  readonly since: string | undefined;
  /** Whether the caller would still be let in. Asked at each change, and every 15 s. */
  readonly isAdmitted: () => boolean;
}

/** Figures for the metrics. */
export interface FeedStatus {
  readonly listeners: number;
  /** Listeners so far that were cut off, because they read too slowly. */
  readonly dropped: number;
}

/** One change as it is told, and its place: the commit, and among the changes of that. */
interface Event {
  readonly sequence: number;
  readonly index: number;
  readonly collection: string;
  readonly text: string;
}

/** What is kept of each source. */
interface Told {
  readonly access: Access;
  readonly write: (record: object) => string;
  /** The highest id so far: ids only ever grow, so a record with a higher one is new. */
  highestId: number;
}

const retryMs = 2000;
const comment = ':\n\n';

/**
 * The changes of all collections as server-sent events (WHATWG HTML §9.2), in the order of their commits. The latest
 * are remembered, once for all listeners. A listener is a place in that memory. When its connection has room, it takes
 * what is behind its place, so nothing is queued for it. Where its place has gone, it is cut off.
 *
 * The id of an event is `<epoch>-<sequence>` for the last change of a commit, and has `.<index>` for those before.
 */
export class ChangeFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #sources = new Map<string, Told>();
  readonly #places = new Shares(limits.listenersMax, limits.listenersPerCallerMax);
  readonly #wakers = new Set<() => void>();
  /** The latest events, and how many came before them. */
  #events: Event[] = [];
  #forgotten = 0;
  #length = 0;
  /** The place of the newest event that was forgotten: behind it, the memory has everything. */
  #floor: Pick<Event, 'sequence' | 'index'>;
  /** Of the last published commit. */
  #sequence: number;
  /** The place up to which listeners are told: it advances when they are woken, so that each is told in one piece. */
  #horizon = 0;
  /** What was made for one listener serves all others at the same place. */
  readonly #made = new Map<string, Piece>();
  #timer: NodeJS.Timeout | undefined;
  #wokenAt = -Infinity;
  #heartbeats: NodeJS.Timeout | undefined;
  #heartbeat = 0;
  #dropped = 0;
  #isClosed = false;

  /** Follows a store that has started. */
  constructor(store: Store, clock: Clock, sources: readonly FeedSource[]) {
    this.#store = store;
    this.#clock = clock;
    this.#sequence = store.status().sequence;
    this.#floor = { sequence: this.#sequence, index: Infinity };
    for (const { records, shape, access } of sources) {
      const [{ id: highestId } = { id: 0 }] = records.latest(1);
      this.#sources.set(records.name, { access, write: representationWriter(shape), highestId });
    }
    store.onPublished((changes) => this.#remember(changes));
  }

  get status(): FeedStatus {
    return { listeners: this.#wakers.size, dropped: this.#dropped };
  }

  /** Begins to tell a caller of changes. @throws CairnError `overloaded` where there is no place */
  follow(request: FeedRequest): AsyncIterable<string> {
    const { caller, signal } = request;
    if (!this.#places.take(caller, 1)) {
      throw new CairnError('overloaded', 'Cannot follow the changes: too many listeners', { retryAfterSeconds: 10 });
    }
    const listener = { wake: () => {} };
    const waker = (): void => listener.wake();
    this.#wakers.add(waker);
    this.#heartbeats ??= setInterval(() => {
      this.#heartbeat += 1;
      void this.#wakeAll();
    }, limits.heartbeatMs).unref();
    const end = (): void => {
      if (this.#wakers.delete(waker)) this.#places.give(caller, 1);
      listener.wake();
    };
    // A reply that is never sent is not read to its end, either.
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return this.#tell(request, listener, end);
  }

  /** Ends all streams, and begins no other. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#heartbeats);
    clearTimeout(this.#timer);
    void this.#wakeAll();
  }

  async *#tell(request: FeedRequest, listener: { wake: () => void }, end: () => void): AsyncGenerator<string> {
    try {
      const { principal, since, signal, isAdmitted } = request;
      const visible = [...this.#sources].filter(([, { access }]) => mayList(access, principal)).map(([name]) => name);
      const known = since === undefined ? this.#end : this.#placeOf(since);
      let next = known ?? this.#end;
      let heartbeat = this.#heartbeat;
      const id = `id: ${this.#idOf({ sequence: this.#sequence, index: Infinity })}\n`;
      const start = since === undefined ? id : known === undefined ? `event: reset\n${id}data: {}\n` : '';
      yield `retry: ${retryMs}\n${start}\n`;
      if (this.#timer === undefined) this.#tellUpToNow();
      while (!signal.aborted && !this.#isClosed && isAdmitted()) {
        if (next < this.#forgotten) {
          this.#dropped += 1;
          return;
        }
        const piece = this.#pieceFrom(next, visible);
        next = piece.next;
        if (piece.text !== '') {
          yield piece.text;
        } else if (heartbeat !== this.#heartbeat) {
          heartbeat = this.#heartbeat;
          yield comment;
        } else {
          await new Promise<void>((resolve) => (listener.wake = resolve));
        }
      }
    } finally {
      end();
    }
  }

  /** The place behind the newest event. Places count events from the start. */
  get #end(): number {
    return this.#forgotten + this.#events.length;
  }

  #remember(changes: readonly PublishedChange[]): void {
    const told = changes.filter(({ collection }) => this.#sources.has(collection.name));
    let index = 0;
    for (const [at, change] of told.entries()) {
      const { sequence } = change;
      const isLast = told[at + 1]?.sequence !== sequence;
      const event = this.#eventOf(change, isLast ? Infinity : index);
      this.#events.push(event);
      this.#length += event.text.length;
      index = isLast ? 0 : index + 1;
    }
    this.#sequence = changes.at(-1)?.sequence ?? this.#sequence;
    this.#forget();
    this.#wakeSoon();
  }

  #eventOf({ collection: { name }, id, record, sequence }: PublishedChange, index: number): Event {
    const source = this.#sources.get(name);
    const isNew = source !== undefined && id > source.highestId;
    if (isNew) source.highestId = id;
    const kind = record === undefined ? 'removed' : isNew ? 'created' : 'replaced';
    const shown = record === undefined ? '' : `,"record":${source?.write(record)}`;
    const data = `{"collection":"${name}","id":${id}${shown}}`;
    const text = `event: ${kind}\nid: ${this.#idOf({ sequence, index })}\ndata: ${data}\n\n`;
    return { sequence, index, collection: name, text };
  }

  #forget(): void {
    let count = 0;
    for (const event of this.#events) {
      if (this.#events.length - count <= limits.eventsMax && this.#length <= limits.eventsLengthMax) break;
      this.#length -= event.text.length;
      this.#floor = event;
      count += 1;
    }
    this.#events.splice(0, count);
    this.#forgotten += count;
  }

  #idOf({ sequence, index }: Pick<Event, 'sequence' | 'index'>): string {
    return `${this.#store.epoch}-${sequence}${index === Infinity ? '' : `.${index}`}`;
  }

  /** The place behind the event with this id; `undefined` where nobody knows what came after it. */
  #placeOf(id: string): number | undefined {
    const [, epoch, digits, part] = /^([0-9a-f]+)-(\d{1,16})(?:\.(\d{1,9}))?$/.exec(id) ?? [];
    const place = { sequence: Number(digits), index: part === undefined ? Infinity : Number(part) };
    if (epoch !== this.#store.epoch || place.sequence > this.#sequence) return undefined;
    if (isBehind(this.#floor, place)) return undefined;
    return this.#forgotten + 1 + this.#events.findLastIndex((event) => !isBehind(event, place));
  }

  /** What a listener at this place is told next, up to a bounded length. */
  #pieceFrom(place: number, visible: readonly string[]): Piece {
    const key = `${place} ${visible.join()}`;
    let piece = this.#made.get(key);
    if (piece === undefined) {
      let text = '';
      let next = place;
      for (; next < this.#horizon && text.length < limits.pieceLengthMax; next += 1) {
        const event = this.#events[next - this.#forgotten];
        if (event !== undefined && visible.includes(event.collection)) text += event.text;
      }
      if (this.#made.size === piecesMax) this.#made.clear();
      this.#made.set(key, (piece = { text, next }));
    }
    return piece;
  }

  /** Wakes all listeners, at once or so much later that telling them takes a small part of the time. */
  #wakeSoon(): void {
    if (this.#wakers.size === 0 || this.#timer !== undefined || this.#isClosed) return;
    const due = this.#wokenAt + this.#wakers.size * limits.msPerListener;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#wakeAll();
    }, Math.max(0, due - this.#clock.elapsed()));
  }

  #tellUpToNow(): void {
    this.#horizon = this.#end;
    this.#made.clear();
  }

  async #wakeAll(): Promise<void> {
    this.#wokenAt = this.#clock.elapsed();
    this.#tellUpToNow();
    let woken = 0;
    for (const wake of this.#wakers) {
      wake();
      woken += 1;
      // Others get their turn between.
      if (woken % listenersPerTurn === 0) await new Promise(setImmediate);
    }
  }
}

/** A part of the stream, and the place behind it. */
interface Piece {
  readonly text: string;
  readonly next: number;
}

const listenersPerTurn = 32;
/** Pieces that are remembered. Listeners who read well are all at one place. */
const piecesMax = 16;

function isBehind(event: Pick<Event, 'sequence' | 'index'>, place: Pick<Event, 'sequence' | 'index'>): boolean {
  return event.sequence > place.sequence || (event.sequence === place.sequence && event.index > place.index);
}

function mayList(access: Access, principal: Principal): boolean {
  try {
    authorize(access, principal, 0);
    return true;
  } catch {
    return false;
  }
}
