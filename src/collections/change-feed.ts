import { authorize, type Access, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import type { Clock } from '../base/system.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { Collection, PublishedChange, Store, StoredRecord } from '../store/store.ts';

/** A collection whose changes the feed reports. */
export interface FeedSource {
  readonly records: Collection<StoredRecord>;
  readonly shape: Shape;
  /** Access to its list, and so to its changes. */
  readonly access: Access;
}

/** A request to follow the changes. */
export interface FeedRequest {
  readonly principal: Principal;
  /** The key of the caller's share. */
  readonly caller: string;
  /** Aborted when the connection has closed. */
  readonly signal: AbortSignal;
  /**
   * Id of the last event that the caller received. Absent: only new changes are reported.
   */
  readonly since: string | undefined;
  /** Whether the caller still has access. Called at each change, and every 15 s. */
  readonly isAdmitted: () => boolean;
}

/** Figures for the metrics. */
export interface FeedStatus {
  readonly listeners: number;
  /** Listeners so far that were disconnected because they read too slowly. */
  readonly dropped: number;
}

/** One reported change. */
interface Event {
  /** Sequence number of the commit. */
  readonly sequence: number;
  readonly id: string;
  readonly collection: string;
  readonly text: string;
}

/** The state of one source. */
interface Source {
  readonly access: Access;
  readonly write: (record: object) => string;
  /** The highest id so far. Ids only grow, so a record with a higher id is new. */
  highestId: number;
}

interface Listener {
  wake: () => void;
}

const retryMs = 2000;
const comment = ':\n\n';
const listenersPerTurn = 32;

/**
 * The changes of all collections as server-sent events (WHATWG HTML §9.2), in commit
 * order. The latest events are kept once for all listeners. A listener is a position
 * among them: when its connection has room, it is sent the events after its position, so
 * nothing is queued per listener. A listener whose position has been forgotten is
 * disconnected.
 *
 * The id of an event is `<epoch>-<sequence>` for the last change of a commit, with
 * `.<index>` appended for the changes before it.
 */
export class ChangeFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #sources = new Map<string, Source>();
  readonly #shares = new Shares(limits.listenersMax, limits.listenersPerCallerMax);
  readonly #listeners = new Set<Listener>();
  /** The latest events, and how many came before them. */
  #events: Event[] = [];
  #forgotten = 0;
  /** Length of the texts of the events. */
  #length = 0;
  /** Sequence number of the newest forgotten event: all later commits are still known. */
  #forgottenSequence: number;
  /** Sequence number of the last published commit. */
  #sequence: number;
  /**
   * Position up to which events are sent. It advances when listeners are woken, to batch.
   */
  #horizon = 0;
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
    this.#forgottenSequence = this.#sequence;
    for (const { records, shape, access } of sources) {
      const [{ id: highestId } = { id: 0 }] = records.latest(1);
      this.#sources.set(records.name, {
        access,
        write: representationWriter(shape),
        highestId,
      });
    }
    store.onPublished((changes) => this.#remember(changes));
  }

  get status(): FeedStatus {
    return { listeners: this.#listeners.size, dropped: this.#dropped };
  }

  /** Starts a stream of changes. @throws CairnError `overloaded` if there are too many */
  follow(request: FeedRequest): AsyncIterable<string> {
    const { caller, signal } = request;
    if (!this.#shares.take(caller, 1)) {
      const message = 'Cannot follow the changes: too many listeners';
      throw new CairnError('overloaded', message, { retryAfterSeconds: 10 });
    }
    const listener: Listener = { wake: () => {} };
    this.#listeners.add(listener);
    this.#heartbeats ??= setInterval(() => {
      this.#heartbeat += 1;
      void this.#wakeAll();
    }, limits.heartbeatMs).unref();
    const end = (): void => {
      if (this.#listeners.delete(listener)) this.#shares.give(caller, 1);
      listener.wake();
    };
    // Also needed because a response that is never sent is not read to its end.
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return this.#stream(request, listener, end);
  }

  /** Ends all streams. Streams that start later end at once. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#heartbeats);
    clearTimeout(this.#timer);
    void this.#wakeAll();
  }

  async *#stream(
    request: FeedRequest,
    listener: Listener,
    end: () => void,
  ): AsyncGenerator<string> {
    const { principal, since, signal, isAdmitted } = request;
    try {
      const visible = [...this.#sources].filter(([, { access }]) => mayList(access, principal));
      const names = new Set(visible.map(([name]) => name));
      const known = since === undefined ? this.#end : this.#positionAfter(since);
      let position = known ?? this.#end;
      let heartbeat = this.#heartbeat;
      const id = `id: ${this.#store.epoch}-${this.#sequence}\n`;
      const reset = `event: reset\n${id}data: {}\n`;
      yield `retry: ${retryMs}\n${since === undefined ? id : known === undefined ? reset : ''}\n`;
      if (this.#timer === undefined) this.#horizon = this.#end;
      while (!signal.aborted && !this.#isClosed && isAdmitted()) {
        if (position < this.#forgotten) {
          this.#dropped += 1;
          return;
        }
        let text = '';
        for (; position < this.#horizon && text.length < limits.pieceLengthMax; position += 1) {
          const event = this.#events[position - this.#forgotten];
          if (event !== undefined && names.has(event.collection)) text += event.text;
        }
        if (text !== '') {
          yield text;
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

  /** The position after the newest event. Positions count events from the start. */
  get #end(): number {
    return this.#forgotten + this.#events.length;
  }

  #remember(changes: readonly PublishedChange[]): void {
    const reported = changes.filter(({ collection }) => this.#sources.has(collection.name));
    let index = 0;
    for (const [at, change] of reported.entries()) {
      const isLast = reported[at + 1]?.sequence !== change.sequence;
      const event = this.#eventOf(change, isLast ? '' : `.${index}`);
      this.#events.push(event);
      this.#length += event.text.length;
      index = isLast ? 0 : index + 1;
    }
    this.#sequence = changes.at(-1)?.sequence ?? this.#sequence;
    this.#forget();
    this.#wakeSoon();
  }

  #eventOf({ collection, id, record, sequence }: PublishedChange, part: string): Event {
    const { name } = collection;
    const source = this.#sources.get(name);
    const isNew = source !== undefined && id > source.highestId;
    if (isNew) source.highestId = id;
    const kind = record === undefined ? 'removed' : isNew ? 'created' : 'replaced';
    const shown = record === undefined ? '' : `,"record":${source?.write(record)}`;
    const data = `{"collection":"${name}","id":${id}${shown}}`;
    const eventId = `${this.#store.epoch}-${sequence}${part}`;
    const text = `event: ${kind}\nid: ${eventId}\ndata: ${data}\n\n`;
    return { sequence, id: eventId, collection: name, text };
  }

  #forget(): void {
    let count = 0;
    for (const { text, sequence } of this.#events) {
      const left = this.#events.length - count;
      if (left <= limits.eventsMax && this.#length <= limits.eventsLengthMax) break;
      this.#length -= text.length;
      this.#forgottenSequence = sequence;
      count += 1;
    }
    this.#events.splice(0, count);
    this.#forgotten += count;
  }

  /**
   * The position after the event with this id; `undefined` if later events may be
   * missing.
   */
  #positionAfter(id: string): number | undefined {
    let index = this.#events.findLastIndex((event) => event.id === id);
    if (index === -1) {
      // The id of a commit without events, or of one whose events were all forgotten.
      const [, epoch, digits] = /^([0-9a-f]+)-(\d{1,16})$/.exec(id) ?? [];
      const sequence = Number(digits);
      const isKnown = sequence >= this.#forgottenSequence && sequence <= this.#sequence;
      if (epoch !== this.#store.epoch || !isKnown) return undefined;
      index = this.#events.findLastIndex((event) => event.sequence <= sequence);
    }
    return this.#forgotten + index + 1;
  }

  /**
   * Wakes all listeners: at once, or later, so that serving them takes a bounded share of
   * time.
   */
  #wakeSoon(): void {
    if (this.#listeners.size === 0 || this.#timer !== undefined || this.#isClosed) return;
    const due = this.#wokenAt + this.#listeners.size * limits.msPerListener;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        void this.#wakeAll();
      },
      Math.max(0, due - this.#clock.elapsed()),
    );
  }

  async #wakeAll(): Promise<void> {
    this.#wokenAt = this.#clock.elapsed();
    this.#horizon = this.#end;
    let woken = 0;
    for (const { wake } of this.#listeners) {
      wake();
      woken += 1;
      // Lets other work run in between.
      if (woken % listenersPerTurn === 0) await new Promise(setImmediate);
    }
  }
}

function mayList(access: Access, principal: Principal): boolean {
  try {
    authorize(access, principal, 0);
    return true;
  } catch {
    return false;
  }
}
