/**
 * The fields of one request (RFC 9110 §5), as received. Repetition is never hidden: a field that must not be repeated
 * but is, is refused before the request is handled (`head.ts`), and any other repeated field is combined.
 */
export class Fields {
  /** Names and values in turn, as received. */
  readonly raw: readonly string[];

  constructor(raw: readonly string[]) {
    this.raw = raw;
  }

  /** The value of the field with this lower-case name, several joined by ", " (RFC 9110 §5.3); else `undefined`. */
  get(name: string): string | undefined {
    const raw = this.raw;
    let value: string | undefined;
    for (let index = 0; index < raw.length; index += 2) {
      const candidate = raw[index];
      // Most names differ in length already; a request has few fields, so no map of them pays for itself.
      if (candidate === undefined || candidate.length !== name.length) continue;
      if (candidate !== name && candidate.toLowerCase() !== name) continue;
      const next = raw[index + 1];
      value = value === undefined ? next : `${value}, ${next}`;
    }
    return value;
  }
}

/** Fields that carry one value and decide who is asking, for what, or where a message ends: never repeated. */
const singular: ReadonlyMap<string, number> = new Map(
  [
    'authorization',
    'content-length',
    'content-type',
    'cookie',
    'host',
    'origin',
    'sec-fetch-site',
    'transfer-encoding',
  ].map((name, index) => [name, 1 << index]),
);

/** The lower-case name of the first field that occurs twice and must not (RFC 9110 §5.3); else `undefined`. */
export function repeatedField(raw: readonly string[]): string | undefined {
  let seen = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]?.toLowerCase() ?? '';
    const bit = singular.get(name);
    if (bit === undefined) continue;
    if ((seen & bit) !== 0) return name;
    seen |= bit;
  }
  return undefined;
}
