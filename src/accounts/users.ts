import { localAdministrator, type Principal } from '../auth/access.ts';
import type { Turn } from '../auth/passwords.ts';
import { CairnError } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import { found, type Target } from '../collections/resource.ts';
import type { RecordWriter } from '../collections/hooks.ts';
import type { Created, CreationRequest } from '../collections/idempotency.ts';
import { acceptNew, draft, validationFailed, type Draft } from '../schema/validate.ts';
import { emailKey, type Input } from '../schema/field.ts';
import { looksSame } from '../schema/record.ts';
import {
  UniqueKeyError,
  type Collection,
  type StoredRecord,
  type Transaction,
  type Unstored,
} from '../store/store.ts';
import { checkActor, checkActorFirst } from './actor.ts';
import type { Audit } from './events.ts';
import { turnOf, type AccountParts } from './parts.ts';
import type { UserRecord } from './records.ts';
import type { Sessions, StartedSession } from './sessions.ts';
import { matchesPassword } from './sign-in.ts';
import {
  needsProof,
  newUserRules,
  proofIssue,
  userChangeRules,
  userFields,
  type NewUserFields,
  type UserChangeFields,
} from './user-fields.ts';

/** A validated user to create. `acceptNew` makes it from a body. */
export type NewUser = Input<NewUserFields>;

/** A change of a user. `draft` makes it from a body. */
export type UserDraft = Draft<Input<UserChangeFields>>;

/** The result of a change of a user. */
export interface ChangedUser {
  readonly record: UserRecord;
  /** Replaces the session from which the caller changed the own password, which has ended. */
  readonly renewed: StartedSession | undefined;
}

/** The users, and changes of them and their sessions. Callers are authorized before. */
export class Users {
  readonly fields = userFields;
  readonly records: Collection<UserRecord>;
  readonly #parts: AccountParts;
  readonly #sessions: Sessions;

  constructor(parts: AccountParts, sessions: Sessions) {
    this.records = parts.users;
    this.#parts = parts;
    this.#sessions = sessions;
  }

