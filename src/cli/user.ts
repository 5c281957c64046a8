import { createApp, type App } from '../app.ts';
import { everybody, roles } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { options } from '../config.ts';
import { choice, option, optional, text, UsageError } from '../options.ts';
import { unconditional } from '../resources/collection.ts';
import type { UserRecord } from '../resources/users.ts';
import { emailKey } from '../schema/field.ts';
import { dataDirectory, type Call, type Command } from './command.ts';
import { passwordFile, readPassword } from './password.ts';

const name = {
  ...optional('name', "the person's name; without it, what stands before the @", text('NAME')),
  flagOnly: true,
};
const role = { ...option('role', 'what the user may do', choice(roles), 'member'), flagOnly: true };

/** The options of a command that works on a data directory while no server does. */
const offlineOptions = [options.data, options.passwordLengthMin, options.scryptCost] as const;

/** Users without a server: for the first ones, and for those whose password is lost. */
export const userCommands: readonly Command[] = [
  {
    name: 'user add',
    summary: 'Adds a user, with a password from the terminal, from standard input or from a file',
    operands: ['EMAIL'],
    options: [...offlineOptions, name, role, passwordFile],
    async run(call) {
      const [email = ''] = call.operands;
      const [beforeAt = ''] = email.split('@');
      const fields = { name: call.read(name) ?? beforeAt, email, role: call.read(role) };
      const password = await readPassword(call);
      const user = await offline(call, (app) => app.users.create(everybody, { ...fields, password }));
      call.terminal.out(line(user));
    },
  },
  {
    name: 'user list',
    summary: 'Lists the users: id, role, e-mail address, name',
    options: [options.data],
    async run(call) {
      await offline(call, (app) => {
        const view = app.users.records.view();
        for (const block of view.blocks()) call.terminal.out(block.map(line).join(''));
        view.close();
      });
    },
  },
  {
    name: 'user set-password',
    summary: "Sets a user's password and ends their sessions",
    operands: ['EMAIL'],
    options: [...offlineOptions, passwordFile],
    async run(call) {
      const password = await readPassword(call);
      const { email } = await offline(call, (app) => change(app, call.operands[0], { password }));
      call.terminal.out(`${email} has a new password, and has to sign in again\n`);
    },
  },
  {
    name: 'user set-role',
    summary: `Sets a user's role, one of ${roles.join(', ')}, and ends their sessions`,
    operands: ['EMAIL', 'ROLE'],
    options: [options.data],
    async run(call) {
      const [given, newRole = ''] = call.operands;
      const { email, role: has } = await offline(call, (app) => change(app, given, { role: newRole }));
      call.terminal.out(`${email} has the role ${has} now\n`);
    },
  },
];

/** @throws UsageError where nobody has this address, CairnError as `Users.change` */
async function change(app: App, email = '', fields: JsonObject): Promise<UserRecord> {
  const user = app.users.records.find('email', emailKey(email));
  if (user === undefined) throw new UsageError(`Cannot find the user: nobody has the address ${JSON.stringify(email)}`);
  return (await app.users.change(everybody, user.id, fields, 'patch', unconditional)).record;
}

function line({ id, role: has, email, name: called }: UserRecord): string {
  return `${id}\t${has}\t${email}\t${called}\n`;
}

/**
 * Opens the data directory, lets `work` use it without serving anybody, and closes it again.
 * @throws LockedError while a server has the directory, UsageError where there is none
 */
async function offline<T>(call: Call, work: (app: App) => Promise<T> | T): Promise<T> {
  const directory = await dataDirectory(call);
  const app = await createApp({
    directory,
    passwordLengthMin: call.read(options.passwordLengthMin),
    scryptCost: call.read(options.scryptCost),
    page: false,
  });
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}
