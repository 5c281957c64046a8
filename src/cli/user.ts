import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import type { UserRecord } from '../accounts/records.ts';
import type { Users } from '../accounts/users.ts';
import { openData, type Data } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import { loadFeatures, loadReferences } from '../app/parts.ts';
import { invitationPath } from '../api/invitations.ts';
import { localAdministrator } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { localTarget } from '../collections/resource.ts';
import { flagOnly, option, OptionError, options, text, toggle } from '../config/options.ts';
import { silentLog, type Log } from '../log/log.ts';
import { emailKey } from '../schema/field.ts';
import { scalarValue } from '../schema/record.ts';
import type { StoredRecord, Transaction } from '../store/store.ts';
import { forgetAdminPassword, passwordFileIn } from './admin-password.ts';
import {
  clusterOf,
  dataDirectory,
  declarationsOf,
  storeAccess,
  type Call,
  type Command,
  type Terminal,
} from './command.ts';
import { placeOf } from './place.ts';

const name = flagOnly(
  option('name', 'name of the user; without it, the address up to the @', text('NAME'), undefined),
);
const role = flagOnly(option('role', 'what the user may do', text('ROLE'), 'member'));

const keyName = flagOnly(
  option('name', 'what the key is for, which tells it from others', text('NAME'), undefined),
);

const withRecords = flagOnly(
  toggle('with-records', 'also where over 10,000 records are removed or changed with the user'),
);

export const passwordFile = flagOnly(
  option(
    'password-file',
    'file with the password; - reads it from standard input',
    text('FILE'),
    undefined,
  ),
);

const passwordOptions = [options.passwordLengthMin, options.scryptCost, passwordFile];

/** Commands that change users while no server runs, or beside the nodes of a cluster. */
export const commands: readonly Command[] = [
  {
    name: 'user add',
    summary: 'Adds a user, with a password from the terminal, from standard input or from a file',
    operands: ['EMAIL'],
    ...storeAccess(...passwordOptions, options.collections, name, role),
    run: addUser,
  },
  {
    name: 'user list',
    summary: 'Lists the users: id, role, e-mail address, name; also beside a running server',
    ...storeAccess(),
    run: listUsers,
  },
  {
    name: 'user key',
    summary: 'Makes an API key for a script that acts as the user, and prints it once',
    operands: ['EMAIL'],
    ...storeAccess(keyName),
    run: makeKey,
  },
  {
    name: 'user invite',
    summary:
      'Prints the path of a page where a user without a password chooses one, within 24 hours',
    operands: ['EMAIL'],
    ...storeAccess(),
    run: (call) =>
      withUser(call, async ({ store, invitations }, { id }) => {
        const invite = (tx: Transaction): string => invitations.make(tx, localAdministrator, id);
        return `${invitationPath(await store.write(invite))}\n`;
      }),
  },
  {
    name: 'user set-password',
    summary: "Sets a user's password and ends their sessions and API keys",
    operands: ['EMAIL'],
    ...storeAccess(...passwordOptions),
    run: (call) =>
      withUser(call, async (data, { id, email }) => {
        await change(data, id, { password: await readPassword(call) });
        await forgetPassword(call, data.users, id);
        return `${email} has a new password, and has to sign in again\n`;
      }),
  },
  {
    name: 'user set-role',
    summary:
      "Sets a user's role, admin, member or one that --collections declares, and ends their sessions",
    operands: ['EMAIL', 'ROLE'],
    ...storeAccess(options.collections),
    run: (call) =>
      withUser(call, async (data, { id, email }) => {
        const record = await change(data, id, { role: call.operands[1] ?? '' });
        return `${email} now has the role ${record.role}\n`;
      }),
  },
  {
    name: 'user remove',
    summary:
      'Removes a user with their sessions and API keys, and does with records what --collections declares',
    operands: ['EMAIL'],
    ...storeAccess(options.collections, withRecords),
    run: (call) =>
      withUser(call, async ({ users, writes, store }, { id, email }) => {
        const [unknown] = store.undeclared();
        if (unknown !== undefined)
          throw new OptionError(
            `Cannot remove the user: records of ${unknown} may refer to them; use --collections`,
          );
        const most = call.read(withRecords) ? Infinity : undefined;
        await writes.write(localAdministrator, (tx) => users.remove(tx, localTarget(id), most));
        await forgetPassword(call, users, id);
        return `${email} is removed\n`;
      }),
  },
];

/** Lists the users as they are after one commit: a server may go on writing. */
async function listUsers(call: Call): Promise<void> {
  const { views } = (await (await placeOf(call)).read()).image;
  // A server without users may have a collection of this name.
  const view = views.find(({ name, isServers }) => name === 'users' && isServers);
  call.terminal.out((view?.blocks.flat() ?? []).map(line).join(''));
}

async function addUser(call: Call): Promise<void> {
  const [email = ''] = call.operands;
  const userName = call.read(name) ?? email.replace(/@.*/s, '');
  const fields = { name: userName, email, role: call.read(role) };
  let body: JsonObject | undefined;
  const readBody = async (): Promise<JsonObject> =>
    (body ??= { ...fields, password: await readPassword(call) });
  const check = async (users: Users): Promise<unknown> =>
    users.acceptNew(localAdministrator, await readBody());
  const add = async ({ users }: Data): Promise<string> => {
    const added = line(await users.add(await readBody()));
    // A start makes an administrator only where there is no user.
    if (users.records.members('administrators', 'admin').length === 0) {
      call.terminal.err('Nobody is an administrator yet: cairn user set-role EMAIL admin\n');
    }
    return added;
  };
  await withUsers(call, add, check);
}