  /** Validates a body that creates a user. @throws CairnError `validation_failed` */
  acceptNew(principal: Principal, body: JsonValue): NewUser {
    return acceptNew(newUserRules(this.#parts.passwordLengthMin), body, principal);
  }

  /** Returns the change that `body`, a merge patch, describes. */
  draft(principal: Principal, body: JsonValue): UserDraft {
    return draft('patch', userChangeRules(this.#parts.passwordLengthMin), body, principal);
  }

  /**
   * Adds a user on behalf of the installation, for commands, tests and embedders.
   * @throws CairnError `validation_failed`, and the errors of `create`
   */
  async add(body: JsonValue): Promise<UserRecord> {
    return (await this.create(localAdministrator, this.acceptNew(localAdministrator, body)))
      .created;
  }

  /**
   * Adds a user as `add` does, unless there is one already. Only one of several nodes that start
   * together adds the user.
   */
  async addFirst(body: JsonValue): Promise<void> {
    const by = localAdministrator;
    const user = await this.#withHash(this.acceptNew(by, body), turnOf(by.userId));
    const added = await this.#writeAs(by, (_, writer) =>
      this.records.size > 0 ? undefined : writer.insert(this, user),
    );
    if (added !== undefined) this.#auditCreated(added, { by: by.userId });
  }

  /**
   * Creates a user. Throttles callers that are not administrators by `address`.
   * @throws CairnError `actor_changed`, `email_taken`, `key_reused`, `too_many_requests`,
   *   `overloaded`, and the errors of `Store.write`
   */
  async create(
    principal: Principal,
    input: NewUser,
    { address = '', keyed }: CreationRequest = {},
  ): Promise<Created<UserRecord>> {
    const { throttle, idempotencyKeys } = this.#parts;
    await checkActorFirst(principal, this.#parts);
    if (principal.role !== 'admin') throttle.countNewEmail(principal.userId, address);
    // A repeated request gets the same hash from the same password alone.
    const saltSource = keyed && JSON.stringify([keyed.caller, keyed.key, input.email]);
    const user = await this.#withHash(input, turnOf(principal.userId, address), saltSource);
    const { passwordHash = '', ...shown } = user;
    const request = keyed && { ...keyed, content: keyed.content + passwordHash };
    const recall = (first: StoredRecord): UserRecord => ({ ...first, ...shown });
    const result = await this.#writeAs(principal, (transaction, writer) =>
      idempotencyKeys.once(transaction, request, () => writer.insert(this, user), recall),
    );
    if (!result.isReplay) this.#auditCreated(result.created, { by: principal.userId, address });
    return result;
  }

  /**
   * Replaces or patches a user. A change that changes no field is not written. A new password
   * or role ends all sessions of the user.
   * @throws CairnError in the order that `Precondition` documents; also `last_admin`,
   *   `email_taken`, `too_many_requests`, `overloaded`
   */
  async change(target: Target, draft: UserDraft): Promise<ChangedUser> {
    const { principal, id: userId, precondition, address } = target;
    const { store, throttle, passwords, clock } = this.#parts;
    const known = await store.write((transaction) => {
      const user = found(transaction.of(this.records).get(userId));
      checkActor(transaction, principal, this.#parts);
      return user;
    });
    precondition.demand();
    const proposal = draft.against(known);
    const isNewEmail = emailKey(proposal.email) !== emailKey(known.email);
    if (isNewEmail && principal.role !== 'admin') throttle.countNewEmail(userId, '');
    const provenHash = needsProof(principal, known, proposal)
      ? await this.#prove(known, proposal.currentPassword, address)
      : undefined;
    const { password } = proposal;
    const newHash = password && (await passwords.hash(password, turnOf(principal.userId)));
    const { before, after, renewed } = await this.#writeAs(principal, (transaction, writer) => {
      const before = found(transaction.of(this.records).get(userId));
      const values = before === known ? proposal : draft.against(before);
      precondition.check(before.revision);
      if (values.role !== 'admin') this.#keepAnAdministrator(transaction, before);
      // Another request may have changed the password since it was proven.
      const isProven = before.passwordHash === provenHash;
      if (!isProven && needsProof(principal, before, values)) throw wrongPassword();
      const { name, email, role } = values;
      const secrets = newHash && { passwordHash: newHash, signedOutAt: clock.now() };
      const isSame = newHash === undefined && looksSame(userFields, before, values);
      const after = isSame
        ? before
        : writer.replace(this, before, { ...before, name, email, role, ...secrets });
      return { before, after, renewed: this.#endSessions(transaction, principal, before, after) };
    });
    this.#auditChange(before, after, { userId, by: principal.userId, address });
    return { record: after, renewed };
  }

  /** @throws CairnError in the order that `Precondition` documents; also `last_admin` */
  async remove({ principal, id: userId, precondition, address }: Target): Promise<void> {
    await this.#writeAs(principal, (transaction, writer) => {
      const before = found(transaction.of(this.records).get(userId));
      precondition.demand();
      precondition.check(before.revision);
      this.#keepAnAdministrator(transaction, before);
      this.#sessions.endAll(transaction, userId);
      writer.remove(this, before);
    });
    this.#parts.audit('user_removed', { userId, by: principal.userId, address });
  }

  /** Returns a new user as it is stored. The same `saltSource` gives the same hash. */
  async #withHash(
    { password, ...shown }: NewUser,
    turn: Turn,
    saltSource?: string,
  ): Promise<Unstored<UserRecord>> {
    const passwordHash = password && (await this.#parts.passwords.hash(password, turn, saltSource));
    return { ...shown, passwordHash };
  }

  /**
   * Runs a transaction on behalf of `principal`.
   * @throws CairnError `actor_changed`, `email_taken`
   */
  async #writeAs<T>(
    principal: Principal,
    work: (transaction: Transaction, writer: RecordWriter) => T,
  ): Promise<T> {
    try {
      return await this.#parts.writes.write(principal, (transaction, writer) => {
        checkActor(transaction, principal, this.#parts);
        return work(transaction, writer);
      });
    } catch (cause) {
      if (!(cause instanceof UniqueKeyError)) throw cause;
      throw new CairnError(
        'email_taken',
        'Cannot store the user: another user has this e-mail address',
        { cause },
      );
    }
  }

  /**
   * Checks the current password, and returns its hash. Failures are counted separately from
   * sign-ins.
   * @throws CairnError `validation_failed`, `too_many_requests`
   */
  async #prove(
    user: UserRecord,
    password = '',
    address: string | undefined,
  ): Promise<string | undefined> {
    const { throttle, passwords, audit } = this.#parts;
    const attempt = throttle.proof(user.id);
    if (await matchesPassword(passwords, attempt, password, user)) return user.passwordHash;
    audit('login_failed', { userId: user.id, address });
    throw wrongPassword();
  }

  /** Ends the user's sessions after a new password or role. */
  #endSessions(
    transaction: Transaction,
    principal: Principal,
    before: UserRecord,
    after: UserRecord,
  ): StartedSession | undefined {
    const isNewPassword = after.passwordHash !== before.passwordHash;
    if (!isNewPassword && after.role === before.role) return undefined;
    const currentId =
      principal.kind === 'session' && principal.userId === after.id ? principal.sessionId : 0;
    const current = transaction.of(this.#parts.sessions).get(currentId);
    this.#sessions.endAll(transaction, after.id);
    if (!isNewPassword || current === undefined) return undefined;
    return this.#sessions.start(transaction, 'cookie', after.id, current);
  }

  /** @throws CairnError `last_admin` if `leaving` is the only administrator who can sign in */
  #keepAnAdministrator(transaction: Transaction, leaving: UserRecord): void {
    if (leaving.role !== 'admin') return;
    const administrators = [...transaction.of(this.records).referring('administrators', 'admin')];
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

  #auditCreated({ id: userId, role }: UserRecord, details: AuditDetails): void {
    this.#parts.audit('user_created', { userId, role, ...details });
  }

  #auditChange(before: UserRecord, after: UserRecord, details: AuditDetails): void {
    const { audit } = this.#parts;
    if (after.passwordHash !== before.passwordHash) audit('password_changed', details);
    if (emailKey(after.email) !== emailKey(before.email)) audit('email_changed', details);
    if (after.role !== before.role) audit('role_changed', { ...details, role: after.role });
  }
}

type AuditDetails = Parameters<Audit>[1];

const wrongPassword = (): CairnError =>
  validationFailed([proofIssue('wrong_password', 'must be the current password')]);
