import type { Socket } from 'node:net';

import { Budget } from '../base/budget.ts';
import { oldGenerationBytes } from '../base/heap.ts';
import { limits, type Limits } from '../base/limits.ts';
import { descriptorsMax, type Clock, timers } from '../base/system.ts';
import { createSlices, type YieldToEventLoop } from '../base/turns.ts';
import type { Fields } from './fields.ts';
import type { Handle, ProblemReply, Request, RequestEntry } from './message.ts';
import { ReadSockets } from './read-sockets.ts';

export interface Peer {
  readonly address: string;
  readonly encrypted: boolean;
}

/** Proxies whose `X-Forwarded-*` is believed. */
export interface Proxies {
  has(address: string): boolean;
  callerBehind(peer: Peer, fields: Fields): Peer;
}

/** Lets pages of other sites read responses. */
export interface Cors {
  /** Returns the headers of a response with those of CORS added, names and values in turn. */
  withCors(reply: readonly string[], request: Fields): readonly string[];
  /**
   * Returns further fields of a response to OPTIONS, for a preflight (Fetch §4.8). `allow` is the
   * value of the `Allow` field.
   */
  preflight(request: Fields, allow: string): readonly string[];
}

/** Its network or all networks have too many connections. */
export interface ConnectionRefusal {
  readonly address: string;
  readonly open: number;
  readonly max: number;
}

export interface HttpServerOptions {
  readonly clock: Clock;
  readonly nextId: () => string;
  /** If absent, all peers are callers. */
  readonly proxies?: Proxies | undefined;
  /**
   * Seconds for which browsers use only HTTPS with this host (RFC 6797). If 0 or absent,
   * `Strict-Transport-Security` is not sent.
   */
  readonly hstsSeconds?: number | undefined;
  /** Empty if absent. */
  readonly basePath?: string | undefined;
  /** If absent, only pages of this site may read responses. */
  readonly cors?: Cors | undefined;
  /** May be replaced while the server runs. */
  handle: Handle;
  readonly problemReply: ProblemReply;
  readonly onAnswered?: ((entry: RequestEntry) => void) | undefined;
  /** Called with each error that is not a `CairnError`: a bug, which the caller does not see. */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /** Called once, with the address of an untrusted peer that sends `X-Forwarded-For`. */
  readonly onUntrustedProxy?: ((address: string) => void) | undefined;
  /** Called at most once a minute. */
  readonly onRefused?: ((refusal: ConnectionRefusal) => void) | undefined;
  /** Targets that respond under any load, such as `/livez`. */
  readonly alwaysServedTargets?: ReadonlySet<string> | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /** The bytes that bodies and responses may hold; a part of the heap if absent. */
  readonly memoryMax?: number | undefined;
}

const briefMs = 0.1;
const reservedDescriptors = 128;

export class Shared {
  readonly options: HttpServerOptions & { readonly limits: Limits };
  /** Requests that wait for a disk, a hash or the like, rather than for their body. */
  readonly exchanges: Budget;
  /** Bytes of arriving bodies, and of responses that wait for their readers. */
  readonly memory: Budget;
  protected readonly places: Budget;
  protected readonly connectionMemory: Budget;
  /** Lets callers take turns with bodies that take milliseconds to read. */
  readonly takeTurn: YieldToEventLoop;
  readonly reading: ReadSockets;
  /** Includes requests whose body is arriving. */
  unanswered = 0;
  /** Exchanges that hold memory or are sending a response. */
  openExchanges = 0;
  /** Sockets of the server's own ports. With TLS, they carry the encrypted bytes. */
  protected readonly sockets = new Set<Socket>();
  isDraining = false;
  readonly gathered: { sendGathered(): void }[] = [];
  protected onIdle = (): void => undefined;
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
    const isProxy = (address: string): boolean => options.proxies?.has(address) === true;
    this.reading = new ReadSockets(options.clock, isProxy);
  }

  get connections(): number {
    return this.sockets.size;
  }

  /**
   * True if further requests have to wait for the next turn of the loop: a thousand connections'
   * requests can arrive in one.
   */
  get isTurnOver(): boolean {
    return this.#turnMs > this.options.limits.turnMs;
  }

  /** Short requests do not count. */
  answering(ms: number): void {
    if (ms < briefMs) return;
    if (this.#turnMs === 0) timers.setImmediate(() => (this.#turnMs = 0));
    this.#turnMs += ms;
  }

  get isBusy(): boolean {
    return this.unanswered + this.openExchanges > 0;
  }

  notifyIdle(): void {
    if (!this.isBusy) this.onIdle();
  }

  reportProxy(address: string): void {
    if (!this.#hasReportedProxy) this.options.onUntrustedProxy?.(address);
    this.#hasReportedProxy = true;
  }
}
