import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * The treatment of a proxy's connections:
 * - `pass`: forwards everything;
 * - `hold`: forwards nothing and closes nothing, until it passes again;
 * - `refuse`: resets all connections, new ones included;
 * - `mute`: forwards requests and drops the responses; resets the connections when it passes again.
 */
export type ProxyMode = 'pass' | 'hold' | 'refuse' | 'mute';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** A TCP proxy between one node and one member of etcd. Unlike stopping a process, it cuts one link. */
export class Proxy {
  /** The delay of each chunk. */
  delayMs = 0;
  readonly #target: number;
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  #mode: ProxyMode = 'pass';

  private constructor(target: number) {
    this.#target = target;
    this.#listener = createServer((client) => this.#accept(client));
  }

  /** Listens on a free port, and forwards to the member at `address`. */
  static async start(address: string): Promise<Proxy> {
    const proxy = new Proxy(Number(new URL(address).port));
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    return proxy;
  }

  get address(): string {
    const { port } = this.#listener.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  set mode(mode: ProxyMode) {
    const before = this.#mode;
    this.#mode = mode;
    for (const pair of this.#pairs) {
      if (mode === 'refuse' || before === 'mute') reset(pair);
      else this.#steer(pair);
    }
  }

  /** Resets all connections, and accepts new ones. */
  reset(): void {
    for (const pair of this.#pairs) reset(pair);
  }

  async stop(): Promise<void> {
    this.reset();
    await new Promise((resolve) => this.#listener.close(resolve));
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    const pair = { client, server: connect(this.#target, '127.0.0.1') };
    this.#pairs.add(pair);
    this.#link(pair, client, pair.server, () => true);
    this.#link(pair, pair.server, client, () => this.#mode !== 'mute');
    this.#steer(pair);
  }

  #link(pair: Pair, from: Socket, to: Socket, passes: () => boolean): void {
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (!passes()) return;
      if (this.delayMs === 0) to.write(chunk);
      else setTimeout(() => to.writable && to.write(chunk), this.delayMs);
    });
    const end = (): void => {
      this.#pairs.delete(pair);
      from.destroy();
      to.destroy();
    };
    from.on('error', end).on('close', end);
  }

  #steer({ client, server }: Pair): void {
    for (const socket of [client, server]) {
      if (this.#mode === 'hold') socket.pause();
      else socket.resume();
    }
  }
}

function reset({ client, server }: Pair): void {
  client.resetAndDestroy();
  server.destroy();
}
