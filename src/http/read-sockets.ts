import type { Socket } from 'node:net';

import { callerKey, plainAddress } from '../base/network.ts';
import { type Clock, timers } from '../base/system.ts';

/**
 * The sockets that Node's parser reads. It parses everything that a socket has received at once.
 * So once a connection has sent too many tiny pieces, its network's other connections, and new
 * ones, are read one by one. After each, they rest for as long as that took: Node accepts one
 * connection per turn of the event loop, and those of others may wait behind them.
 */
export class ReadSockets {
  readonly #clock: Clock;
  readonly #isProxy: (address: string) => boolean;
  /** Excludes trusted proxies. */
  readonly #networks = new Map<Socket, string>();
  /** Resumed one by one. */
  readonly #paused = new Map<string, Set<Socket>>();

  /** `isProxy` recognises trusted proxies, whose connections belong to different callers. */
  constructor(clock: Clock, isProxy: (address: string) => boolean) {
    this.#clock = clock;
    this.#isProxy = isProxy;
  }

  get size(): number {
    return this.#networks.size + this.#paused.size;
  }

  /** With TLS, the socket with the plain bytes. */
  add(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    if (this.#isProxy(address)) return;
    const network = callerKey(address, undefined);
    this.#networks.set(socket, network);
    // Node resumes a new socket in the next tick.
    queueMicrotask(() => this.#paused.get(network)?.add(socket.pause()));
    socket.once('close', () => {
      this.#networks.delete(socket);
      this.#paused.get(network)?.delete(socket);
    });
  }

  pauseNetwork(socket: Socket): void {
    const network = this.#networks.get(socket);
    if (network === undefined) return;
    if (this.#paused.size === 0) this.#rest();
    const paused = this.#paused.get(network) ?? new Set();
    this.#paused.set(network, paused);
    for (const [other, itsNetwork] of this.#networks) {
      const isOther = itsNetwork === network && other !== socket && !other.isPaused();
      if (isOther) paused.add(other.pause());
    }
  }

  /** Networks take turns. */
  readonly #resumeNext = (): void => {
    for (const [network, sockets] of this.#paused) {
      const [socket] = sockets;
      this.#paused.delete(network);
      if (socket === undefined) continue;
      sockets.delete(socket);
      socket.resume();
      this.#paused.set(network, sockets);
      break;
    }
    if (this.#paused.size > 0) this.#rest();
  };

  /** Resumes the next socket after as long as the rest of this turn of the loop takes. */
  #rest(): void {
    const beganMs = this.#clock.elapsed();
    timers.setImmediate(() => timers.setTimeout(this.#resumeNext, this.#clock.elapsed() - beganMs));
  }
}
