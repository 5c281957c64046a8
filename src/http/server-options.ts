import type { Socket } from 'node:net';

import { Budget } from '../base/budget.ts';
import { oldGenerationBytes } from '../base/heap.ts';
import { limits, type Limits } from '../base/limits.ts';
import { descriptorsMax, type Clock, timers } from '../base/system.ts';
import { createSlices, type YieldToEventLoop } from '../base/turns.ts';
import type { Fields } from './fields.ts';
import type { Handle, ProblemReply, Request, RequestEntry } from './message.ts';
import { ReadSockets } from './read-sockets.ts';

/** A caller's address, and whether its connection is encrypted. */
export interface Caller {
  readonly address: string;
  readonly encrypted: boolean;
}

/** The proxies that are believed by `X-Forwarded-*`. */
export interface Proxies {
  /** True if an address belongs to one of them. */
  has(address: string): boolean;
  /** Returns the caller behind `peer`, which is one of them. */
  callerBehind(peer: Caller, fields: Fields): Caller;
}

/** Lets pages of other sites read replies (CORS). */
export interface Cors {
  /** Returns the fields of a reply, names and values in turn, with those that the page needs. */
  withCors(reply: readonly string[], request: Fields): readonly string[];
  /**
   * Returns what the reply to OPTIONS carries for a preflight (Fetch §4.8), in addition to
   * `withCors`. `allow` is the value of the `Allow` field.
   */
  preflight(request: Fields, allow: string): readonly string[];
}

/** A connection that was refused, because its network or all networks have too many. */
export interface ConnectionRefusal {
  readonly address: string;
  /** The connections that its network has. */
  readonly open: number;
  /** The most connections of all networks. */
  readonly max: number;
}

/** The parts with which an `HttpServer` answers requests. */
export interface HttpServerOptions {
  readonly clock: Clock;
  /** Creates request ids (`createRequestIds`). */
  readonly nextId: () => string;
  /** Absent: no peer is a proxy. */
  readonly proxies?: Proxies | undefined;
  /**
   * For how long browsers use only HTTPS with this host (RFC 6797), in seconds. 0 or absent:
   * `Strict-Transport-Security` is not sent.
   */
  readonly hstsSeconds?: number | undefined;
  /** `Request.basePath`; empty if absent. */
  readonly basePath?: string | undefined;
  /** Absent: only pages of this site may read replies. */
  readonly cors?: Cors | undefined;
  /** May be replaced while the server runs. */
  handle: Handle;
  readonly problemReply: ProblemReply;
  /** Called after each reply. */
  readonly onAnswered?: ((entry: RequestEntry) => void) | undefined;
  /**
   * Called with each error that is not a `CairnError`, which is a bug. The caller is not
   * told of it.
   */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /**
   * Called once, with the address of a peer that sends `X-Forwarded-For` and is not
   * trusted.
   */
  readonly onUntrustedProxy?: ((address: string) => void) | undefined;
  /** Called when a connection is refused, at most once a minute. */
  readonly onRefused?: ((refusal: ConnectionRefusal) => void) | undefined;
  /** Targets that are answered under any load, such as `/livez`. */
  readonly alwaysServedTargets?: ReadonlySet<string> | undefined;
  /** Bounds that replace `limits`. */
  readonly limits?: Partial<Limits> | undefined;
  /** The bytes that bodies and replies may hold; a part of the heap if absent. */
  readonly memoryMax?: number | undefined;
}

/** Requests faster than this do not count towards the turn. */
const briefMs = 0.1;
/** The descriptors that are left for files, and for connections to others. */
const reservedDescriptors = 128;

/** The state that the connections of a server share. */
export class Shared {
  readonly options: HttpServerOptions & { readonly limits: Limits };
  /** Requests that wait for a disk, a hash or the like, and not for their sender. */
  readonly exchanges: Budget;
  /** Bytes of bodies that arrive, and of replies that wait for their readers. */
  readonly memory: Budget;
  /** Connections to the server's own ports, and their memory. */
  protected readonly places: Budget;
  protected readonly connectionMemory: Budget;
  /** Lets callers take turns with bodies that take milliseconds to read. */
  readonly takeTurn: YieldToEventLoop;
  /** The sockets from which requests come. */
  readonly reading: ReadSockets;
  /** Requests that wait for their reply to be created, those that wait for their body included. */
  unanswered = 0;
  /** Exchanges that hold memory, or have a reply that is being sent. */
  openExchanges = 0;
  /** Sockets of its own ports. With TLS, they carry the encrypted bytes. */
  protected readonly sockets = new Set<Socket>();
  /** True if every reply ends its connection, since the server is stopping. */
  isDraining = false;
  /** Connections with a reply that is held back until the end of the loop turn. */
  readonly gathered: { sendGathered(): void }[] = [];
  /** Called when no reply is being created or sent any more. */
  protected onIdle = (): void => undefined;
  /** The time that the long requests of this turn of the loop took together. */
  #turnMs = 0;
  #hasReportedProxy = false;

  constructor(options: HttpServerOptions) {
    const bounds: Limits = { ...limits, ...options.limits };
    const heapBytes = oldGenerationBytes();
    const { memoryMax = heapBytes * bounds.waitingHeapShareMax } = options;
    const fitting = Math.max(descriptorsMax() - reservedDescriptors, 2);
    bounds.connectionsMax = Math.min(bounds.connectionsMax, fitting);
    bounds.connectionsPerAddressMax = Math.min(bounds.connectionsPerAddressMax, fitting / 2);
    this.options = { ...options, limits: bounds };
    this.exchanges = new Budget(bounds.requestsInFlightMax, bounds.requestsInFlightPerCallerMax);
    this.memory = new Budget(memoryMax, memoryMax * bounds.waitingPerCallerShareMax);
    this.places = new Budget(bounds.connectionsMax, bounds.connectionsPerAddressMax);
    const connectionsBytes = heapBytes * bounds.connectionsHeapShareMax;
    this.connectionMemory = new Budget(connectionsBytes, connectionsBytes / 2);
    this.takeTurn = createSlices(options.clock);
    this.reading = new ReadSockets((address) => options.proxies?.has(address) === true);
  }

  /** Open connections to the server's own ports. */
  get connections(): number {
    return this.sockets.size;
  }

  /**
   * Whether the requests of this turn of the loop have taken so long that further ones wait: those
   * of a thousand connections can arrive in one.
   */
  get isTurnOver(): boolean {
    return this.#turnMs > this.options.limits.turnMs;
  }

  /** Counts how long a request was answered. The many short ones need not be. */
  answering(ms: number): void {
    if (ms < briefMs) return;
    if (this.#turnMs === 0) timers.setImmediate(() => (this.#turnMs = 0));
    this.#turnMs += ms;
  }

  /** True if a reply is being created or sent. */
  get isBusy(): boolean {
    return this.unanswered + this.openExchanges > 0;
  }

  /** Called after each reply that the server was busy with. */
  notifyIdle(): void {
    if (!this.isBusy) this.onIdle();
  }

  /** Reports a peer that sends `X-Forwarded-For` and is not trusted. */
  reportProxy(address: string): void {
    if (!this.#hasReportedProxy) this.options.onUntrustedProxy?.(address);
    this.#hasReportedProxy = true;
  }
}
