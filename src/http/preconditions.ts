import { CairnError } from '../base/errors.ts';
import type { Fields } from './fields.ts';

/** Either `*` alone, or tags as sent, with quotes and `W/`; `undefined` without the field. */
type EntityTags = readonly string[] | undefined;

interface Preconditions {
  readonly ifMatch: EntityTags;
  readonly ifNoneMatch: EntityTags;
}

/**
 * Reads the preconditions of a request (RFC 9110 §13), which are lists of entity tags (§8.8.3):
 *
 *   If-Match, If-None-Match = "*" / #entity-tag
 *   entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE
 *   etagc      = %x21 / %x23-7E / %x80-FF
 *
 * A tag may contain a comma, so a list is scanned, never split. Dates (`If-Modified-Since` and the
 * like) are ignored, as §13.1.3 and §13.1.4 require of a server without modification dates.
 * @throws CairnError `malformed_request`
 */
export function readPreconditions(fields: Fields): Preconditions {
  return {
    ifMatch: readEntityTags(fields, 'if-match'),
    ifNoneMatch: readEntityTags(fields, 'if-none-match'),
  };
}

/** Evaluates If-Match (§13.1.1) by strong comparison with the current strong tag. */
export function passesIfMatch(tags: EntityTags, current: string): boolean {
  return tags === undefined || tags.includes('*') || tags.includes(current);
}

/** Evaluates If-None-Match (§13.1.2) by weak comparison. */
export function passesIfNoneMatch(tags: EntityTags, current: string): boolean {
  return tags === undefined || !['*', current, `W/${current}`].some((tag) => tags.includes(tag));
}

const entityTag = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"';
const entityTags = new RegExp(entityTag, 'g');
/** Empty elements are legal (§5.6.1). */
const listGrammar = new RegExp(`^(?:[\\t ]*(?:${entityTag}[\\t ]*)?(?:,|$))+$`);

/** Returns `undefined` if the list is malformed or empty. */
export function parseEntityTags(value: string): EntityTags {
  if (value === '*') return [value];
  return listGrammar.test(value) ? (value.match(entityTags) ?? undefined) : undefined;
}

/** @throws CairnError `malformed_request` */
export function readEntityTags(fields: Fields, name: string): EntityTags {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const tags = parseEntityTags(value);
  if (tags === undefined) {
    throw new CairnError(
      'malformed_request',
      `Cannot read ${name}: it must be a list of entity tags, or *`,
    );
  }
  return tags;
}