async function makeKey(call: Call): Promise<void> {
  const keyFor = call.read(keyName);
  if (keyFor === undefined) throw new OptionError('Cannot make the API key: --name says what for');
  const modules = await loadFeatures({ feed: false, openapi: false, page: false });
  const make = modules.find((each) => each.makeKey)?.makeKey;
  if (make === undefined) throw new OptionError('Cannot make API keys: they were left out');
  await withUser(call, async (data, { id }) => `${await make(data, id, keyFor)}\n`);
}

async function forgetPassword(call: Call, users: Users, userId: number): Promise<void> {
  const place = (await clusterOf(call)) ?? passwordFileIn(call.read(options.directory));
  await forgetAdminPassword(place, users, userId);
}

async function change({ users, writes }: Data, id: number, body: JsonObject): Promise<UserRecord> {
  const target = localTarget(id);
  const draft = users.draft(localAdministrator, body);
  const prepared = await users.prepareChange(target, draft);
  const { record } = await writes.write(localAdministrator, (tx) =>
    users.change(tx, target, draft, prepared),
  );
  return record;
}

function line(user: StoredRecord): string {
  const shown = ['id', 'role', 'email', 'name'].map((name) => scalarValue(user, name) ?? '');
  return `${shown.join('\t')}\n`;
}

/**
 * Runs `work` on the user that the first operand names.
 * @throws OptionError if there is none
 */
function withUser(
  call: Call,
  work: (data: Data, user: UserRecord) => Promise<string>,
): Promise<void> {
  const [email = ''] = call.operands;
  return withUsers(call, (data) => {
    const user = data.users.records.find('email', emailKey(email));
    if (user === undefined) {
      const address = JSON.stringify(email);
      throw new OptionError(`Cannot find the user: no user has the address ${address}`);
    }
    return work(data, user);
  });
}

/**
 * Opens the data directory or joins the cluster, without serving it. Runs `work`, and
 * shows the text that it returns. A directory without a store gets one only if `check` is
 * given and passes.
 * @throws LockedError while a server has the directory, OptionError if there is no store
 */
async function withUsers(
  call: Call,
  work: (data: Data) => Promise<string> | string,
  check?: (users: Users) => Promise<unknown>,
): Promise<void> {
  const { terminal, read, command } = call;
  const knowsRoles = command.options.includes(options.collections);
  const { roles, ...others } = knowsRoles ? await declarationsOf(read(options.collections)) : {};
  // Only a removal of a user does something to records.
  const declared = command.options.includes(withRecords) ? others : { items: false };
  const references = await loadReferences(declared.collections ?? []);
  const cluster = await clusterOf(call);
  const isNew = check !== undefined;
  const directory = cluster === undefined ? dataDirectory(call, isNew) : undefined;
  // The next start does not report again what the store reports now, such as a torn write.
  const message: Log['message'] = (_level, text, { reason } = {}) =>
    terminal.err(`${text}${reason === undefined ? '' : `: ${reason}`}\n`);
  const complete = {
    ...defaultOptions,
    ...declared,
    directory,
    references,
    roles,
    settings: {
      ...defaultOptions.settings,
      passwordLengthMin: read(options.passwordLengthMin),
      scryptCost: read(options.scryptCost),
    },
    log: { ...silentLog, message },
  };
  const data = openData(complete, undefined, cluster);
  const { store, users } = data;
  if (cluster === undefined && !(await store.exists())) {
    if (check === undefined) {
      throw new OptionError(`Cannot use --data ${JSON.stringify(directory)}: no store is there`);
    }
    await check(users);
  }
  await store.start();
  try {
    terminal.out(await work(data));
  } finally {
    await store.close();
  }
}

/**
 * Reads the password from `--password-file`, from a terminal, or from standard input that
 * is no terminal. A line end at its end is not part of it.
 * @throws OptionError if it is empty, or was typed differently the second time
 */
export async function readPassword(call: Call): Promise<string> {
  const { terminal } = call;
  const file = call.read(passwordFile);
  let password: string;
  if (file !== undefined && file !== '-') password = await readFile(file, 'utf8');
  else if (file === '-' || terminal.input.isTTY !== true) password = await readAll(terminal.input);
  else {
    password = await readHidden(terminal, 'Password: ');
    if ((await readHidden(terminal, 'Once more: ')) !== password) {
      throw new OptionError('Cannot set the password: the two were not the same');
    }
  }
  password = password.replace(/\r?\n$/, '');
  if (password === '') throw new OptionError('Cannot set the password: it is empty');
  return password;
}

/** Reads a line from a terminal without showing it: the echo is discarded. */
async function readHidden({ input, err }: Terminal, prompt: string): Promise<string> {
  err(prompt);
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output, terminal: true, historySize: 0 });
  try {
    return await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      // Ctrl-C, and Ctrl-D on an empty line, close it.
      lines.once('close', () => reject(new OptionError('Cannot set the password: interrupted')));
    });
  } finally {
    lines.close();
    err('\n');
  }
}
