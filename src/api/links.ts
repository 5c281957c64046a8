import type { Request } from '../http/message.ts';
import type { List } from '../lists/list.ts';
import type { ListQuery } from '../lists/query.ts';

/**
 * Returns the `Link` header of a list (RFC 8288), as a name and a value: its next page, or four
 * pages by number.
 */
export function linksTo(request: Request, { limit = 1, offset }: ListQuery, list: List): string[] {
  const { next, total = 0 } = list;
  if (offset === undefined) {
    if (next === undefined) return [];
    return ['Link', `<${pagesAt(request, 'cursor')}${next}>; rel="next"`];
  }
  const start = pagesAt(request, 'offset');
  const last = Math.max(0, Math.ceil(total / limit) - 1) * limit;
  const linkTo = (relation: string, place: number): string =>
    `<${start}${place}>; rel="${relation}"`;
  const links = [linkTo('first', 0)];
  if (offset > 0) links.push(linkTo('prev', Math.max(0, Math.min(offset - limit, last))));
  if (offset + limit < total) links.push(linkTo('next', offset + limit));
  links.push(linkTo('last', last));
  return ['Link', links.join(', ')];
}

/**
 * Returns the path of a list's pages, up to the value of `parameter`. The rest of the query is as
 * sent, so it does not grow.
 */
function pagesAt({ basePath, target }: Request, parameter: 'cursor' | 'offset'): string {
  const [path = '', query = ''] = target.split(/\?(.*)/s);
  const kept = query
    .split('&')
    .filter(
      (piece) => decodeURIComponent(piece.replace(/=.*/, '')).replace(/\[\]$/, '') !== parameter,
    );
  // Characters not allowed in a URI (RFC 3986 appendix A) could end the link too early.
  const written = [...kept, `${parameter}=`]
    .join('&')
    .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent);
  return `${basePath}${path}?${written}`;
}
