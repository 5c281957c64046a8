import type { Socket } from 'node:net';

import { networkOf, plainAddress } from '../base/network.ts';
import { timers } from '../base/system.ts';

/**
 * The sockets that Node's parser reads. It parses all that has arrived before anything is answered,
 * so those of a network that sends much are paused, and networks take turns.
 */
export class ReadSockets {
  readonly #isProxy: (address: string) => boolean;
  /** The sockets that Node's parser reads, and their networks: "" for a trusted proxy. */
  readonly #parsed = new Map<Socket, string>();
  /** By network, the connections with requests that wait until others have been served. */
  readonly #waiting = new Map<string, number>();
  /** By network, the sockets that are read again in later turns of the loop. */
  readonly #paused = new Map<string, Socket[]>();

  /** `isProxy` tells the addresses of trusted proxies. */
  constructor(isProxy: (address: string) => boolean) {
    this.#isProxy = isProxy;
  }

  /** Notes a socket from which requests come. With TLS, the one that has the plain bytes. */
  readonly note = (socket: Socket): void => {
    if (this.#parsed.has(socket)) return;
    const address = plainAddress(socket.remoteAddress ?? '');
    this.#parsed.set(socket, this.#isProxy(address) ? '' : networkOf(address));
    socket.once('close', () => this.#parsed.delete(socket));
  };

  /**
   * Reads nothing more from the network of a socket, which has sent many requests, until they are
   * answered: Node would parse those of all its sockets before it serves anybody else. Returns a
   * function that ends this.
   */
  beginWaiting(socket: Socket): () => void {
    const network = this.#parsed.get(socket) ?? '';
    this.#waiting.set(network, (this.#waiting.get(network) ?? 0) + 1);
    this.pauseNetwork(socket);
    return () => {
      const left = (this.#waiting.get(network) ?? 0) - 1;
      if (left > 0) this.#waiting.set(network, left);
      else this.#waiting.delete(network);
    };
  }

  /**
   * Reads the other sockets of a network in later turns of the loop, one in each. Those of a trusted
   * proxy have many callers, none of whom waits for another.
   */
  pauseNetwork(socket: Socket): void {
    const network = this.#parsed.get(socket) ?? '';
    if (network === '') return;
    if (this.#paused.size === 0) timers.setImmediate(this.#resumeNext);
    for (const [other, its] of this.#parsed) {
      if (its !== network || other === socket || other.isPaused()) continue;
      const sockets = this.#paused.get(network) ?? [];
      sockets.push(other.pause());
      this.#paused.set(network, sockets);
    }
  }

  /** Networks take turns. */
  readonly #resumeNext = (): void => {
    for (const [network, sockets] of this.#paused) {
      if (this.#waiting.has(network)) continue;
      sockets.shift()?.resume();
      this.#paused.delete(network);
      if (sockets.length > 0) this.#paused.set(network, sockets);
      break;
    }
    if (this.#paused.size > 0) timers.setImmediate(this.#resumeNext);
  };

  /**
   * Reads no socket any more in this turn of the loop, since there is no memory for requests. That
   * of a connection which is cut off comes back only at the end of the turn.
   */
  pauseAll(): void {
    const running = [...this.#parsed.keys()].filter((socket) => !socket.isPaused());
    for (const socket of running) socket.pause();
    timers.setImmediate(() => {
      for (const socket of running) socket.resume();
    });
  }
}
