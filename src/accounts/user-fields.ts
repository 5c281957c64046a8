import { roles } from '../auth/access.ts';
import { passwordIssues } from '../auth/password-rules.ts';
import type { Issue } from '../base/errors.ts';
import type { BodyRules, Sender } from '../schema/check.ts';
import { choice, defaulted, email, emailKey, id, optional, password, text } from '../schema/field.ts';
import { fieldValue } from '../schema/representation.ts';

/** What everyone who may see a user sees of them. */
export const userFields = {
  id: id(),
  name: text({ min: 1, max: 200, example: 'Ada Lovelace' }),
  email: email(),
  role: defaulted(choice(roles, { example: 'member' }), 'member'),
};

const newUserFields = { ...userFields, password: optional(password()) };
const userChangeFields = { ...newUserFields, currentPassword: optional(password()) };

/** What may be sent to create a user. */
export type NewUserFields = typeof newUserFields;

/** What may be sent to change one. */
export type UserChangeFields = typeof userChangeFields;

/** The rules of a body that creates a user, with a password of at least so many characters. */
export function newUserRules(passwordLengthMin: number): BodyRules<NewUserFields> {
  return {
    shape: { ...newUserFields, password: optional(password({ min: passwordLengthMin })) },
    furtherIssues(sent, stored, { role }) {
      const before = fieldValue(stored, 'role') ?? userFields.role.fallback;
      const isPromoted = role !== 'admin' && Object.hasOwn(sent, 'role') && sent['role'] !== before;
      const locked: Issue = { pointer: '/role', code: 'read_only', detail: 'must be left as it is' };
      return [...(isPromoted ? [locked] : []), ...issuesOfPassword({ ...stored, ...sent }, passwordLengthMin)];
    },
  };
}

/** The rules of a body that changes a user. */
export function userChangeRules(passwordLengthMin: number): BodyRules<UserChangeFields> {
  const { shape, furtherIssues = () => [] } = newUserRules(passwordLengthMin);
  return {
    shape: { ...userChangeFields, ...shape },
    furtherIssues(sent, stored, sender) {
      const isMissing = sent['currentPassword'] === undefined && needsProof(sender, stored, sent);
      const missing = proofIssue('required', 'must be given to change the password or the e-mail address');
      return [...furtherIssues(sent, stored, sender), ...(isMissing ? [missing] : [])];
    },
  };
}

/** Whether people change their own password or e-mail address by `sent`: that takes the current password. */
export function needsProof({ userId }: Sender, stored: object, sent: object): boolean {
  const keyOf = (user: object): string => emailKey(String(fieldValue(user, 'email') ?? ''));
  const isOwn = fieldValue(stored, 'id') === userId && fieldValue(stored, 'passwordHash') !== undefined;
  return isOwn && (fieldValue(sent, 'password') !== undefined || keyOf({ ...stored, ...sent }) !== keyOf(stored));
}

/** What is wrong with the current password that a change gives. */
export const proofIssue = (code: string, detail: string): Issue => ({ pointer: '/currentPassword', code, detail });

function issuesOfPassword(user: object, lengthMin: number): readonly Issue[] {
  const textOf = (name: string): string => String(fieldValue(user, name) ?? '');
  const isSet = typeof fieldValue(user, 'password') === 'string';
  return isSet ? passwordIssues(textOf('password'), { name: textOf('name'), email: textOf('email') }, lengthMin) : [];
}
