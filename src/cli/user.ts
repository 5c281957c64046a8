import { everybody, roles } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { options } from '../config.ts';
import { openData } from '../data.ts';
import { choice, flagOnly, option, optional, text, UsageError } from '../options.ts';
import { unconditional } from '../resources/collection.ts';
import type { UserRecord, Users } from '../resources/users.ts';
import { emailKey } from '../schema/field.ts';
import { dataDirectory, type Call, type Command } from './command.ts';
import { passwordFile, readPassword } from './password.ts';

const name = flagOnly(optional('name', "the person's name; without it, what stands before the @", text('NAME')));
const role = flagOnly(option('role', 'what the user may do', choice(roles), 'member'));

/** The options of a command that works on a data directory while no server does. */
const offlineOptions = [options.directory, options.passwordLengthMin, options.scryptCost] as const;

/** Users without a server: for the first ones, and for those whose password is lost. */
export const userCommands: readonly Command[] = [
  {
    name: 'user add',
    summary: 'Adds a user, with a password from the terminal, from standard input or from a file',
    operands: ['EMAIL'],
    options: [...offlineOptions, name, role, passwordFile],
    async run(call) {
      const [email = ''] = call.operands;
      const fields = { name: call.read(name) ?? email.replace(/@.*/s, ''), email, role: call.read(role) };
      await offline(call, async (users) =>
        line(await users.create(everybody, { ...fields, password: await readPassword(call) })));
    },
  },
  {
    name: 'user list',
    summary: 'Lists the users: id, role, e-mail address, name',
    options: [options.directory],
    run: (call) => offline(call, (users) => [...users.records.view().blocks()].flat().map(line).join('')),
  },
  {
    name: 'user set-password',
    summary: "Sets a user's password and ends their sessions",
    operands: ['EMAIL'],
    options: [...offlineOptions, passwordFile],
    run: (call) =>
      change(call, async () => ({ password: await readPassword(call) }), ({ email }) =>
        `${email} has a new password, and has to sign in again`),
  },
  {
    name: 'user set-role',
    summary: `Sets a user's role, one of ${roles.join(', ')}, and ends their sessions`,
    operands: ['EMAIL', 'ROLE'],
    options: [options.directory],
    run: (call) =>
      change(call, () => ({ role: call.operands[1] ?? '' }), ({ email, role: has }) =>
        `${email} has the role ${has} now`),
  },
];

/** Changes the user whose address is the first operand. @throws UsageError where nobody has it, CairnError */
async function change(
  call: Call, read: () => JsonObject | Promise<JsonObject>, told: (user: UserRecord) => string,
): Promise<void> {
  const [email = ''] = call.operands;
  await offline(call, async (users) => {
    const user = users.records.find('email', emailKey(email));
    if (user === undefined) {
      throw new UsageError(`Cannot find the user: nobody has the address ${JSON.stringify(email)}`);
    }
    const { record } = await users.change(everybody, user.id, await read(), 'patch', unconditional);
    return `${told(record)}\n`;
  });
}

function line({ id, role: has, email, name: called }: UserRecord): string {
  return `${id}\t${has}\t${email}\t${called}\n`;
}

/**
 * Opens the data directory, lets `work` use it without serving anybody, tells what came of it, and closes it again.
 * @throws LockedError while a server has the directory, UsageError where there is none
 */
async function offline(call: Call, work: (users: Users) => Promise<string> | string): Promise<void> {
  const [passwordLengthMin, scryptCost] = [call.read(options.passwordLengthMin), call.read(options.scryptCost)];
  const { store, users } = openData({ directory: await dataDirectory(call), passwordLengthMin, scryptCost });
  await store.start();
  try {
    call.terminal.out(await work(users));
  } finally {
    await store.close();
  }
}
