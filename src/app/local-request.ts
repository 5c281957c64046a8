import { callerKey } from '../base/network.ts';
import { bodyTooLarge } from '../http/exchange.ts';
import { Fields } from '../http/fields.ts';
import type { Request } from '../http/message.ts';
import type { HttpServerOptions } from '../http/server-options.ts';

interface LocalRequestOptions {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly address?: string | undefined;
  readonly receive: (bytesMax: number) => Buffer | Promise<Buffer>;
  readonly signal?: AbortSignal | undefined;
  /** Its signal is created only if it is needed. */
  readonly request?: { readonly signal: AbortSignal };
}

export class LocalRequest implements Request {
  readonly id: string;
  readonly method: string;
  readonly basePath: string;
  readonly address: string;
  readonly fields: Fields;
  target: string;
  caller: string;
  readonly #options: LocalRequestOptions;

  constructor(
    { nextId, basePath = '' }: Pick<HttpServerOptions, 'nextId' | 'basePath'>,
    options: LocalRequestOptions,
  ) {
    const { method, target, fields, address = '127.0.0.1' } = options;
    this.id = nextId();
    this.method = method;
    this.target = target;
    this.basePath = basePath;
    this.address = address;
    this.caller = callerKey(address, undefined);
    this.fields = new Fields(fields);
    this.#options = options;
  }

  get signal(): AbortSignal {
    const { signal, request } = this.#options;
    return signal ?? request?.signal ?? new AbortController().signal;
  }

  async receiveBody(bytesMax: number): Promise<Buffer> {
    const body = await this.#options.receive(bytesMax);
    if (body.length > bytesMax) throw bodyTooLarge(bytesMax);
    return body;
  }

  /** Its responses count against no share. */
  hold(): void {}

  /** A program's own requests are not logged. */
  matched(): void {}

  /** Does not count against the share of requests in flight. */
  authenticated(userId: number | undefined): void {
    this.caller = callerKey(this.address, userId);
  }
}
