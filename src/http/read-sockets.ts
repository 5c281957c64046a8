import type { Socket } from 'node:net';

import { callerKey, plainAddress } from '../base/network.ts';
import { timers } from '../base/system.ts';
import { Turns } from '../base/turns.ts';

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
  readonly #paused = new Turns<Socket>();
  #isResuming = false;

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
      this.#paused.remove(network, socket);
    });
  }

  pauseNetwork(socket: Socket): void {
    const network = this.#networks.get(socket);
    if (network === undefined) return;
    for (const [other, itsNetwork] of this.#networks) {
      const isOther = itsNetwork === network && other !== socket && !other.isPaused();
      if (isOther) this.#paused.add(network, other.pause());
    }
    if (this.#isResuming) return;
    this.#isResuming = true;
    timers.setImmediate(this.#resumeNext);
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

  readonly #resumeNext = (): void => {
    this.#paused.next()?.resume();
    this.#isResuming = this.#paused.size > 0;
    if (this.#isResuming) timers.setImmediate(this.#resumeNext);
  };
}
