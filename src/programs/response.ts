import type { Reply } from '../http/message.ts';

/** A reply as a response of the Web's kind, and its fields as headers. */

/** Adds fields, names and values in turn. */
export function addFields(headers: Headers, fields: readonly string[]): Headers {
  for (let at = 0; at < fields.length; at += 2)
    headers.append(fields[at] ?? '', fields[at + 1] ?? '');
  return headers;
}

/** Returns the response that a reply amounts to. `body` is what of it is sent. */
export function responseOf(
  { status, fields }: Reply,
  body: string | Buffer | ReadableStream<Uint8Array> | undefined,
): Response {
  const isWhole = typeof body === 'string' || Buffer.isBuffer(body);
  WholeResponse ??= classOfWholes();
  const response = isWhole
    ? new WholeResponse(Buffer.from(body), { status })
    : new Response(body ?? null, { status });
  addFields(response.headers, fields);
  return response;
}

let WholeResponse: ReturnType<typeof classOfWholes> | undefined;

/** What reads the body of a response. */
type BodyReader = 'body' | 'bodyUsed' | 'arrayBuffer' | 'blob' | 'bytes' | 'clone' | 'formData';

/**
 * Returns the class of responses with a body that is there. The body of the platform's own is a stream
 * from the beginning, which costs as much as a read of a record: here it is made when it is asked
 * for, and text and JSON are read without it. The class is made late, because `Response` loads all
 * of the platform's `fetch`.
 */
function classOfWholes() {
  // The class of what the platform makes, which has the form of `Response`: servers such as Hono's
  // put a class of their own in its place, which keeps the body by itself.
  const Platform = Response.error().constructor as typeof Response;
  const Base: new (body: null, init: ResponseInit) => Omit<Response, BodyReader | 'json' | 'text'> =
    Platform;
  return class extends Base {
    readonly #content: Buffer;
    /** The platform's own response, once the body was asked for. */
    #streamed: Response | undefined;
    #isRead = false;

    constructor(content: Buffer, init: ResponseInit) {
      super(null, init);
      this.#content = content;
    }

    get #own(): Response {
      if (this.#streamed !== undefined) return this.#streamed;
      this.#streamed = new Platform(this.#content, this);
      if (this.#isRead) void this.#streamed.text();
      return this.#streamed;
    }

    async text(): Promise<string> {
      if (this.#isRead || this.#streamed !== undefined) return await this.#own.text();
      this.#isRead = true;
      return new TextDecoder().decode(this.#content);
    }

    async json(): Promise<unknown> {
      return JSON.parse(await this.text());
    }

    get body() {
      return this.#own.body;
    }

    get bodyUsed() {
      return this.#isRead || this.#streamed?.bodyUsed === true;
    }

    arrayBuffer() {
      return this.#own.arrayBuffer();
    }

    async bytes() {
      return new Uint8Array(await this.#own.arrayBuffer());
    }

    blob() {
      return this.#own.blob();
    }

    formData() {
      return this.#own.formData();
    }

    clone() {
      return this.#own.clone();
    }
  };
}
