import { localAdministrator, type Principal } from '../auth/access.ts';
import type { Attempt } from '../auth/throttle.ts';
import { nextSignOut } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import { callerKey } from '../base/network.ts';
import { numberIn } from '../base/record-id.ts';
import { found, type Target } from '../collections/resource.ts';
import { creation, validateBody, validationFailed, type Draft } from '../schema/validate.ts';
import { emailKey, type CompleteInput } from '../schema/field.ts';
import { looksSame } from '../schema/record.ts';
import { published, type Collection, type Transaction } from '../store/store.ts';
import type { Audit } from './events.ts';
import { endInvitations } from './invitations.ts';
import type { AccountContext } from './context.ts';
import { checkPrincipal } from './principal.ts';
import type { UserRecord } from './records.ts';
import type { Sessions, StartedSession } from './sessions.ts';
import { matchesPassword } from './sign-in.ts';
import {
  needsProof,
  newUserRules,
  proofIssue,
  userFields,
  type NewUserFields,
  type UserChangeFields,
} from './user-fields.ts';

export type NewUser = CompleteInput<NewUserFields>;

/** A change of a user, validated against the stored one. */
export type UserDraft = Draft<CompleteInput<UserChangeFields>>;

export interface Prepared {
  readonly passwordHash?: string | undefined;
  readonly provenHash?: string | undefined;
  /** The user after the change, valid while the stored one has this revision. */
  readonly proposal?: {
    readonly revision: number;
    readonly values: CompleteInput<UserChangeFields>;
  };
  readonly address?: string;
}

interface ChangedUser {
  readonly record: UserRecord;
  /** Replaces the session in which users changed their own password. */
  readonly renewed: StartedSession | undefined;
}

/** Users, and changes of them and their sessions. The caller must be authorized first. */
export class Users {
  readonly records: Collection<UserRecord>;
  readonly #context: AccountContext;
  readonly #sessions: Sessions;

  constructor(context: AccountContext, sessions: Sessions) {
    this.records = context.records.users;
    this.#context = context;
    this.#sessions = sessions;
  }

