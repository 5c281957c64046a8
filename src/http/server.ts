import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { CairnError, invariant, type ErrorCode } from '../base/errors.ts';
import { limits, type Limits } from '../base/limits.ts';
import { networkOf, plainAddress } from '../base/network.ts';
import type { Exchanger } from './exchanger.ts';

/** A certificate chain and its private key as PEM texts. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

const tlsVersionMin = 'TLSv1.2';

export type HttpServer = Awaited<ReturnType<typeof startHttpServer>>;

/**
 * An HTTP/1.1 listener that accepts connections: bounded in what it takes in, and answering whatever comes with a reply
 * or a closed door. With `tls` it speaks HTTPS only. @throws what binding throws
 */
export async function startHttpServer(exchanger: Exchanger, port: number, host: string, tls?: TlsTexts) {
  const server = await createNodeServer(tls, exchanger.context.limits);
  const sockets = new Set<Socket>();
  const perNetwork = new Map<string, number>();
  server
    .on('request', exchanger.receive)
    .on('checkExpectation', exchanger.receive)
    .on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) =>
      exchanger.receive(incoming, outgoing, true),
    )
    .on('connect', (_incoming: IncomingMessage, socket: Socket) => {
      // Node lets go of such a socket altogether, errors included.
      socket.on('error', () => socket.destroy()).resume();
      exchanger.receiveFailure(socket, new CairnError('method_not_allowed', 'Cannot CONNECT: this server is no proxy'));
    })
    .on('clientError', receiveError)
    // A TLS socket is counted when it connects, before its handshake has cost anything.
    .on('connection', admit)
    // Whoever is idle makes room for whoever is not.
    .on('drop', () => {
      exchanger.refused += 1;
      server.closeIdleConnections();
    })
    // An accept that fails, with no descriptor left perhaps, concerns one caller and not the server.
    .on('error', () => undefined);

  /**
   * New TLS connections are met with this certificate; those that are open stay as they are.
   * @throws what node:tls throws where the two do not fit each other; then the former ones stay in use
   */
  function renewTls(tls: TlsTexts): void {
    if ('setSecureContext' in server) server.setSecureContext({ ...tls, minVersion: tlsVersionMin });
  }

  /**
   * Stops in good order: for `graceMs` everything goes on, so that load balancers can look elsewhere, but each reply
   * ends its connection; then nothing new is accepted, idle connections are closed, and the requests in flight are
   * answered. Resolves when the last connection is closed, with the number of those that `timeoutMs` cut off.
   */
  async function drain(graceMs: number, timeoutMs: number = limits.drainTimeoutMs): Promise<number> {
    exchanger.draining = true;
    await delay(graceMs);
    let cutOff = 0;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    for (const socket of sockets) {
      if (socket.bytesRead === 0) socket.destroy();
    }
    const timer = setTimeout(() => {
      cutOff = sockets.size;
      for (const socket of sockets) socket.destroy();
    }, timeoutMs);
    await closed;
    clearTimeout(timer);
    return cutOff;
  }

  function admit(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    const network = networkOf(address);
    const count = (perNetwork.get(network) ?? 0) + 1;
    const { proxies, limits } = exchanger.context;
    if (count > limits.connectionsPerAddressMax && !proxies(address)) {
      exchanger.refused += 1;
      return void socket.destroy();
    }
    perNetwork.set(network, count);
    sockets.add(socket);
    exchanger.connections += 1;
    socket.once('close', () => {
      sockets.delete(socket);
      exchanger.connections -= 1;
      const left = (perNetwork.get(network) ?? 1) - 1;
      if (left === 0) perNetwork.delete(network);
      else perNetwork.set(network, left);
    });
  }

  function receiveError(error: NodeJS.ErrnoException, socket: Socket): void {
    const code = error.code ?? '';
    // Bytes that follow "Connection: close" are no request, and the reply before them ends the connection.
    if (code === 'HPE_CLOSED_CONNECTION') return;
    // Nobody is there any more, or never spoke TLS.
    if (!socket.writable || /^(ECONNRESET|EPIPE|ERR_SSL_|ERR_TLS_)/.test(code)) return void socket.destroy();
    const [known, what] = failures[code] ?? ['malformed_request', 'its request line or a field is malformed'];
    exchanger.receiveFailure(socket, new CairnError(known, `Cannot read the request: ${what}`));
  }

  await once(server.listen({ port, host, backlog: backlogMax }), 'listening');
  const address: AddressInfo | string | null = server.address();
  invariant(typeof address === 'object' && address !== null, 'a server that listens on TCP has an address');
  return { port: address.port, renewTls, drain };
}

/** Connections that the system keeps until they are accepted; in a flood, the next one would wait for a second. */
const backlogMax = 4096;

/** What Node's parser reports, beside everything that is simply malformed. */
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
  // Whoever speaks no TLS does not wait for it to be loaded.
  const server = tls === undefined ? createServer(options) : (await import('node:https')).createServer(secure);
  server.maxConnections = bounds.connectionsMax;
  // Node drops fields beyond this number silently; the head check bounds them aloud.
  server.maxHeadersCount = 0;
  // A caller that has sent its request may close its half of the connection and still wait for the reply.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
