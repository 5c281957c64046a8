import type { Users } from '../accounts/users.ts';
import { localAdministrator } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';

/** The first user. */
export interface Administrator {
  readonly email: string;
  /**
   * The password, or a function that makes one. It is called just before the user is made.
   * Processes that share their data and start together all call theirs, which have to return the same.
   */
  readonly password: string | (() => string | Promise<string>);
}

const fields = { name: 'Administrator', role: 'admin' };

/**
 * Checks the fields of an administrator.
 * @throws CairnError `validation_failed` that names the field
 */
export function checkAdministrator(users: Users, { email, password }: Administrator): void {
  const known = typeof password === 'function' ? { email } : { email, password: password ?? '' };
  try {
    users.acceptNew(localAdministrator, { ...fields, ...known });
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    const issues = error.issues?.map(({ pointer, detail }) => `${pointer.slice(1)} ${detail}`);
    throw new CairnError(error.code, `Cannot make the administrator: ${issues?.join(', ')}`);
  }
}

/** Makes the administrator, unless there is a user already. */
export async function makeAdministrator(users: Users, administrator: Administrator): Promise<void> {
  if (users.records.size > 0) return;
  checkAdministrator(users, administrator);
  const { email, password: given } = administrator;
  const password = typeof given === 'string' ? given : await given();
  await users.addFirst({ ...fields, email, password });
}
