import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Server as TcpServer, type Socket } from 'node:net';

import { CairnError, invariant, type ErrorCode } from '../base/errors.ts';
import type { Limits } from '../base/limits.ts';
import { callerKey, plainAddress } from '../base/network.ts';
import { createServer, timers } from '../base/system.ts';
import { Connection } from './connection.ts';
import type { Handshakes } from './handshakes.ts';
import { Shared } from './server-options.ts';

/** A certificate chain and its private key, as PEM texts. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

export interface ListenOptions {
  /** 0 for any free port. */
  readonly port: number;
  readonly host: string;
  /** If absent, plain HTTP. */
  readonly tls?: TlsTexts | undefined;
}

/**
 * An HTTP/1.1 server. It listens on its own ports, and also handles requests of servers of
 * `node:http` and `node:https`. One set of limits applies to all of them.
 */
export class HttpServer extends Shared {
  refused = 0;
  readonly #servers: (Server | HttpsServer)[] = [];
  /** Made with the first port for HTTPS. */
  #handshakes: Handshakes | undefined;
  readonly #connectionOf = new WeakMap<Socket, Connection>();
  #refusalToldMs = -Infinity;

  /**
   * Listens on a port and returns its number. With a certificate, it accepts only HTTPS.
   * @throws the error of binding to the port
   */
  async listen({ port, host, tls }: ListenOptions): Promise<number> {
    const server = await createNodeServer(tls, this.options.limits);
    server
      .on('request', this.receive)
      .on('checkContinue', this.#receiveExpecting)
      // Node's own response would leave the connection open, and the request uncounted.
      .on('checkExpectation', this.receive)
      .on('connect', (_, socket: Socket) => this.#failTunnel(socket))
      .on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
        this.#failMalformed(error, socket),
      );
    if (tls === undefined) {
      server.on('connection', (socket: Socket) => {
        if (this.#count(socket, connectionBytes)) this.#connection(socket);
      });
    } else {
      const { Handshakes } = await import('./handshakes.ts');
      const handshakes = (this.#handshakes ??= new Handshakes(this.options.limits));
      // A connection counts before its handshake, which may have to wait.
      const [begin] = server.listeners('connection');
      invariant(begin !== undefined, 'a TLS server begins the handshakes of its connections');
      server.removeAllListeners('connection').on('connection', (socket: Socket) => {
        if (!this.#count(socket, secureConnectionBytes)) return;
        handshakes.add(socket, () => Reflect.apply(begin, server, [socket]));
      });
      server.on('secureConnection', (socket: Socket) => {
        handshakes.end(socket);
        this.#connection(socket);
      });
    }
    await once(server.listen({ port, host, backlog: backlogMax }), 'listening');
    // A failed accept, perhaps for lack of a descriptor, must not end the server.
    server.on('error', () => undefined);
    this.#servers.push(server);
    // The server may have begun to stop meanwhile.
    if (this.isDraining) server.close();
    const address = server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  readonly receive = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    this.#connection(incoming.socket).receive({ incoming, outgoing });
  };

  /**
   * Handles a request that waits for `100 Continue`. Behind an earlier response it gets none, and
   * is handled all the same (RFC 9110 §10.1.1): Node would write it between a response and its
   * content.
   */
  readonly #receiveExpecting = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (outgoing.socket !== null) outgoing.writeContinue();
    this.receive(incoming, outgoing);
  };

  /**
   * Uses another certificate for new connections. Open ones keep theirs.
   * @throws the error of node:tls if the certificate does not fit its key; then nothing has changed
   */
  renewTls(tls: TlsTexts): void {
    for (const server of this.#servers) {
      if ('setSecureContext' in server) {
        server.setSecureContext({ ...tls, minVersion: tlsVersionMin });
      }
    }
  }

  /**
   * Stops gracefully: accepts no more connections, handles requests in flight and those that arrive
   * meanwhile, and closes each connection after its response. Then it closes idle connections.
   * Calls `onClosed` when the last connection of its own ports is closed. Resolves when all
   * responses have been sent, with the number of connections that were cut off after `timeoutMs`.
   */
  async drain(
    timeoutMs: number = this.options.limits.drainTimeoutMs,
    onClosed?: () => void,
  ): Promise<number> {
    this.isDraining = true;
    // Only stops listening. `close` of node:http would also close connections whose response has
    // not been read yet, because it considers them idle.
    const closed = this.#servers.map(
      (server) => new Promise((resolve) => TcpServer.prototype.close.call(server, resolve)),
    );
    for (const socket of this.sockets) {
      if (socket.bytesRead === 0) socket.destroy();
    }
    let cutOff: number | undefined;
    let end = (): void => undefined;
    const isOver = new Promise<void>((resolve) => (end = resolve));
    const timer = timers.setTimeout(() => {
      cutOff = this.sockets.size;
      for (const socket of this.sockets) socket.destroy();
      end();
    }, timeoutMs);
    await Promise.race([isOver, this.#idle()]);
    // Closes idle connections, and ends Node's timeouts of slow ones.
    for (const server of this.#servers) server.close();
    await Promise.all(closed);
    onClosed?.();
    await Promise.race([isOver, this.#idle()]);
    timers.clearTimeout(timer);
    return cutOff ?? 0;
  }

  async #idle(): Promise<void> {
    while (this.isBusy) await new Promise<void>((resolve) => (this.onIdle = resolve));
  }

  #connection(socket: Socket): Connection {
    let connection = this.#connectionOf.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket, this);
      this.#connectionOf.set(socket, connection);
    }
    return connection;
  }

  /** Refuses the connection if there are too many, overall or for its network. */
  #count(socket: Socket, bytes: number): boolean {
    const { limits, clock, onRefused, proxies } = this.options;
    const { remoteAddress = '', remotePort } = socket;
    const address = plainAddress(remoteAddress);
    // Each connection of a proxy has another caller.
    const isProxy = proxies?.has(address) === true;
    const caller = isProxy ? `${address} ${remotePort}` : callerKey(address, undefined);
    const place = this.places.take(caller, 1);
    const memory = place && this.connectionMemory.take(caller, bytes);
    if (place === undefined || memory === undefined) {
      place?.release();
      socket.destroy();
      this.refused += 1;
      const nowMs = clock.elapsed();
      if (nowMs - this.#refusalToldMs < refusalsToldMs) return false;
      this.#refusalToldMs = nowMs;
      onRefused?.({ address, open: this.places.heldBy(caller), max: limits.connectionsMax });
      return false;
    }
    this.sockets.add(socket);
    socket.once('close', () => {
      this.sockets.delete(socket);
      place.release();
      memory.release();
    });
    return true;
  }

  #failTunnel(socket: Socket): void {
    // Node no longer handles events of this socket, and a response may still be on its way.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    // CONNECT names no resource that could allow another method.
    const failure = new CairnError(
      'method_not_allowed',
      'Method not allowed: this is not a proxy',
      {
        fields: ['Allow', ''],
      },
    );
    this.#connection(socket).fail(failure);
  }

  #failMalformed({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // The caller has gone away, or does not speak TLS.
    if (!socket.writable || /^(ECONNRESET|EPIPE|ERR_SSL_|ERR_TLS_)/.test(code)) {
      socket.destroy();
      return;
    }
    const problem = failures[code] ?? 'malformed_request';
    this.#connection(socket).fail(new CairnError(problem, 'Cannot read the request'));
  }
}

const tlsVersionMin = 'TLSv1.2';

const refusalsToldMs = 60_000;
/** With the largest head, and no content yet. */
const connectionBytes = 24 * 1024;
/** The same with TLS: OpenSSL takes most of it. */
const secureConnectionBytes = 128 * 1024;

/**
 * Connections that the system queues. If the queue is full, a client retries only after a second.
 */
const backlogMax = 4096;

/** Errors of Node's parser that are more than a malformed request. */
const failures: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

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
    // `checkHead` checks it, so that the response looks like any other.
    requireHostHeader: false,
    noDelay: true,
  };
  const handshakeTimeout = bounds.headersTimeoutMs;
  const secure = { ...options, ...tls, minVersion: tlsVersionMin, handshakeTimeout } as const;
  // node:https is loaded only if it is needed.
  const server =
    tls === undefined ? createServer(options) : (await import('node:https')).createServer(secure);
  // Node silently drops fields beyond this number; `checkHead` refuses them.
  server.maxHeadersCount = 0;
  // A caller may close its half of the connection after its request, and still wait for the
  // response.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
