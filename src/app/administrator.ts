import type { Users } from '../accounts/users.ts';
import { localAdministrator } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';

export interface Administrator {
  readonly email: string;
  /**
   * The password, or a function that creates it just before the user. Processes that share data and
   * start together each call theirs, and must get the same password.
   */
  readonly password: string | (() => string | Promise<string>);
}

const fields = { name: 'Administrator', role: 'admin' };

/** @throws CairnError `validation_failed`, which names the field */
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

export async function makeAdministrator(users: Users, administrator: Administrator): Promise<void> {
  if (users.records.size > 0) return;
  checkAdministrator(users, administrator);
  const { email, password: given } = administrator;
  const password = typeof given === 'string' ? given : await given();
  await users.addFirst({ ...fields, email, password });
}
