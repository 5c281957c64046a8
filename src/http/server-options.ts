import type { Budget } from '../base/budget.ts';
import type { Limits } from '../base/limits.ts';
import type { TrustedProxies } from '../base/network.ts';
import type { Clock } from '../base/system.ts';
import type { YieldToEventLoop } from '../base/turns.ts';
import type { Handle, ProblemReply, Request, RequestEntry } from './message.ts';
import type { Pace } from './pace.ts';

/** What an `HttpServer` answers requests with. */
export interface HttpServerOptions {
  readonly clock: Clock;
  /** Creates request ids (`createRequestIds`). */
  readonly nextId: () => string;
  readonly proxies: TrustedProxies;
  /** `Request.basePath`; empty if absent. */
  readonly basePath?: string | undefined;
  /** Origins of other sites whose pages may read replies (CORS); none if absent. */
  readonly allowedOrigins?: ReadonlySet<string> | undefined;
  readonly handle: Handle;
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
  /** Targets that are answered under any load, such as `/livez`. */
  readonly alwaysServedTargets?: ReadonlySet<string> | undefined;
  /** Bounds that replace those of `limits`. */
  readonly limits?: Partial<Limits> | undefined;
  /** The bytes that bodies and replies may hold; a part of the heap if absent. */
  readonly memoryMax?: number | undefined;
}

/** What the connections of a server share. */
export interface Shared {
  readonly options: HttpServerOptions & { readonly limits: Limits };
  /** Requests that wait for a disk, a hash or the like, and not for their sender. */
  readonly exchanges: Budget;
  /** Bytes of bodies that arrive, and of replies that wait for their readers. */
  readonly memory: Budget;
  /** Lets callers take turns with bodies that take milliseconds to read. */
  readonly takeTurn: YieldToEventLoop;
  /** Requests whose reply is being created, those that wait for their body included. */
  unanswered: number;
  /** Called when a reply begins to be streamed, or the system does not accept it at once. */
  beginSending(): void;
  /** Called when such a reply has been sent or cut off. */
  readonly endSending: () => void;
  /** The replies that say that there is no room. */
  readonly overloads: Pace;
  /** Open connections to the server's own ports. */
  readonly connections: number;
  /** Whether every reply ends its connection, since the server is stopping. */
  readonly isDraining: boolean;
  /** Connections with a reply that is held back until the end of the loop turn. */
  readonly gathered: { sendGathered(): void }[];
  /** Reports a peer that sends `X-Forwarded-For` and is not trusted. */
  reportProxy(address: string): void;
}
