import type { Socket } from 'node:net';

import type { CairnError } from '../base/errors.ts';
import type { Caller, TrustedProxies } from './caller.ts';
import { plainAddress } from './caller.ts';
import type { Exchange } from './exchange.ts';

/** What is remembered of a socket between its requests. */
export class Connection {
  readonly socket: Socket;
  /** The other end of the socket, before any proxy is believed. */
  readonly peer: Caller;
  /** Whether `peer` is a proxy that is believed. */
  readonly isProxy: boolean;
  requests = 0;
  /** Nothing that follows the request in hand is looked at. */
  closing = false;
  /** The request that was handed over last. */
  current: Exchange | undefined;
  /** Whether the reply to `current` is still being made. */
  busy = false;
  /** Requests that arrived meanwhile (pipelining, RFC 9112 §9.3.2), to be answered in turn. */
  readonly waiting: Exchange[] = [];
  /** Whether so many wait that no more are read. */
  paused = false;
  /** Why nothing more can be read; told after the replies to what came before. */
  failure: { readonly error: CairnError; readonly fields: readonly string[] } | undefined;

  constructor(socket: Socket, proxies: TrustedProxies) {
    this.socket = socket;
    this.peer = { address: plainAddress(socket.remoteAddress ?? ''), encrypted: 'encrypted' in socket };
    this.isProxy = proxies.has(this.peer.address);
  }
}
