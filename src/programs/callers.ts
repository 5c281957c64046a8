import { localAdministrator, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { OptionError } from '../config/options.ts';
import type { UserRecord } from '../accounts/records.ts';
import type { Collection } from '../store/store.ts';

/** A caller: the result of `app.authenticate`, and a value of `as`. */
export interface Caller {
  /** `local`: the program itself, and every caller with `auth: 'none'`. */
  readonly kind: 'anonymous' | 'local' | 'bearer' | 'session' | 'key';
  /** The user's id. Absent without credentials. */
  readonly user?: number;
  readonly role?: string;
}

export interface As {
  /**
   * The caller, or a user's id, to act for. If absent, the program acts itself and may do
   * everything.
   */
  readonly as?: Caller | number;
}

const principals = new WeakMap<object, Principal>();
const callers = new WeakMap<Principal, Caller>();

export function toCaller(principal: Principal): Caller {
  const known = callers.get(principal);
  if (known !== undefined) return known;
  const { kind, userId, role } = principal;
  const caller = Object.freeze(
    kind === 'anonymous' || kind === 'local'
      ? { kind, ...(role && { role }) }
      : { kind, user: userId, role },
  );
  principals.set(caller, principal);
  callers.set(principal, caller);
  return caller;
}

/**
 * Returns the principal that a call acts for.
 * @throws OptionError if `as` is present and is neither a caller nor an id, so that nobody
 *   becomes the program by mistake; CairnError `actor_changed` if the user is gone
 */
export function findPrincipal(options: As, users: Collection<UserRecord>): Principal {
  if (!('as' in options)) return localAdministrator;
  const given = options.as;
  if (typeof given === 'number') {
    const user = users.get(given);
    if (user !== undefined)
      return { kind: 'bearer', userId: given, role: user.role, issuedAt: Infinity };
    throw new CairnError('actor_changed', `Cannot act for the user ${given}: there is none`);
  }
  const principal = typeof given === 'object' && given !== null ? principals.get(given) : undefined;
  if (principal !== undefined) return principal;
  const advice = 'it takes what app.authenticate resolves to, or the id of a user';
  throw new OptionError(`Cannot use as: ${advice}; leave it out for the program itself`, 'as');
}
