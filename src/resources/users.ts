import { everybody, roles, type Principal, type Role } from '../auth/access.ts';
import type { PasswordOwner } from '../auth/password-rules.ts';
import type { Passwords } from '../auth/passwords.ts';
import type { Throttle } from '../auth/throttle.ts';
import { CairnError, type Issue } from '../base/errors.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { accept, invalid, misfitOf } from '../schema/check.ts';
import { choice, defaulted, email, emailKey, id, optional, password, text } from '../schema/field.ts';
import { UniqueKeyError, type Store, type StoredRecord, type Transaction, type Unstored } from '../store/store.ts';
import type { Audit } from './audit.ts';
import { found, type Target } from './collection.ts';
import type { HookedWrite, Written } from './hooks.ts';
import type { Sessions } from './sessions.ts';

export interface UserRecord extends StoredRecord {
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** A PHC string; a user without one cannot sign in. */
  readonly passwordHash?: string;
}

/** What a user is and what may be sent to create one. */
export const userFields = {
  id: id(),
  name: text({ min: 1, max: 200, example: 'Ada Lovelace' }),
  email: email(),
  role: defaulted(choice(roles, { example: 'member' }), 'member'),
  password: optional(password()),
};

const subject = { name: 'users', fields: userFields };

/** What may be sent to change one: a person who sets a new password of their own proves the current one. */
export const userChangeFields = { ...userFields, currentPassword: optional(password()) };

export interface UsersParts {
  readonly store: Store;
  readonly write: HookedWrite;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  readonly audit: Audit;
}

