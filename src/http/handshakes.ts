import type { Socket } from 'node:net';

import { Budget } from '../base/budget.ts';
import type { Limits } from '../base/limits.ts';
import { callerKey, plainAddress } from '../base/network.ts';

type Waiting = () => boolean;

/**
 * Limits TLS handshakes. One takes up to some milliseconds, and a thousand that arrive at once
 * would run in one turn of the event loop. So only a few are in progress, overall and for each
 * network; further connections are not read until then.
 */
export class Handshakes {
  readonly #begun: Budget;
  readonly #timeoutMs: number;
  /** Oldest first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** By the caller's address and port. */
  readonly #ends = new Map<string, () => void>();

  constructor({ handshakesMax, handshakesPerNetworkMax, headersTimeoutMs }: Limits) {
    this.#begun = new Budget(handshakesMax, handshakesPerNetworkMax);
    this.#timeoutMs = headersTimeoutMs;
  }

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

  /** `socket` has the plain bytes. */
  end(socket: Socket): void {
    this.#ends.get(nameEnds(socket))?.();
  }

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
