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
 * @throws CairnError `malformed_request`
 */
export function readPreconditions(fields: Fields) {
  return { ifMatch: readEntityTags(fields, 'if-match'), ifNoneMatch: readEntityTags(fields, 'if-none-match') };
}

/** `*` alone, or tags as they are written, quotes and `W/` included. */
type EntityTags = readonly string[] | undefined;

/** If-Match (§13.1.1), by strong comparison. `current`, here and below: the strong tag of what there is now. */
export function passesIfMatch(tags: EntityTags, current: string): boolean {
  return tags === undefined || tags.includes('*') || tags.includes(current);
}

/** If-None-Match (§13.1.2), by weak comparison. */
export function passesIfNoneMatch(tags: EntityTags, current: string): boolean {
  return tags === undefined || !['*', current, `W/${current}`].some((tag) => tags.includes(tag));
}

/** The tags of a list, or `undefined` when it does not fit the grammar; empty elements are skipped (§5.6.1). */
export function parseEntityTags(value: string): EntityTags {
  if (value === '*') return [value];
  const tags: string[] = [];
  const element = /[\t ]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(?:,|$)/y;
  while (element.lastIndex < value.length) {
    const match = element.exec(value);
    if (match === null) return undefined;
    if (match[1] !== undefined) tags.push(match[1]);
  }
  return tags.length === 0 ? undefined : tags;
}

/** @throws CairnError `malformed_request` */
export function readEntityTags(fields: Fields, name: string): EntityTags {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const tags = parseEntityTags(value);
  if (tags === undefined) throw new CairnError('malformed_request', `Cannot read ${name}: it holds no entity tags`);
  return tags;
}
