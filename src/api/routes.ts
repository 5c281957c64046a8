import type { Role } from '../auth/access.ts';
import { limits } from '../base/limits.ts';
import type { Declared } from '../collections/declared.ts';
import type { EntryDraft, NewEntry } from '../collections/resource.ts';
import { newUserRules, userChangeRules, userFields, withRoles } from '../accounts/user-fields.ts';
import type { NewUser, UserDraft } from '../accounts/users.ts';
import { bodiesFor } from './body.ts';
import type { RoutedCollection } from './call.ts';

/**
 * The route table: every request that is served, and its callers. `features/openapi` describes it.
 */

/** A collection or a program's route may have this path instead. */
export const metricsPath = '/metrics';

/**
 * The server's own paths that a collection may have instead, without users and with a dialect.
 * `/status` then moves to `/-/status`.
 */
export const yieldedPaths: readonly string[] = ['/status', '/changes', metricsPath];

export interface RouteOptions {
  readonly registration?: 'open' | 'closed' | undefined;
  readonly requireIfMatch?: boolean | undefined;
  /** The other server whose clients may call. */
  readonly dialect?: string | undefined;
  readonly passwordLengthMin?: number | undefined;
  readonly roles?: readonly Role[] | undefined;
  /** False for no users and no sign-in. */
  readonly users?: boolean | undefined;
}

/** Returns the collection of users. With open registration, anyone can create one. */
export function usersCollection({
  registration,
  passwordLengthMin = 1,
  roles = [],
}: RouteOptions): RoutedCollection<NewUser, UserDraft> {
  return {
    name: 'users',
    noun: 'Users',
    singular: 'user',
    isUsers: true,
    fields: withRoles(userFields, roles),
    ids: undefined,
    hasOwners: false,
    shapeTag: '',
    references: undefined,
    embeddables: [],
    bodies: bodiesFor(
      newUserRules(passwordLengthMin, roles),
      userChangeRules(passwordLengthMin, roles),
    ),
    // prettier-ignore
    access: {
      list: 'admin', create: registration === 'open' ? 'optional' : 'admin',
      read: 'self', replace: 'self', patch: 'self', remove: 'self',
    },
  };
}

export function declaredCollection(declared: Declared): RoutedCollection<NewEntry, EntryDraft> {
  const { fields, isBuiltIn } = declared;
  const rules = { shape: fields, keepUnsettable: declared.rules?.keepUnsettable };
  const { create, replace, patch } = bodiesFor(rules, rules);
  const size = isBuiltIn ? {} : { bytesMax: limits.recordBytesMax };
  return {
    ...declared,
    bodies: {
      create: { ...create, ...size },
      replace: { ...replace, ...size },
      patch: { ...patch, ...size },
    },
  };
}
