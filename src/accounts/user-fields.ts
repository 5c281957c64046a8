import { roles, type Role } from '../auth/access.ts';
import { passwordIssues } from '../auth/password-rules.ts';
import type { Issue } from '../base/errors.ts';
import type { Sender } from '../schema/setters.ts';
import type { BodyRules } from '../schema/validate.ts';
import { emailKey, idField, type PasswordField, type Shape } from '../schema/field.ts';
import { fieldValue, scalarValue } from '../schema/record.ts';

export const userFields = {
  id: idField,
  name: { kind: 'text', min: 1, max: 200, example: 'Ada Lovelace' },
  email: { kind: 'email' },
  role: { kind: 'choice', values: roles, default: 'member', example: 'member' },
} as const satisfies Shape;

export function withRoles<S extends typeof userFields>(fields: S, more: readonly Role[]): S {
  return { ...fields, role: { ...fields.role, values: [...roles, ...more] } };
}

const password: PasswordField & { readonly optional: true } = {
  kind: 'password',
  writeOnly: true,
  optional: true,
};
const newUserFields = { ...userFields, password };
const userChangeFields = {
  ...newUserFields,
  currentPassword: password,
  keepKeys: {
    kind: 'boolean',
    writeOnly: true,
    optional: true,
    description: 'True if your API keys should stay valid after you change your password.',
  },
} as const satisfies Shape;

export type NewUserFields = typeof newUserFields;

export type UserChangeFields = typeof userChangeFields;

/**
 * The rules of a body that creates a user, with `more` roles. `passwordLengthMin` is in characters.
 */
export function newUserRules(
  passwordLengthMin: number,
  more: readonly Role[],
): BodyRules<NewUserFields> {
  return {
    shape: { ...withRoles(newUserFields, more), password: { ...password, min: passwordLengthMin } },
    furtherIssues(sent, stored, { role: ownRole }) {
      const email = String(scalarValue({ ...stored, ...sent }, 'email') ?? '');
      const { role, password } = sent;
      const before = fieldValue(stored, 'role') ?? userFields.role.default;
      const isPromoted = ownRole !== 'admin' && role !== undefined && role !== before;
      const locked = {
        pointer: '/role',
        code: 'read_only',
        detail: 'must not be changed',
      };
      return [
        ...(isPromoted ? [locked] : []),
        ...(typeof password === 'string' ? passwordIssues(password, email, passwordLengthMin) : []),
      ];
    },
  };
}

export function userChangeRules(
  passwordLengthMin: number,
  more: readonly Role[],
): BodyRules<UserChangeFields> {
  const { shape, furtherIssues = () => [] } = newUserRules(passwordLengthMin, more);
  return {
    shape: { ...userChangeFields, ...shape },
    furtherIssues(sent, stored, sender) {
      const isMissing = sent['currentPassword'] === undefined && needsProof(sender, stored, sent);
      const missing = proofIssue(
        'required',
        'must be given to change the password or the e-mail address',
      );
      return [...furtherIssues(sent, stored, sender), ...(isMissing ? [missing] : [])];
    },
  };
}

/**
 * True if users change their own password or e-mail address, which requires the current password.
 */
export function needsProof({ userId }: Sender, stored: object, sent: object): boolean {
  const readEmailKey = (user: object): string => emailKey(String(scalarValue(user, 'email') ?? ''));
  const isOwn =
    fieldValue(stored, 'id') === userId && fieldValue(stored, 'passwordHash') !== undefined;
  return (
    isOwn &&
    (fieldValue(sent, 'password') !== undefined ||
      readEmailKey({ ...stored, ...sent }) !== readEmailKey(stored))
  );
}

export const proofIssue = (code: string, detail: string): Issue => ({
  pointer: '/currentPassword',
  code,
  detail,
});
