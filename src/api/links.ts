import type { Request } from '../http/message.ts';
import type { List } from '../lists/list.ts';
import type { ListQuery } from '../lists/query.ts';

/**
 * Returns the `Link` field of a list, as a name and a value (RFC 8288): its next page, or the four
 * pages by number.
 */
export function linksTo(request: Request, { limit = 1, offset }: ListQuery, list: List): string[] {
  const { next, total = 0 } = list;
  const parameter = offset === undefined ? 'cursor' : 'offset';
  if (offset === undefined && next === undefined) return [];
  const start = `<${pathWithout(request, parameter)}${parameter}=`;
  const link = (relation: string, place: number | string): string =>
    `${start}${place}>; rel="${relation}"`;
  if (offset === undefined) return ['Link', link('next', next ?? '')];
  const last = Math.max(0, Math.ceil(total / limit) - 1) * limit;
  const links = [link('first', 0)];
  if (offset > 0) links.push(link('prev', Math.max(0, Math.min(offset - limit, last))));
  if (offset + limit < total) links.push(link('next', offset + limit));
  links.push(link('last', last));
  return ['Link', links.join(', ')];
}

/**
 * Returns the path of a list up to the parameter that names the place of a page. Apart from it, the
 * query is as it was sent, and thus not longer.
 */
function pathWithout({ basePath, target }: Request, parameter: string): string {
  const [path = '', query = ''] = target.split(/\?(.*)/s);
  const kept = query
    .split('&')
    .filter((piece) => piece !== '' && !isNamed(piece, parameter))
    .map((piece) => `${piece}&`)
    .join('');
  // Characters that are not allowed in a URI (RFC 3986 appendix A) could end the link too early.
  return `${basePath}${path}?${kept.replaceAll(/["<>\\^`{|}]/g, encodeURIComponent)}`;
}

/** True if a piece of a query is the parameter. */
function isNamed(piece: string, parameter: string): boolean {
  const name = piece.replace(/=.*/s, '');
  return (/[%[]/.test(name) ? decodeURIComponent(name).replace(/\[\]$/, '') : name) === parameter;
}
