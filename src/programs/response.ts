import type { Reply } from '../http/message.ts';

/** A reply as a response of the Web's kind, and its fields as headers. */

/** Adds fields, names and values in turn. */
export function addFields(headers: Headers, fields: readonly string[]): Headers {
  for (let at = 0; at < fields.length; at += 2)
    headers.append(fields[at] ?? '', fields[at + 1] ?? '');
  return headers;
}

/** Returns the response that a reply amounts to. `body` is the part of it that is sent. */
export function responseOf(
  { status, fields }: Reply,
  body: string | Buffer | ReadableStream<Uint8Array> | undefined,
): Response {
  const headers = addFields(new Headers(), fields);
  // A text would add a Content-Type of its own.
  return new Response(typeof body === 'string' ? Buffer.from(body) : (body ?? null), {
    status,
    headers,
  });
}
