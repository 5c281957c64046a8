import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Server as TcpServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { CairnError, type ErrorCode } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import { networkOf, plainAddress } from '../base/network.ts';
import { Shares } from '../base/shares.ts';
import type { Exchanger } from './exchanger.ts';

/** A certificate chain and its private key, as PEM texts. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/**
 * Starts a server whose requests an exchanger answers.
 * @throws the error of binding to the port
 */
export async function startHttpServer(
  exchanger: Exchanger,
  port: number,
  host: string,
  tls?: TlsTexts,
): Promise<HttpServer> {
  const server = await createNodeServer(tls, exchanger.limits);
  const started = new HttpServer(server, exchanger);
  await once(server.listen({ port, host, backlog: backlogMax }), 'listening');
  return started;
}

/** An HTTP/1.1 server on a port of its own. With a certificate, it speaks HTTPS only. */
export class HttpServer {
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
      .on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
        this.#refuseMalformed(error, socket),
      )
      // A TLS socket is counted when it connects, before the handshake costs anything.
      .on('connection', (socket: Socket) => this.#count(socket))
      .on('drop', () => this.#makeRoom())
      // An accept that fails, perhaps for lack of a descriptor, must not end the server.
      .on('error', () => undefined);
  }

  /** The port that it listens on. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  /**
   * Uses another certificate for new connections. Open ones keep theirs.
   * @throws the error of node:tls if the certificate does not fit its key; then nothing
   *   has changed
   */
  renewTls(tls: TlsTexts): void {
    if (!('setSecureContext' in this.#server)) return;
    this.#server.setSecureContext({ ...tls, minVersion: tlsVersionMin });
  }

  /**
   * Stops gracefully: accepts no more connections, closes idle ones, and answers the
   * requests in flight, each of which ends its connection. Resolves when the last
   * connection is closed, with the number of connections that were cut off after
   * `timeoutMs`.
   */
  async drain(timeoutMs: number = limits.drainTimeoutMs): Promise<number> {
    this.#exchanger.draining = true;
    // Only stops listening. `close` of node:http would also close connections whose reply
    // has not been read yet, because it takes them for idle.
    const closed = new Promise((resolve) => TcpServer.prototype.close.call(this.#server, resolve));
    for (const socket of this.#sockets) {
      if (socket.bytesRead === 0) socket.destroy();
    }
    let cutOff: number | undefined;
    const timer = setTimeout(() => {
      cutOff = this.#sockets.size;
      for (const socket of this.#sockets) socket.destroy();
    }, timeoutMs);
    while (this.#exchanger.sending > 0 && cutOff === undefined) await delay(sendingPollMs);
    // Closes idle connections, and ends Node's timeouts of slow ones.
    this.#server.close();
    await closed;
    clearTimeout(timer);
    return cutOff ?? 0;
  }

  /** Counts a connection, or refuses it if its network has used up its share. */
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

  /**
   * Closes idle connections, after a new one was refused. This looks at every connection,
   * so in a flood it is not repeated each time.
   */
  #makeRoom(): void {
    this.#exchanger.refused += 1;
    const nowMs = this.#exchanger.options.clock.elapsed();
    if (nowMs - this.#idleClosedMs < idleClosingMs) return;
    this.#idleClosedMs = nowMs;
    this.#server.closeIdleConnections();
  }

  #refuseTunnel(socket: Socket): void {
    // Node no longer handles events of this socket, and a reply may still be on its way.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    // CONNECT names no resource that could allow another method.
    const failure = new CairnError('method_not_allowed', 'Method not allowed: this is no proxy', {
      fields: ['Allow', ''],
    });
    this.#exchanger.receiveFailure(socket, failure);
  }

  #refuseMalformed({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // The caller has gone away, or does not speak TLS.
    const isGone = !socket.writable || /^(ECONNRESET|EPIPE|ERR_SSL_|ERR_TLS_)/.test(code);
    if (isGone) return void socket.destroy();
    const [known, detail] = failures[code] ?? unparsable;
    this.#exchanger.receiveFailure(
      socket,
      new CairnError(known, `Cannot read the request: ${detail}`),
    );
  }
}

const tlsVersionMin = 'TLSv1.2';

/** How often a draining server checks whether slow readers have their replies. */
const sendingPollMs = 10;

/** How often, at most, idle connections are closed to make room for others. */
const idleClosingMs = 1000;

/**
 * Connections that the system queues. If the queue is full, a client only retries after a
 * second.
 */
const backlogMax = 4096;

/** Errors of Node's parser, apart from those that mean a malformed request. */
const failures: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['fields_too_large', 'its target and fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['content_too_large', 'its chunk extensions are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'it took too long to arrive'],
};

const unparsable = ['malformed_request', 'its request line or a field is malformed'] as const;

async function createNodeServer(
  tls: TlsTexts | undefined,
  bounds: Limits,
): Promise<Server | HttpsServer> {
  const options = {
    maxHeaderSize: bounds.fieldsBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    keepAliveTimeout: bounds.keepAliveTimeoutMs,
    // A timeout is noticed at most this much later.
    connectionsCheckingInterval: Math.min(bounds.headersTimeoutMs / 4, 1000),
    insecureHTTPParser: false,
    // Checked by `checkHead`, so that the reply has the same form as any other.
    requireHostHeader: false,
    noDelay: true,
  };
  const handshakeTimeout = bounds.headersTimeoutMs;
  const secure = { ...options, ...tls, minVersion: tlsVersionMin, handshakeTimeout } as const;
  // node:https is loaded only if it is needed.
  const server =
    tls === undefined ? createServer(options) : (await import('node:https')).createServer(secure);
  server.maxConnections = bounds.connectionsMax;
  // Node silently drops fields beyond this number. `checkHead` bounds them and reports
  // it.
  server.maxHeadersCount = 0;
  // A caller may close its half of the connection after its request, and still wait for
  // the reply.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
