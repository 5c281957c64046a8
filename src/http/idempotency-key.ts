import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Request } from './message.ts';

/**
 * Returns the `Idempotency-Key` of a request, if any, bare or quoted as in
 * draft-ietf-httpapi-idempotency-key-header.
 * @throws CairnError `malformed_request`
 */
export function readIdempotencyKey({ fields }: Request): string | undefined {
  const sent = fields.get('idempotency-key');
  if (sent === undefined) return undefined;
  const [, quoted, bare] = idempotencyKey.exec(sent) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  if (key !== undefined) return key;
  const rule = `it must have 1 to ${limits.keyLengthMax} printable ASCII characters`;
  throw new CairnError('malformed_request', `Cannot read the Idempotency-Key: ${rule}`);
}

/** Refuses a key whose stored response would keep a secret. */
export const notKept = (place: string): CairnError =>
  new CairnError('malformed_request', `Cannot keep the reply: send no Idempotency-Key ${place}`);

/** The form of an `Idempotency-Key`, as a regular expression for JSON Schema. */
export const idempotencyKeyPattern =
  `^(?:"((?:[ !#-[\\]-~]|\\\\["\\\\]){1,${limits.keyLengthMax}})"` +
  `|([!#-~][ -~]{0,${limits.keyLengthMax - 1}}))$`;
const idempotencyKey = new RegExp(idempotencyKeyPattern);
