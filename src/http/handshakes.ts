import type { Socket } from 'node:net';

import { Budget } from '../base/budget.ts';
import type { Limits } from '../base/limits.ts';
import { callerKey, plainAddress } from '../base/network.ts';

/** A connection whose handshake waits. */
type Waiting = () => boolean;

/**
 * TLS handshakes. One takes the server up to some milliseconds, and a thousand that arrive at once
 * are made in one turn of the event loop. So only a few have begun and not ended, in all and of one
 * network; further connections are not read until then.
 */
export class Handshakes {
  readonly #begun: Budget;
  readonly #timeoutMs: number;
  /** By network, the connections that wait, the oldest first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** By address and port of the caller, what ends a handshake. */
  readonly #ends = new Map<string, () => void>();

  constructor({ handshakesMax, handshakesPerNetworkMax, headersTimeoutMs }: Limits) {
    this.#begun = new Budget(handshakesMax, handshakesPerNetworkMax);
    this.#timeoutMs = headersTimeoutMs;
  }

  /** Begins the handshake of a connection as soon as there is room for it. */
  add(socket: Socket, begin: () => void): void {
    const network = callerKey(plainAddress(socket.remoteAddress ?? ''), undefined);
    const key = nameEnds(socket);
    const tryToBegin = (): boolean => {
      const place = this.#begun.take(network, 1, () => socket.destroy());
      if (place === undefined) return false;
      const end = (): void => {
        place.release();
        if (this.#ends.delete(key)) this.#beginNext();
      };
      this.#ends.set(key, end);
      socket.setTimeout(0).once('close', end);
      begin();
      return true;
    };
    if (tryToBegin()) return;
    const waiting = this.#waiting.get(network) ?? new Set();
    this.#waiting.set(network, waiting.add(tryToBegin));
    socket.setTimeout(this.#timeoutMs, () => socket.destroy());
    socket.once('close', () => waiting.delete(tryToBegin));
  }

  /** Ends the handshake of a connection. `socket` has the plain bytes. */
  end(socket: Socket): void {
    this.#ends.get(nameEnds(socket))?.();
  }

  /** Networks take turns. */
  #beginNext(): void {
    for (const [network, waiting] of [...this.#waiting]) {
      const [first] = waiting;
      this.#waiting.delete(network);
      if (first === undefined) continue;
      this.#waiting.set(network, waiting);
      if (first() && waiting.delete(first)) return;
    }
  }
}

const nameEnds = ({ remoteAddress, remotePort, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localPort}`;
