import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import type { UserRecord } from '../accounts/records.ts';
import type { Users } from '../accounts/users.ts';
import { openData } from '../app/data.ts';
import { completeOptions } from '../app/options.ts';
import { localAdministrator, roles } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { unconditional, type Target } from '../collections/resource.ts';
import { options } from '../config/config.ts';
import { choice, flagOnly, option, text, UsageError } from '../config/settings.ts';
import { silentLog, type Log } from '../observability/log.ts';
import { emailKey } from '../schema/field.ts';
import { forgetAdminPassword } from './admin-password.ts';
import {
  clusterOf, clusterOptions, clusterSecrets, dataDirectory, type Call, type Command, type Terminal,
} from './command.ts';

const name = flagOnly(option('name', 'name of the user; without it, the address up to the @', text('NAME'), undefined));
const role = flagOnly(option('role', 'what the user may do', choice(roles), 'member'));

export const passwordFile = flagOnly(
  option('password-file', 'read the password from a file, or from standard input with -', text('FILE'), undefined),
);

const places = [options.directory, ...clusterOptions] as const;
const storeOptions = [...places, options.passwordLengthMin, options.scryptCost] as const;

/** Commands that change users while no server runs, or beside the nodes of a cluster. */
export const userCommands: readonly Command[] = [
  {
    name: 'user add',
    summary: 'Adds a user, with a password from the terminal, from standard input or from a file',
    operands: ['EMAIL'],
    options: [...storeOptions, name, role, passwordFile],
    secrets: clusterSecrets,
    run: addUser,
  },
  {
    name: 'user list',
    summary: 'Lists the users: id, role, e-mail address, name',
    options: places,
    secrets: clusterSecrets,
    run: (call) => withUsers(call, (users) => users.records.view().blocks.flat().map(line).join('')),
  },
  {
    name: 'user set-password',
    summary: "Sets a user's password and ends their sessions",
    operands: ['EMAIL'],
    options: [...storeOptions, passwordFile],
    secrets: clusterSecrets,
    run: (call) =>
      withUser(call, async (users, target, { email }) => {
        await change(users, target, { password: await readPassword(call) });
        await forgetAdminPassword(call.read(options.directory), users, target.id);
        return `${email} has a new password, and has to sign in again\n`;
      }),
  },
  {
    name: 'user set-role',
    summary: `Sets a user's role, one of ${roles.join(', ')}, and ends their sessions`,
    operands: ['EMAIL', 'ROLE'],
    options: places,
    secrets: clusterSecrets,
    run: (call) =>
      withUser(call, async (users, target, { email }) => {
        const record = await change(users, target, { role: call.operands[1] ?? '' });
        return `${email} now has the role ${record.role}\n`;
      }),
  },
  {
    name: 'user remove',
    summary: 'Removes a user and ends their sessions; what they created stays',
    operands: ['EMAIL'],
    options: places,
    secrets: clusterSecrets,
    run: (call) =>
      withUser(call, async (users, target, { email }) => {
        await users.remove(target);
        await forgetAdminPassword(call.read(options.directory), users, target.id);
        return `${email} is removed\n`;
      }),
  },
];

async function addUser(call: Call): Promise<void> {
  const [email = ''] = call.operands;
  const fields = { name: call.read(name) ?? email.replace(/@.*/s, ''), email, role: call.read(role) };
  let body: JsonObject | undefined;
  const read = async (): Promise<JsonObject> => (body ??= { ...fields, password: await readPassword(call) });
  const check = async (users: Users): Promise<unknown> => users.acceptNew(localAdministrator, await read());
  await withUsers(call, async (users) => line(await users.add(await read())), check);
}

async function change(users: Users, target: Target, body: JsonObject): Promise<UserRecord> {
  return (await users.change(target, users.draft(localAdministrator, body))).record;
}

function line(user: UserRecord): string {
  return `${user.id}\t${user.role}\t${user.email}\t${user.name}\n`;
}

/** Does `work` on the user whose address is the first operand. @throws UsageError where no user has it */
function withUser(
  call: Call, work: (users: Users, target: Target, user: UserRecord) => Promise<string>,
): Promise<void> {
  const [email = ''] = call.operands;
  return withUsers(call, (users) => {
    const user = users.records.find('email', emailKey(email));
    if (user === undefined) {
      throw new UsageError(`Cannot find the user: no user has the address ${JSON.stringify(email)}`);
    }
    return work(users, { principal: localAdministrator, id: user.id, precondition: unconditional }, user);
  });
}

/**
 * Opens the data directory, or joins the cluster, without serving it, does `work`, and shows the text that it returns.
 * Where there is no store in the directory yet, one is made only if there is a `check` and it passes.
 * @throws LockedError while a server has the directory, UsageError where there is none
 */
async function withUsers(
  call: Call, work: (users: Users) => Promise<string> | string, check?: (users: Users) => Promise<unknown>,
): Promise<void> {
  const { terminal } = call;
  const cluster = await clusterOf(call);
  const directory = cluster === undefined ? dataDirectory(call) : undefined;
  const [passwordLengthMin, scryptCost] = [call.read(options.passwordLengthMin), call.read(options.scryptCost)];
  // What the store reports now, such as a torn write, no later start reports again.
  const message: Log['message'] = (_level, text, { reason } = {}) =>
    terminal.err(`${text}${reason === undefined ? '' : `: ${reason}`}\n`);
  const log = { ...silentLog, message };
  const complete = completeOptions({ directory, items: false, passwordLengthMin, scryptCost, log });
  const { store, users } = openData(complete, undefined, cluster?.node);
  if (cluster === undefined && !(await store.exists())) {
    if (check === undefined) throw new UsageError(`Cannot use --data ${JSON.stringify(directory)}: no store is there`);
    await check(users);
  }
  await store.start();
  try {
    terminal.out(await work(users));
  } finally {
    await store.close();
  }
}

/**
 * Reads the password from `--password-file`, from a terminal without echo and twice, or from standard input where that
 * is no terminal. A line end after it is not part of it.
 * @throws UsageError where there is none, or the two differ
 */
export async function readPassword(call: Call): Promise<string> {
  const { terminal } = call;
  const file = call.read(passwordFile);
  let password: string;
  if (file !== undefined && file !== '-') password = await readFile(file, 'utf8');
  else if (file === '-' || terminal.input.isTTY !== true) password = await readAll(terminal.input);
  else {
    password = await readHidden(terminal, 'Password: ');
    const again = await readHidden(terminal, 'Once more: ');
    if (again !== password) throw new UsageError('Cannot set the password: the two were not the same');
  }
  password = password.replace(/\r?\n$/, '');
  if (password === '') throw new UsageError('Cannot set the password: it is empty');
  return password;
}

/** Reads a line without showing it: the echo is thrown away. */
async function readHidden({ input, err }: Terminal, prompt: string): Promise<string> {
  err(prompt);
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output, terminal: true, historySize: 0 });
  try {
    return await new Promise((resolve, reject) => {
      // Ctrl-C, and Ctrl-D on an empty line, close it.
      lines.once('line', resolve).once('close', () => reject(new UsageError('Cannot set the password: interrupted')));
    });
  } finally {
    lines.close();
    err('\n');
  }
}
