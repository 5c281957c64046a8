import { negotiate } from '../http/accept.ts';
import type { Request } from '../http/message.ts';
import type { Route, RouteBody } from './route.ts';

const json = ['application/json'] as const;
const jsonOrPage = ['application/json', 'text/html'] as const;

/** Media types of a patch: a merge patch (RFC 7396) by its own name, or as the JSON that it is. */
export const patchTypes = ['application/merge-patch+json', 'application/json'] as const;

/** What a body may be sent as. */
export function mediaTypesOf({ purpose }: RouteBody): readonly string[] {
  return purpose === 'patch' ? patchTypes : json;
}

/** What the caller wants most of what a route can show; `undefined` where it wants none of it. */
export function preferredType(route: Route, { fields }: Request): 'application/json' | 'text/html' | undefined {
  return negotiate(fields.get('accept'), route.signInAt === undefined ? json : jsonOrPage);
}
