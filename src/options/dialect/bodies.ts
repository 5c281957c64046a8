/**
 * Accepts the bodies that json-server accepts: up to 64 MiB, without bounds on values and members,
 * of any media type, form-encoded or empty. Pages of other sites have already been refused.
 */
import { CairnError } from '../../base/errors.ts';
import { oldGenerationBytes } from '../../base/heap.ts';
import { scan, decodeText, type JsonValue } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { timers } from '../../base/system.ts';
import { Fields } from '../../http/fields.ts';
import type { Request } from '../../http/message.ts';

export const recordBytesMax = Math.min(64 * 1024 * 1024, Math.floor(oldGenerationBytes() / 8));

/** Longer bodies take long to parse, and several times their length in memory. */
const largeBytes = limits.recordBytesMax;
const largeWaitMs = 1000;

const othersAreRead = new CairnError(
  'overloaded',
  'Cannot read the body: another large one is being read; try again later',
  { retryAfterSeconds: 1 },
);

/** Handles large requests one after another. */
export class LargeBodies {
  #last: Promise<void> = Promise.resolve();

  /**
   * Waits for a turn, and resolves with a function that ends it. @throws CairnError `overloaded`
   */
  async enter(request: Request, length: number): Promise<() => void> {
    const most = oldGenerationBytes() * limits.waitingHeapShareMax;
    request.hold(Math.min(3 * length, most));
    const before = this.#last;
    let end = (): void => undefined;
    this.#last = new Promise((resolve) => (end = resolve));
    const controller = new AbortController();
    const { signal } = controller;
    const late = timers.sleep(largeWaitMs, true, { signal }).catch(() => true);
    const isLate = await Promise.race([before, late]);
    controller.abort();
    if (isLate !== true) return end;
    void before.then(end);
    throw othersAreRead;
  }
}

/** Parses JSON of any size, while other requests run in between. @throws CairnError */
export async function parseLarge(bytes: Buffer): Promise<JsonValue> {
  const text = decodeText(bytes);
  const isLarge = bytes.length > largeBytes;
  if (isLarge) await nextTurn();
  scan(text, Infinity);
  if (isLarge) await nextTurn();
  const value: JsonValue = JSON.parse(text);
  if (isLarge) await nextTurn();
  return value;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void timers.setImmediate(resolve));

export function asJsonFields({ raw }: Fields): Fields {
  const others = raw.filter((_, at) => raw[at - (at % 2)]?.toLowerCase() !== 'content-type');
  return new Fields([...others, 'Content-Type', 'application/json']);
}

const formType = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Converts a body to JSON: a form to an object of texts, an empty body to an empty object. */
export function bodyToJson(body: Buffer, contentType = ''): Buffer {
  if (body.length === 0) return Buffer.from('{}');
  if (!formType.test(contentType)) return body;
  const members = new Map<string, string | string[]>();
  // The "&" keeps a "?" at the beginning from being removed.
  for (const [name, value] of new URLSearchParams(`&${body.toString()}`)) {
    const before = members.get(name);
    members.set(name, before === undefined ? value : [before, value].flat());
  }
  return Buffer.from(JSON.stringify(Object.fromEntries(members)));
}
