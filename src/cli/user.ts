import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { everybody, roles } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { options } from '../config.ts';
import { openData } from '../data.ts';
import { silentLog, type Log } from '../log.ts';
import { choice, flagOnly, option, optional, text, UsageError } from '../settings.ts';
import { unconditional } from '../resources/collection.ts';
import type { UserRecord, Users } from '../resources/users.ts';
import { emailKey } from '../schema/field.ts';
import { dataDirectory, type Call, type Command, type Terminal } from './command.ts';

const name = flagOnly(optional('name', "the person's name; without it, what stands before the @", text('NAME')));
const role = flagOnly(option('role', 'what the user may do', choice(roles), 'member'));

export const passwordFile = flagOnly(
  optional('password-file', 'read the password from a file, or from standard input with -', text('FILE')),
);

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
      let body: JsonObject | undefined;
      const read = async () => (body ??= { ...fields, password: await readPassword(call) });
      await offline(
        call,
        async (users) => line(await users.create(everybody, await read())),
        async (users) => users.acceptNew(everybody, await read()),
      );
    },
  },
  {
    name: 'user list',
    summary: 'Lists the users: id, role, e-mail address, name',
    options: [options.directory],
    run: (call) => offline(call, (users) => users.records.view().blocks.flat().map(line).join('')),
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
async function change(call: Call, read: () => JsonObject | Promise<JsonObject>, told: (user: UserRecord) => string) {
  const [email = ''] = call.operands;
  await offline(call, async (users) => {
    const user = users.records.find('email', emailKey(email));
    if (user === undefined) {
      throw new UsageError(`Cannot find the user: nobody has the address ${JSON.stringify(email)}`);
    }
    const target = { principal: everybody, id: user.id, precondition: unconditional };
    const { record } = await users.change(target, 'patch', await read());
    return `${told(record)}\n`;
  });
}

function line({ id, role: has, email, name: called }: UserRecord): string {
  return `${id}\t${has}\t${email}\t${called}\n`;
}

/**
 * Opens the data directory, lets `work` use it without serving anybody, tells what came of it, and closes it again.
 * Where no store is there yet, `begin` decides by what it throws whether one is made; without it none is.
 * @throws LockedError while a server has the directory, UsageError where there is none
 */
async function offline(
  call: Call, work: (users: Users) => Promise<string> | string, begin?: (users: Users) => Promise<unknown>,
): Promise<void> {
  const { terminal } = call;
  const directory = await dataDirectory(call);
  const [passwordLengthMin, scryptCost] = [call.read(options.passwordLengthMin), call.read(options.scryptCost)];
  // What the store says now, of a torn write perhaps, no later start says again.
  const message: Log['message'] = (_level, text, { reason } = {}) =>
    terminal.err(`${text}${reason === undefined ? '' : `: ${reason}`}\n`);
  const log = { ...silentLog, message };
  const { store, users } = openData({ directory, passwordLengthMin, scryptCost, log });
  if (!(await store.exists())) {
    if (begin === undefined) throw new UsageError(`Cannot use --data ${JSON.stringify(directory)}: no store is there`);
    await begin(users);
  }
  await store.start();
  try {
    terminal.out(await work(users));
  } finally {
    await store.close();
  }
}

/**
 * The password that this call is about: from `--password-file`, from a terminal without echo (asked for twice), or
 * from standard input where that is no terminal. One line end behind it is not part of it.
 * @throws UsageError when there is none, or the two differ
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

/** Reads a line of which the terminal shows nothing: what it would show is thrown away. */
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