/** What is done with users, and to their sessions with them. Who may ask for it is decided before. */
export function createUsers({ store, write, sessions, passwords, throttle, audit }: UsersParts) {
  const misfit = misfitOf(userFields);
  const records = store.collection<UserRecord>({
    name: subject.name,
    parse: (record) => misfit(record) ?? (isUser(record) ? record : undefined),
    unique: { email: (user) => emailKey(user.email) },
    groups: { administrators: (user) => (user.role === 'admin' ? 'admin' : undefined) },
  });

  /** What `body` says of a new user. @throws CairnError `validation_failed` */
  function acceptNew(principal: Principal, body: JsonValue) {
    return accept(userFields, body, { kind: 'create' }, lockedFor(principal), (sent) => passwordIssues(sent));
  }

  /**
   * Creates a user. Whoever is no administrator is slowed down by `address`, before the password is looked at.
   * @throws CairnError `validation_failed`, `actor_changed`, `email_taken`, `too_many_requests`, `overloaded`, and what
   *   `Store.write` throws
   */
  async function create(principal: Principal, body: JsonValue, address?: string): Promise<UserRecord> {
    if (principal.role !== 'admin') throttle.countNewEmail(address ?? '');
    const input = acceptNew(principal, body);
    const passwordHash = input.password === undefined ? undefined : await passwords.hash(input.password);
    const { after } = await writeAs(principal, (transaction) => ({
      after: transaction.insert(records, userOf(input, passwordHash)),
    }));
    audit('user_created', { userId: after.id, role: after.role, by: principal.userId, address });
    return after;
  }

  /**
   * Replaces (PUT) or patches (PATCH) a user. A new password or role ends all of the user's sessions with it; who
   * changes their own password from a session gets a new one, `renewed`.
   * @throws CairnError in the order that `Precondition` tells; also `last_admin`, `email_taken`, `overloaded`
   */
  async function change(target: Target, kind: 'replace' | 'patch', body: JsonValue) {
    const { principal, id: userId, precondition, address } = target;
    const seen = found(records.get(userId));
    precondition.demand();
    const own = principal.userId === userId;
    const proves = own && seen.passwordHash !== undefined;
    const asked = accept(userChangeFields, body, { kind, stored: seen }, lockedFor(principal), (sent) => {
      const isMissing = proves && sent['password'] !== undefined && sent['currentPassword'] === undefined;
      const missing = isMissing ? [issue('required', 'must be given to set a new password')] : [];
      return [...passwordIssues(sent, seen), ...missing];
    });
    const newEmail = emailKey(asked.email) !== emailKey(seen.email);
    if (newEmail && principal.role !== 'admin') throttle.countNewEmail(`signed in as ${userId}`);
    if (proves && asked.password !== undefined) await prove(seen, asked.currentPassword ?? '', address);
    const newHash = asked.password === undefined ? undefined : await passwords.hash(asked.password);
    const { before, after, renewed } = await writeAs(principal, (transaction) => {
      const before = found(transaction.get(records, userId));
      const input = accept(userChangeFields, body, { kind, stored: before }, lockedFor(principal));
      precondition.check(before.revision);
      if (input.role !== 'admin') keepAnAdministrator(transaction, before);
      // What was proven is the password of then.
      if (own && newHash !== undefined && before.passwordHash !== seen.passwordHash) throw wrongPassword();
      const after = transaction.replace(records, userId, userOf(input, newHash ?? before.passwordHash));
      return { before, after, renewed: endSessions(transaction, principal, before, after) };
    });
    const details = { userId, by: principal.userId, address };
    if (newHash !== undefined) audit('password_changed', details);
    if (emailKey(after.email) !== emailKey(before.email)) audit('email_changed', details);
    if (after.role !== before.role) audit('role_changed', { ...details, role: after.role });
    return { record: after, renewed };
  }

  /** @throws CairnError in the order that `Precondition` tells; also `last_admin` */
  async function remove({ principal, id: userId, precondition, address }: Target): Promise<void> {
    await writeAs(principal, (transaction) => {
      const before = found(transaction.get(records, userId));
      precondition.demand();
      precondition.check(before.revision);
      keepAnAdministrator(transaction, before);
      sessions.endAll(transaction, userId);
      transaction.remove(records, userId);
      return { before };
    });
    audit('user_removed', { userId, by: principal.userId, address });
  }

  /** One transaction on behalf of `principal`, who must still be there, with the role that they came with. */
  async function writeAs<W extends Written<UserRecord>>(principal: Principal, work: (transaction: Transaction) => W) {
    try {
      return await write(subject, principal, (transaction) => {
        checkActor(transaction, principal);
        return work(transaction);
      });
    } catch (cause) {
      if (!(cause instanceof UniqueKeyError)) throw cause;
      throw new CairnError('email_taken', 'Cannot keep the user: another one has this e-mail address', { cause });
    }
  }

  /**
   * A token outlives a demotion, and a request that is being read its session: so writes to users and sessions look
   * once more. @throws CairnError `actor_changed`
   */
  function checkActor(transaction: Transaction, principal: Principal): void {
    if (principal.kind === 'anonymous' || principal === everybody) return;
    const ended = principal.kind === 'session' && transaction.get(sessions.records, principal.sessionId) === undefined;
    if (!ended && transaction.get(records, principal.userId)?.role === principal.role) return;
    throw new CairnError('actor_changed', 'Cannot write: the caller was removed, signed out or has another role now');
  }

  /** What is wrong with the password in a body, for the user that the body makes, of `owner` if there is one. */
  function passwordIssues({ password, name, email }: JsonObject, owner?: PasswordOwner): readonly Issue[] {
    if (typeof password !== 'string') return [];
    const textOf = (given: JsonValue | undefined, known = ''): string => (typeof given === 'string' ? given : known);
    return passwords.check(password, { name: textOf(name, owner?.name), email: textOf(email, owner?.email) });
  }

  /** Guesses at an open session are counted apart from sign-ins. @throws `validation_failed`, `too_many_requests` */
  async function prove(user: UserRecord, current: string, address: string | undefined): Promise<void> {
    if (await knowsPassword(user, current, `user ${user.id}`, `signed in as ${user.id}`)) return;
    audit('login_failed', { userId: user.id, address });
    throw wrongPassword();
  }

  /**
   * Whether this is the user's password: one attempt on the account `key` from `address`. That there is no such user
   * costs the same time as a wrong password. @throws CairnError `too_many_requests`, `overloaded`
   */
  async function knowsPassword(user: UserRecord | undefined, password: string, key: string, address: string) {
    const settle = throttle.attempt(key, address);
    let outcome: Parameters<typeof settle>[0] = 'withdrawn';
    try {
      const matches = await passwords.verify(password, user?.passwordHash);
      outcome = matches ? 'succeeded' : 'failed';
      return matches;
    } finally {
      settle(outcome);
    }
  }

  /** Ends what a change of password or role ends. */
  function endSessions(transaction: Transaction, principal: Principal, before: UserRecord, after: UserRecord) {
    const newPassword = after.passwordHash !== before.passwordHash;
    if (!newPassword && after.role === before.role) return undefined;
    const current = principal.kind === 'session' && principal.userId === after.id ? principal.sessionId : 0;
    const own = transaction.get(sessions.records, current);
    sessions.endAll(transaction, after.id);
    return newPassword && own !== undefined ? sessions.start(transaction, 'cookie', after.id, own) : undefined;
  }

  /** @throws CairnError `last_admin` where no other administrator could do what `leaving` can: sign in */
  function keepAnAdministrator(transaction: Transaction, leaving: UserRecord): void {
    if (leaving.role !== 'admin') return;
    const others = transaction.members(records, 'administrators', 'admin').filter(({ id }) => id !== leaving.id);
    if (others.some(({ passwordHash }) => passwordHash !== undefined || leaving.passwordHash === undefined)) return;
    throw new CairnError('last_admin', 'Cannot do without the last administrator: make another one, with a password');
  }

  return { records, acceptNew, create, change, remove, checkActor, knowsPassword };
}

export type Users = ReturnType<typeof createUsers>;

const issue = (code: string, detail: string): Issue => ({ pointer: '/currentPassword', code, detail });
const wrongPassword = (): CairnError => invalid([issue('wrong_password', 'must be the current password')]);

function lockedFor(principal: Principal): readonly 'role'[] {
  return principal.role === 'admin' ? [] : ['role'];
}

function userOf({ name, email, role }: Unstored<UserRecord>, passwordHash: string | undefined): Unstored<UserRecord> {
  return { name, email, role, ...(passwordHash !== undefined && { passwordHash }) };
}

function isUser(record: JsonObject & StoredRecord): record is JsonObject & UserRecord {
  const hash = record['passwordHash'];
  return hash === undefined || typeof hash === 'string';
}
