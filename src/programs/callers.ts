import { localAdministrator, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { OptionError } from '../config/options.ts';
import type { UserRecord } from '../accounts/records.ts';
import type { Collection } from '../store/store.ts';

/** A caller. `app.authenticate` resolves to it, and `as` takes it. */
export interface Caller {
  /** `local`: the program itself, and everybody on this machine with `auth: 'none'`. */
  readonly kind: 'anonymous' | 'local' | 'bearer' | 'session' | 'key';
  /** The id of the user. Absent for a caller without credentials. */
  readonly user?: number;
  readonly role?: string;
}

/** The caller that a call is made for. */
export interface As {
  /** A caller, or the id of a user. Absent: the program itself, which may do everything. */
  readonly as?: Caller | number;
}

const principals = new WeakMap<object, Principal>();
const callers = new WeakMap<Principal, Caller>();

/** Returns a principal as programs see it. */
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
 * Returns who a call is made for.
 * @throws OptionError if `as` is present and is neither a caller nor an id, so that nobody becomes
 *   the program by mistake; CairnError `actor_changed` for a user who is not there
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
