import { CairnError } from '../base/errors.ts';
import { nearestOf } from '../base/nearest.ts';
import type { Request } from '../http/message.ts';
import type { Route } from './call.ts';

/** Returns the error for a path that no route has. It suggests what may have been meant. */
export type UnknownPath = (request: Request) => CairnError;

/** How much of a path is compared, since the time grows with its length. */
const comparedPathMax = 64;

export function createUnknownPath(routes: readonly Route[]): UnknownPath {
  const nearestPath = nearestOf(routes.map(({ path }) => path));
  return ({ target, basePath }) => {
    const [path = ''] = target.slice(0, comparedPathMax).split('?');
    const lists = listsMeant(path, routes);
    const nearest = nearestPath(path.replace(/\/\d+$/, '/{id}'));
    const meant = lists.length > 0 || nearest === undefined ? lists : [nearest];
    const shown = meant.map((each) => basePath + each).join(' or ');
    const hint = shown === '' ? '' : `; did you mean ${shown}?`;
    return new CairnError('not_found', `Cannot find the path: no route has it${hint}`);
  };
}

/** Returns `/comments?postId=1` for `/posts/1/comments`, where comments refer to posts. */
function listsMeant(path: string, routes: readonly Route[]): string[] {
  const [, to, id, name] = /^\/([\w-]+)\/(\d+)\/([\w-]+)$/.exec(path) ?? [];
  if (to === undefined) return [];
  const list = routes.find(({ method, path }) => method === 'GET' && path === `/${name}`);
  const filters = list?.query?.filter(({ schema }) => schema['x-references'] === to) ?? [];
  return filters.map((filter) => `/${name}?${filter.name}=${id}`);
}