  /** @throws CairnError `validation_failed` */
  acceptNew(principal: Principal, body: JsonValue): NewUser {
    const rules = newUserRules(this.#context.passwordLengthMin, this.#context.roles);
    return validateBody(rules, body, creation, principal);
  }

  /**
   * Adds the first user. Of several processes that start together, only one adds it.
   * @throws CairnError `validation_failed`, and the errors of `create` and `Store.write`
   */
  async addFirst(body: JsonValue): Promise<void> {
    const input = this.acceptNew(localAdministrator, body);
    const prepared = await this.prepareCreate(localAdministrator, input);
    await this.#context.writes.write(localAdministrator, (tx) => {
      // An earlier transaction of the batch may have added a user, with the next id.
      const added = tx.of(this.records).get(this.records.nextId);
      if (this.records.size === 0 && added === undefined)
        this.create(tx, localAdministrator, input, prepared);
    });
  }

  /**
   * Hashes a new user's password, unless the caller will be refused. Throttles other callers than
   * administrators by `address`.
   * @throws CairnError `actor_changed`, `too_many_requests`, `overloaded`
   */
  async prepareCreate(
    principal: Principal,
    { password }: NewUser,
    address = '',
  ): Promise<Prepared> {
    const { store, throttle } = this.#context;
    await store.confirm();
    checkPrincipal(published, principal, this.#context);
    if (principal.role !== 'admin') throttle.countNewEmail(principal.userId, address);
    return { address, passwordHash: await this.#hash(password, principal, address) };
  }

  /** @throws CairnError `actor_changed`, `email_taken` */
  create(
    tx: Transaction,
    principal: Principal,
    { password, ...shown }: NewUser,
    { passwordHash, address }: Prepared = {},
  ): UserRecord {
    checkPrincipal(tx, principal, this.#context);
    invariant(password === undefined || passwordHash !== undefined, 'a password is hashed before');
    this.#checkEmail(tx, shown.email);
    const user = tx.of(this.records).insert({ ...shown, passwordHash });
    const { id: userId, role } = user;
    tx.onCommit(() =>
      this.#context.audit('user_created', { userId, role, by: principal.userId, address }),
    );
    return user;
  }

  /**
   * Checks the current password and hashes the new one, if a change needs that.
   * @throws CairnError as `change`; also `too_many_requests`, `overloaded`
   */
  async prepareChange(target: Target, draft: UserDraft): Promise<Prepared> {
    const { principal, precondition, address } = target;
    const userId = numberIn(target.id);
    const { store, throttle } = this.#context;
    await store.confirm();
    const known = found(this.records.get(userId));
    checkPrincipal(published, principal, this.#context);
    precondition(known.revision);
    const values = draft.against(known);
    const isNewEmail = emailKey(values.email) !== emailKey(known.email);
    if (isNewEmail && principal.role !== 'admin') throttle.countNewEmail(userId, '');
    const provenHash = needsProof(principal, known, values)
      ? await this.prove(known, values.currentPassword, address)
      : undefined;
    const passwordHash = await this.#hash(values.password, principal);
    return { provenHash, passwordHash, proposal: { revision: known.revision, values } };
  }

  /**
   * Replaces or patches a user. A change without effect is not written. A new password or role ends
   * all the user's sessions.
   * @throws CairnError `actor_changed`; then in the order that `Precondition` documents; also
   *   `last_admin`, `email_taken`
   */
  change(
    tx: Transaction,
    { principal, id, precondition, address }: Target,
    draft: UserDraft,
    { passwordHash, provenHash, proposal }: Prepared = {},
  ): ChangedUser {
    checkPrincipal(tx, principal, this.#context);
    const userId = numberIn(id);
    const before = found(tx.of(this.records).get(userId));
    precondition(before.revision);
    const isCurrent = proposal?.revision === before.revision;
    const values = isCurrent ? proposal.values : draft.against(before);
    if (values.role !== 'admin') this.#keepAnAdministrator(tx, before);
    // Another request may have changed the password since it was checked.
    const isProven = before.passwordHash === provenHash;
    if (!isProven && needsProof(principal, before, values)) throw wrongPassword();
    const { name, email, role, password, keepKeys } = values;
    invariant(password === undefined || passwordHash !== undefined, 'a password is hashed before');
    if (passwordHash === undefined && looksSame(userFields, before, values))
      return { record: before, renewed: undefined };
    this.#checkEmail(tx, email, userId);
    const signedOutAt = nextSignOut(this.#context.clock.now(), before.signedOutAt);
    const endsSessions = passwordHash !== undefined || role !== before.role;
    const after = tx.of(this.records).replace(userId, {
      ...before,
      ...{ name, email, role },
      ...(passwordHash && { passwordHash }),
      ...(endsSessions && { signedOutAt }),
    });
    const details = { userId, by: principal.userId, address };
    const isReset = passwordHash !== undefined && !(keepKeys && principal.userId === userId);
    if (isReset) this.#endKeys(tx, details);
    if (emailKey(email) !== emailKey(before.email))
      endInvitations(tx, this.#context.records.sessions, userId);
    tx.onCommit(() => this.#auditChange(before, after, details));
    return { record: after, renewed: this.#endSessions(tx, principal, before, after) };
  }

  /**
   * Removes a user, and treats the referring records, at most `most`, as declared.
   * @throws CairnError as `change`; also `still_referenced`
   */
  remove(tx: Transaction, { principal, id, precondition, address }: Target, most?: number): void {
    checkPrincipal(tx, principal, this.#context);
    const userId = numberIn(id);
    const before = found(tx.of(this.records).get(userId));
    precondition(before.revision);
    this.#keepAnAdministrator(tx, before);
    const details = { userId, by: principal.userId, address };
    this.#sessions.endAll(tx, userId);
    this.#endKeys(tx, details);
    const { references, usersAsTarget, clock } = this.#context;
    if (references === undefined) tx.of(this.records).remove(userId);
    else references.remove(tx, principal, usersAsTarget, before, clock.now(), most);
    tx.onCommit(() => this.#context.audit('user_removed', details));
  }

  #endKeys(tx: Transaction, details: AuditDetails & { readonly userId: number }): void {
    const { audit } = this.#context;
    const { apiKeys } = this.#context.records;
    for (const { id: keyId } of [...tx.of(apiKeys).referring('user', details.userId)]) {
      tx.of(apiKeys).remove(keyId);
      tx.onCommit(() => audit('key_removed', { ...details, keyId }));
    }
  }

  async #hash(
    password: string | undefined,
    { userId }: Principal,
    address = '',
  ): Promise<string | undefined> {
    return password && this.#context.passwords.hash(password, callerKey(address, userId));
  }

  /** @throws CairnError `email_taken` if a user other than `userId` has the address */
  #checkEmail(tx: Transaction, email: string, userId?: number): void {
    const holder = tx.of(this.records).find('email', emailKey(email));
    if (holder === undefined || holder.id === userId) return;
    const message = 'Cannot store the user: another user has this e-mail address';
    throw new CairnError('email_taken', message);
  }

  /**
   * Checks the current password of a user who has one, and returns its hash. Failures count
   * separately from sign-ins.
   * @throws CairnError `validation_failed`, `too_many_requests`
   */
  async prove(
    user: UserRecord,
    password: string | undefined,
    address: string | undefined,
  ): Promise<string | undefined> {
    if (user.passwordHash === undefined) return undefined;
    if (password === undefined) throw validationFailed([proofIssue('required', 'must be given')]);
    const { throttle, passwords, audit } = this.#context;
    const details = { userId: user.id, address };
    let attempt: Attempt;
    try {
      attempt = throttle.proof(user.id);
    } catch (error) {
      audit('login_throttled', details);
      throw error;
    }
    if (await matchesPassword(passwords, attempt, password, user)) return user.passwordHash;
    audit('login_failed', details);
    throw wrongPassword();
  }

  #endSessions(
    tx: Transaction,
    principal: Principal,
    before: UserRecord,
    after: UserRecord,
  ): StartedSession | undefined {
    const isNewPassword = after.passwordHash !== before.passwordHash;
    if (!isNewPassword && after.role === before.role) return undefined;
    const currentId =
      principal.kind === 'session' && principal.userId === after.id ? principal.sessionId : 0;
    const current = tx.of(this.#context.records.sessions).get(currentId);
    this.#sessions.endAll(tx, after.id);
    if (!isNewPassword || current === undefined) return undefined;
    return this.#sessions.start(tx, 'cookie', after.id, current);
  }

  /** @throws CairnError `last_admin` if `leaving` is the only administrator who can sign in */
  #keepAnAdministrator(tx: Transaction, leaving: UserRecord): void {
    if (leaving.role !== 'admin') return;
    const administrators = [...tx.of(this.records).referring('administrators', 'admin')];
    const canLeave = administrators.some(
      ({ id, passwordHash }) =>
        id !== leaving.id && (passwordHash !== undefined || leaving.passwordHash === undefined),
    );
    if (canLeave) return;
    throw new CairnError(
      'last_admin',
      'Cannot remove the last administrator: add another administrator with a password first',
    );
  }

  #auditChange(before: UserRecord, after: UserRecord, details: AuditDetails): void {
    const { audit } = this.#context;
    if (after.passwordHash !== before.passwordHash) audit('password_changed', details);
    if (emailKey(after.email) !== emailKey(before.email)) audit('email_changed', details);
    if (after.role !== before.role) audit('role_changed', { ...details, role: after.role });
  }
}

type AuditDetails = Parameters<Audit>[1];

export const wrongPassword = (): CairnError =>
  validationFailed([proofIssue('wrong_password', 'is wrong')]);
