import type { Request } from '../http/message.ts';
import type { List } from '../lists/list.ts';
import type { ListQuery } from '../lists/query.ts';

/**
 * Returns the `Link` field of a list, as a name and a value (RFC 8288): its next page, or the four
 * pages by number.
 */
export function linksTo(request: Request, { limit = 1, offset }: ListQuery, list: List): string[] {
  const { next, total = 0 } = list;
  const links: string[] = [];
  const add = (relation: string, parameter: PageParameter, place: number | string): void =>
    void links.push(`<${pageAt(request, parameter, place)}>; rel="${relation}"`);
  if (offset === undefined) {
    if (next !== undefined) add('next', 'cursor', next);
  } else {
    const last = Math.max(0, Math.ceil(total / limit) - 1) * limit;
    add('first', 'offset', 0);
    if (offset > 0) add('prev', 'offset', Math.max(0, Math.min(offset - limit, last)));
    if (offset + limit < total) add('next', 'offset', offset + limit);
    add('last', 'offset', last);
  }
  return links.length === 0 ? [] : ['Link', links.join(', ')];
}

/** The parameters that name the place of a page. */
type PageParameter = 'cursor' | 'offset';

/**
 * Returns the path of another page. Apart from its place, its query is as it was sent,
 * and thus not longer.
 */
function pageAt(
  { basePath, target }: Request,
  parameter: PageParameter,
  place: number | string,
): string {
  const [path = '', query = ''] = target.split(/\?(.*)/s);
  const kept = query
    .split('&')
    .filter(
      (piece) => decodeURIComponent(piece.replace(/=.*/, '')).replace(/\[\]$/, '') !== parameter,
    );
  // Characters that are not allowed in a URI (RFC 3986 appendix A) could end the link too
  // early.
  const written = [...kept, `${parameter}=${place}`]
    .join('&')
    .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent);
  return `${basePath}${path}?${written}`;
}
