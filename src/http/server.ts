import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Server as TcpServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { CairnError, invariant, type ErrorCode } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import { networkOf, plainAddress } from '../base/network.ts';
import { Shares } from '../base/shares.ts';
import type { Exchanger } from './exchanger.ts';

/** A certificate chain and its private key as PEM texts. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/** An HTTP/1.1 listener. With a certificate it speaks HTTPS only. */
export interface HttpServer {
  readonly port: number;
  /**
   * Uses another certificate for new connections; open ones stay as they are.
   * @throws what node:tls throws if the certificate does not fit its key; then nothing has changed
   */
  renewTls(tls: TlsTexts): void;
  /**
   * Stops in good order: nothing new is accepted, idle connections are closed, requests in flight are answered, and
   * each reply ends its connection. Resolves when the last connection is closed, with the number of those that
   * `timeoutMs` cut off.
   */
  drain(timeoutMs?: number): Promise<number>;
}

/** Starts a listener that hands what it receives to an exchanger. @throws what binding throws */
export async function startHttpServer(
  exchanger: Exchanger, port: number, host: string, tls?: TlsTexts,
): Promise<HttpServer> {
  const server = await createNodeServer(tls, exchanger.limits);
  const listener = new Listener(server, exchanger);
  await once(server.listen({ port, host, backlog: backlogMax }), 'listening');
  const address = server.address();
  invariant(typeof address === 'object' && address !== null, 'a server that listens on TCP has an address');
  listener.port = address.port;
  return listener;
}

class Listener implements HttpServer {
  port = 0;
  readonly #server: Server | HttpsServer;
  readonly #exchanger: Exchanger;
  readonly #sockets = new Set<Socket>();
  readonly #perNetwork: Shares;
  #idleClosedMs = -Infinity;

  constructor(server: Server | HttpsServer, exchanger: Exchanger) {
    this.#server = server;
    this.#exchanger = exchanger;
    this.#perNetwork = new Shares(Infinity, exchanger.limits.connectionsPerAddressMax);
    server
      .on('request', exchanger.receive)
      .on('checkExpectation', exchanger.receive)
      .on('checkContinue', (incoming, outgoing) => exchanger.receive(incoming, outgoing, true))
      .on('connect', (_, socket: Socket) => this.#refuseTunnel(socket))
      .on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.#refuseMalformed(error, socket))
      // A TLS socket is counted when it connects, before its handshake has cost anything.
      .on('connection', (socket: Socket) => this.#count(socket))
      .on('drop', () => this.#makeRoom())
      // An accept that fails, perhaps for want of a descriptor, concerns one caller and not the server.
      .on('error', () => undefined);
  }

  renewTls(tls: TlsTexts): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext({ ...tls, minVersion: tlsVersionMin });
  }

  async drain(timeoutMs = limits.drainTimeoutMs): Promise<number> {
    this.#exchanger.draining = true;
    // This only stops listening. For Node, a connection whose reply is still being taken counts as idle.
    const closed = new Promise((resolve) => TcpServer.prototype.close.call(this.#server, resolve));
    for (const socket of this.#sockets) {
      if (socket.bytesRead === 0) socket.destroy();
    }
    let cutOff: number | undefined;
    const timer = setTimeout(() => {
      cutOff = this.#sockets.size;
      for (const socket of this.#sockets) socket.destroy();
    }, timeoutMs);
    while (this.#exchanger.sending > 0 && cutOff === undefined) await delay(takingPollMs);
    // This closes idle connections, and ends Node's watch over slow ones.
    this.#server.close();
    await closed;
    clearTimeout(timer);
    return cutOff ?? 0;
  }

  /** Counts a connection, or refuses it where its network has its share of them. */
  #count(socket: Socket): void {
    const exchanger = this.#exchanger;
    const address = plainAddress(socket.remoteAddress ?? '');
    const network = exchanger.options.proxies(address) ? undefined : networkOf(address);
    if (network !== undefined && !this.#perNetwork.take(network, 1)) {
      exchanger.refused += 1;
      return void socket.destroy();
    }
    exchanger.connections += 1;
    this.#sockets.add(socket);
    socket.once('close', () => {
      exchanger.connections -= 1;
      this.#sockets.delete(socket);
      if (network !== undefined) this.#perNetwork.give(network, 1);
    });
  }

  /** Closes idle connections for a new one that was refused. All are looked through, so not for each in a flood. */
  #makeRoom(): void {
    this.#exchanger.refused += 1;
    const nowMs = this.#exchanger.options.clock.elapsed();
    if (nowMs - this.#idleClosedMs < idleClosingMs) return;
    this.#idleClosedMs = nowMs;
    this.#server.closeIdleConnections();
  }

  #refuseTunnel(socket: Socket): void {
    // Node has let go of the socket, and a reply may still be on its way.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    const failure = new CairnError('method_not_allowed', 'Cannot CONNECT: this server is no proxy');
    this.#exchanger.receiveFailure(socket, failure);
  }

  #refuseMalformed({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // The caller has gone, or does not speak TLS.
    if (!socket.writable || /^(ECONNRESET|EPIPE|ERR_SSL_|ERR_TLS_)/.test(code)) return void socket.destroy();
    const [known, what] = failures[code] ?? ['malformed_request', 'its request line or a field is malformed'];
    this.#exchanger.receiveFailure(socket, new CairnError(known, `Cannot read the request: ${what}`));
  }
}

const tlsVersionMin = 'TLSv1.2';

/** How often a stop looks whether slow readers have taken their replies. */
const takingPollMs = 10;

/** How often idle connections are closed to make room for others, at most. */
const idleClosingMs = 1000;

/** Connections that the system keeps until they are accepted; in a flood, the next one would wait for a second. */
const backlogMax = 4096;

/** Errors of Node's parser, beside all those that mean that a request is malformed. */
const failures: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['fields_too_large', 'its target and fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['content_too_large', 'its chunk extensions are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'it took too long to arrive'],
};

async function createNodeServer(tls: TlsTexts | undefined, bounds: Limits): Promise<Server | HttpsServer> {
  const options = {
    maxHeaderSize: bounds.fieldsBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    keepAliveTimeout: bounds.keepAliveTimeoutMs,
    // How late a timeout may be noticed.
    connectionsCheckingInterval: Math.min(bounds.headersTimeoutMs / 4, 1000),
    insecureHTTPParser: false,
    // Checked with everything else about the head, so that the reply is like any other.
    requireHostHeader: false,
    noDelay: true,
  };
  const secure = { ...options, ...tls, minVersion: tlsVersionMin, handshakeTimeout: bounds.headersTimeoutMs } as const;
  // node:https is loaded for TLS only.
  const server = tls === undefined ? createServer(options) : (await import('node:https')).createServer(secure);
  server.maxConnections = bounds.connectionsMax;
  // Node drops fields beyond this number silently; the head check bounds them and says so.
  server.maxHeadersCount = 0;
  // A caller that has sent its request may close its half of the connection and still wait for the reply.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
