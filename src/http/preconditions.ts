import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

/**
 * Conditional requests (RFC 9110 §13) over entity tags (§8.8.3):
 *
 *   If-Match, If-None-Match = "*" / #entity-tag
 *   entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE
 *   etagc      = %x21 / %x23-7E / %x80-FF
 *
 * A comma is legal inside a tag, so a list is scanned and never split. Dates (If-Modified-Since and the like) are
 * ignored, as §13.1.3 and §13.1.4 tell a server without modification dates to do.
 */
export interface Preconditions {
  readonly ifMatch: EntityTags | undefined;
  readonly ifNoneMatch: EntityTags | undefined;
}

/** `*`, or tags as they are written, quotes and `W/` included. */
export type EntityTags = '*' | readonly string[];

/** `absent`: no such condition was sent. For If-None-Match, `failed` means that a tag matched: 304 or 412. */
export type Outcome = 'absent' | 'passed' | 'failed';

/** @throws CairnError `malformed_request` */
export function readPreconditions(fields: Fields): Preconditions {
  return { ifMatch: read(fields, 'if-match'), ifNoneMatch: read(fields, 'if-none-match') };
}

/** If-Match (§13.1.1), by strong comparison. `current`: the tag of what there is now. */
export function evaluateIfMatch(tags: EntityTags | undefined, current: string | undefined): Outcome {
  if (tags === undefined) return 'absent';
  if (current === undefined) return 'failed';
  if (tags === '*') return 'passed';
  return !isWeak(current) && tags.includes(current) ? 'passed' : 'failed';
}

/** If-None-Match (§13.1.2), by weak comparison. */
export function evaluateIfNoneMatch(tags: EntityTags | undefined, current: string | undefined): Outcome {
  if (tags === undefined) return 'absent';
  if (current === undefined) return 'passed';
  if (tags === '*') return 'failed';
  const opaque = opaqueOf(current);
  return tags.some((tag) => opaqueOf(tag) === opaque) ? 'failed' : 'passed';
}

/** The tags of a list, or `undefined` when it does not fit the grammar; empty elements are skipped (§5.6.1). */
export function parseEntityTags(value: string): EntityTags | undefined {
  if (value === '*') return '*';
  const tags: string[] = [];
  const element = /[\t ]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(?:,|$)/y;
  while (element.lastIndex < value.length) {
    const match = element.exec(value);
    if (match === null) return undefined;
    if (match[1] !== undefined) tags.push(match[1]);
  }
  return tags.length === 0 ? undefined : tags;
}

function read(fields: Fields, name: string): EntityTags | undefined {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const tags = parseEntityTags(value);
  if (tags === undefined) throw new CairnError('malformed_request', `Cannot read ${name}: it holds no entity tags`);
  return tags;
}

function isWeak(tag: string): boolean {
  return tag.startsWith('W/');
}

function opaqueOf(tag: string): string {
  return isWeak(tag) ? tag.slice(2) : tag;
}
