import type { Socket } from 'node:net';

import { callerKey, plainAddress } from '../base/network.ts';
import { timers } from '../base/system.ts';

/**
 * The sockets that Node's parser reads. It parses everything that a socket has received before the
 * first response. So once a connection has sent too much at once, its network's other connections
 * are read one per turn of the event loop.
 */
export class ReadSockets {
  readonly #isProxy: (address: string) => boolean;
  /** Excludes trusted proxies. */
  readonly #networks = new Map<Socket, string>();
  /** Resumed one per turn of the loop. */
  readonly #paused = new Map<string, Set<Socket>>();

  /** `isProxy` recognises trusted proxies, whose connections belong to different callers. */
  constructor(isProxy: (address: string) => boolean) {
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
    socket.once('close', () => {
      this.#networks.delete(socket);
      this.#paused.get(network)?.delete(socket);
    });
  }

  pauseNetwork(socket: Socket): void {
    const network = this.#networks.get(socket);
    if (network === undefined) return;
    if (this.#paused.size === 0) timers.setImmediate(this.#resumeNext);
    const paused = this.#paused.get(network) ?? new Set();
    this.#paused.set(network, paused);
    for (const [other, itsNetwork] of this.#networks) {
      const isOther = itsNetwork === network && other !== socket && !other.isPaused();
      if (isOther) paused.add(other.pause());
    }
  }

  /**
   * Stops reading for this turn of the loop, since there is no memory for further requests. The
   * memory of a destroyed connection returns only at the end of the turn.
   */
  pauseAll(): void {
    const running = [...this.#networks.keys()].filter((socket) => !socket.isPaused());
    for (const socket of running) socket.pause();
    timers.setImmediate(() => {
      for (const socket of running) socket.resume();
    });
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
    if (this.#paused.size > 0) timers.setImmediate(this.#resumeNext);
  };
}
