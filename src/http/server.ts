import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Server as TcpServer, type Socket } from 'node:net';

import { Budget, type Holding } from '../base/budget.ts';
import { CairnError, type ErrorCode } from '../base/errors.ts';
import type { Limits } from '../base/limits.ts';
import { networkOf, plainAddress, siteOf } from '../base/network.ts';
import { createServer, timers } from '../base/system.ts';
import { Connection } from './connection.ts';
import { Shared } from './server-options.ts';

/** A certificate chain and its private key, as PEM texts. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/** Where a server listens. */
export interface ListenOptions {
  /** 0 stands for any free port. */
  readonly port: number;
  readonly host: string;
  /** Absent: plain HTTP. */
  readonly tls?: TlsTexts | undefined;
}

/**
 * An HTTP/1.1 server. It listens on ports of its own, and answers requests that arrive at
 * a server of `node:http` or `node:https`. All of them share its bounds.
 */
export class HttpServer extends Shared {
  /** Connections closed at once because a limit was reached. */
  refused = 0;
  readonly #servers: (Server | HttpsServer)[] = [];
  readonly #perNetwork = new Budget(Infinity, this.options.limits.connectionsPerAddressMax);
  readonly #connectionOf = new WeakMap<Socket, Connection>();
  #idleClosedMs = -Infinity;

  /**
   * Listens on a port of its own, and returns it. With a certificate, it speaks HTTPS only.
   * @throws the error of binding to the port
   */
  async listen({ port, host, tls }: ListenOptions): Promise<number> {
    const server = await createNodeServer(tls, this.options.limits);
    server
      .on('request', this.receive)
      .on('checkExpectation', this.receive)
      .on('checkContinue', (incoming, outgoing) => this.receive(incoming, outgoing, true))
      .on('connect', (_, socket: Socket) => this.#failTunnel(socket))
      .on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
        this.#failMalformed(error, socket),
      )
      .on(tls === undefined ? 'connection' : 'secureConnection', this.reading.note)
      // A TLS socket is counted when it connects, before the handshake costs anything.
      .on('connection', (socket: Socket) => this.#count(socket));
    await once(server.listen({ port, host, backlog: backlogMax }), 'listening');
    // An accept that fails, perhaps for lack of a descriptor, must not end the server.
    server.on('error', () => undefined);
    this.#servers.push(server);
    if (this.isDraining) await this.drain(0);
    const address = server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  /** Answers a request that has just arrived at a `node:http` or `node:https` server. */
  readonly receive = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    awaitsContinue = false,
  ): void => {
    this.#connection(incoming.socket).receive({ incoming, outgoing, awaitsContinue });
  };

  /**
   * Uses another certificate for new connections. Open ones keep theirs.
   * @throws the error of node:tls if the certificate does not fit its key; then nothing
   *   has changed
   */
  renewTls(tls: TlsTexts): void {
    for (const server of this.#servers) {
      if ('setSecureContext' in server) {
        server.setSecureContext({ ...tls, minVersion: tlsVersionMin });
      }
    }
  }

  /**
   * Stops gracefully: accepts no more connections, closes idle ones, and answers the
   * requests in flight, each of which ends its connection. Calls `onClosed` when the last
   * connection of its own ports is closed. Resolves when no reply is being created or sent any
   * more, with the number of connections that were cut off after `timeoutMs`.
   */
  async drain(
    timeoutMs: number = this.options.limits.drainTimeoutMs,
    onClosed?: () => void,
  ): Promise<number> {
    this.isDraining = true;
    // Only stops listening. `close` of node:http would also close connections with a reply that
    // has not been read yet, because it takes them for idle.
    const closed = this.#servers.map(
      (server) => new Promise((resolve) => TcpServer.prototype.close.call(server, resolve)),
    );
    for (const socket of this.sockets) {
      if (socket.bytesRead === 0) socket.destroy();
    }
    let cutOff: number | undefined;
    const timer = timers.setTimeout(() => {
      cutOff = this.sockets.size;
      for (const socket of this.sockets) socket.destroy();
      this.onDone();
    }, timeoutMs);
    await Promise.race([this.until(() => this.sending === 0), ...closed]);
    // Closes idle connections, and ends Node's timeouts of slow ones.
    for (const server of this.#servers) server.close();
    await Promise.all(closed);
    onClosed?.();
    await this.until(() => cutOff !== undefined || this.unanswered + this.sending === 0);
    timers.clearTimeout(timer);
    return cutOff ?? 0;
  }

  /** The connection of a socket, which may belong to a server of the embedder. */
  #connection(socket: Socket): Connection {
    let connection = this.#connectionOf.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket, this);
      this.#connectionOf.set(socket, connection);
      this.reading.note(socket);
    }
    return connection;
  }

  /** Counts a connection, or refuses it if there are too many, in all or of its network. */
  #count(socket: Socket): void {
    if (this.connections >= this.options.limits.connectionsMax) {
      this.#makeRoom();
      socket.destroy();
      return;
    }
    const address = plainAddress(socket.remoteAddress ?? '');
    const isProxy = this.options.proxies?.has(address) === true;
    const place = isProxy ? undefined : this.#placeOf(networkOf(address));
    if (!isProxy && place === undefined) {
      this.refused += 1;
      socket.destroy();
      return;
    }
    this.sockets.add(socket);
    socket.once('close', () => {
      this.sockets.delete(socket);
      place?.release();
    });
  }

  /** Takes a connection out of a network's share. A site with many networks has half of all. */
  #placeOf(network: string): Holding | undefined {
    const site = siteOf(network);
    const siteMax = site === network ? Infinity : this.options.limits.connectionsMax / 2;
    return this.#perNetwork.heldBy(site) < siteMax ? this.#perNetwork.take(network, 1) : undefined;
  }

  /**
   * Closes idle connections, after a new one was refused. This looks at every connection,
   * so in a flood it is not repeated each time.
   */
  #makeRoom(): void {
    this.refused += 1;
    const nowMs = this.options.clock.elapsed();
    if (nowMs - this.#idleClosedMs < idleClosingMs) return;
    this.#idleClosedMs = nowMs;
    for (const server of this.#servers) server.closeIdleConnections();
  }

  #failTunnel(socket: Socket): void {
    // Node no longer handles events of this socket, and a reply may still be on its way.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    // CONNECT names no resource that could allow another method.
    const failure = new CairnError('method_not_allowed', 'Method not allowed: this is no proxy', {
      fields: ['Allow', ''],
    });
    this.#connection(socket).fail(failure);
  }

  #failMalformed({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // The caller has gone away, or does not speak TLS.
    if (!socket.writable || /^(ECONNRESET|EPIPE|ERR_SSL_|ERR_TLS_)/.test(code)) {
      socket.destroy();
      return;
    }
    const [problem, detail] = failures[code] ?? unparsable;
    this.#connection(socket).fail(new CairnError(problem, `Cannot read the request: ${detail}`));
  }
}

const tlsVersionMin = 'TLSv1.2';

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
  // Node silently drops fields beyond this number. `checkHead` bounds them and reports
  // it.
  server.maxHeadersCount = 0;
  // A caller may close its half of the connection after its request, and still wait for
  // the reply.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
