import { OptionError } from '../config/options.ts';
import type { TlsTexts } from '../http/server.ts';
import type { Format, Log, Observer } from '../log/log.ts';
import type { App } from './app.ts';

/**
 * What a server can do without. Each part lies in a folder or file of its own, is loaded by its
 * line below before the server says that it serves, and nothing else imports it. Who does not
 * want a part removes it and its line.
 */
export interface Parts {
  readonly operations?: () => Promise<{ readonly Operations: new () => Operations }>;
  readonly readableLog?: () => Promise<{ readonly readable: Format }>;
  /** Reads a certificate and its key. */
  readonly tls?: () => Promise<{ readTls(certFile: string, keyFile: string): TlsTexts }>;
}

/** Metrics, and a listener that shows them. */
export interface Operations {
  readonly observer: Observer;
  /** Listens, and returns the port. */
  listen(operated: Operated, port: number, host: string): Promise<number>;
  drain(): Promise<void>;
}

/** What the metrics are of. */
export interface Operated {
  readonly app: App;
  readonly log: Log;
  readonly directory: string;
}

export const parts: Parts = {
  operations: () => import('../options/operations/listener.ts'),
  readableLog: () => import('../options/readable-log/format.ts'),
  tls: () => import('../options/tls/certificate.ts'),
};

/** Loads a part that an option asks for. @throws OptionError where the part was removed */
export function load<P>(part: (() => Promise<P>) | undefined, option: string): Promise<P> {
  if (part !== undefined) return part();
  throw new OptionError(`Cannot use ${option}: this installation has been built without it`);
}
