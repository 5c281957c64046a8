/**
 * The groups of the shared log, version 1. A group is a line as in `store/format/journal.ts` with
 * an id in front, at the key of its first sequence number below the prefix of `founding.ts`:
 *
 *   log/0000000000000120   {"id":"5f0c…-120","sequence":120,"commits":[[…],[…]],"crc":"89abcdef"}
 */
import { decodeLine, encodeLine, groupBody } from '../../store/format/journal.ts';
import type { Group, ReadGroup } from '../../store/log.ts';

export interface GroupHead {
  /** Of its last commit. */
  readonly sequence: number;
  readonly id: string;
  /** The CRC-32 that the line of the next group starts from. */
  readonly chain: number;
  /** The size of all groups of the log, including removed ones. */
  readonly bytes: number;
}

export const firstHead: GroupHead = { sequence: 0, id: '', chain: 0, bytes: 0 };

export function groupKey(prefix: string, sequence: number): string {
  return `${prefix}log/${String(sequence).padStart(16, '0')}`;
}

export function encodeGroup(
  { first, commits }: Group,
  head: GroupHead,
  writer: string,
): { readonly line: Buffer; readonly next: GroupHead } {
  const id = `${writer}-${first}`;
  const body = `{"id":"${id}",${groupBody(first, commits).slice(1)}`;
  const { bytes: line, chain } = encodeLine(body, head.chain);
  const sequence = first + commits.length - 1;
  return { line, next: { sequence, id, chain, bytes: head.bytes + line.length } };
}

/** Returns `undefined` if the group does not follow `head`. */
export function decodeGroup(
  line: Buffer,
  head: GroupHead,
): (ReadGroup & { readonly next: GroupHead }) | undefined {
  const decoded = decodeLine(line, head.chain);
  const { id, sequence: first, commits } = decoded?.value ?? {};
  if (decoded === undefined || first !== head.sequence + 1) return undefined;
  if (typeof id !== 'string' || !Array.isArray(commits)) return undefined;
  const sequence = head.sequence + commits.length;
  const next = { sequence, id, chain: decoded.chain, bytes: head.bytes + line.length };
  return { first, commits, next };
}
