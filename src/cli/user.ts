import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import type { UserRecord } from '../accounts/records.ts';
import type { Application } from '../app/app.ts';
import { loadFeatures } from '../app/parts.ts';
import { localAdministrator } from '../auth/access.ts';
import { localTarget } from '../collections/resource.ts';
import { flagOnly, option, OptionError, options, text, toggle } from '../config/options.ts';
import { silentLog, type Log } from '../log/log.ts';
import { emailKey } from '../schema/field.ts';
import {
  dataDirectory,
  loadDeclarations,
  storeAccess,
  type Invocation,
  type Command,
  type Terminal,
} from './command.ts';
import { ask, withApp } from './local-app.ts';
import { forgetAdminPassword } from './location.ts';
import { findPlace, type Place } from './place.ts';

const name = flagOnly(
  option('name', 'name of the user; without it, the address up to the @', text('NAME'), undefined),
);
const role = flagOnly(option('role', 'what the user may do', text('ROLE'), 'member'));

const keyName = flagOnly(
  option('name', 'what the key is for, to tell it from others', text('NAME'), undefined),
);
const readOnly = flagOnly(
  toggle('read-only', 'the key allows only GET and HEAD: use it for /metrics'),
);

const withRecords = flagOnly(
  toggle('with-records', 'even if more than 10,000 records are removed or changed with the user'),
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

/**
 * Commands that change users, while no server runs or in a running cluster. They send requests to
 * an app without a port, so the rules and messages are the same as over HTTP.
 */
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
    summary: 'Lists the users: id, role, e-mail address, name; also works while a server runs',
    ...storeAccess(),
    run: listUsers,
  },
  {
    name: 'user key',
    summary: 'Creates an API key for a script that acts as the user, and prints it once',
    operands: ['EMAIL'],
    ...storeAccess(keyName, readOnly),
    run: makeKey,
  },
  {
    name: 'user invite',
    summary:
      'Prints the path of a page, valid for 24 hours, where a user without a password chooses one',
    operands: ['EMAIL'],
    ...storeAccess(),
    run: (call) =>
      withUser(call, async (app, { id }) => {
        const invitation = await ask(app, 'POST', `/users/${id}/invitation`);
        return `${String(invitation['path'])}\n`;
      }),
  },
  {
    name: 'user set-password',
    summary: "Sets a user's password and ends their sessions and API keys",
    operands: ['EMAIL'],
    ...storeAccess(...passwordOptions),
    run: (call) =>
      withUser(call, async (app, { id, email }, place) => {
        await ask(app, 'PATCH', `/users/${id}`, { password: await readPassword(call) });
        await forgetAdminPassword(place, app.data.users, id);
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
      withUser(call, async (app, { id, email }) => {
        const { role } = await ask(app, 'PATCH', `/users/${id}`, { role: call.operands[1] ?? '' });
        return `${email} now has the role ${String(role)}\n`;
      }),
  },
  {
    name: 'user remove',
    summary:
      'Removes a user with their sessions and API keys; --collections declares what happens to their records',
    operands: ['EMAIL'],
    ...storeAccess(options.collections, withRecords),
    run: (call) =>
      withUser(call, async (app, { id, email }, place) => {
        const { users, writes, store } = app.data;
        const [unknown] = store.undeclared();
        if (unknown !== undefined)
          throw new OptionError(
            `Cannot remove the user: records of ${unknown} may refer to them; use --collections`,
          );
        const most = call.read(withRecords) ? Infinity : undefined;
        await writes.write(localAdministrator, (tx) => users.remove(tx, localTarget(id), most));
        await forgetAdminPassword(place, users, id);
        return `${email} is removed\n`;
      }),
  },
];

/** Lists the users as of one commit: a server may go on writing. */
async function listUsers(call: Invocation): Promise<void> {
  const { views } = (await (await findPlace(call)).read()).image;
  // A server without users may have a collection of this name.
  const view = views.find(({ name, isServers }) => name === 'users' && isServers);
  call.terminal.out((view?.blocks.flat() ?? []).map(toLine).join(''));
}

const noAdministrator = 'Nobody is an administrator yet: cairn user set-role EMAIL admin\n';

const toLine = (user: object): string =>
  `${['id', 'role', 'email', 'name'].map((name) => String(Reflect.get(user, name))).join('\t')}\n`;

async function addUser(call: Invocation): Promise<void> {
  const [email = ''] = call.operands;
  const fields = {
    name: call.read(name) ?? email.replace(/@.*/s, ''),
    email,
    role: call.read(role),
  };
  const findDirectory = (): string => dataDirectory(call, true);
  const place = await findPlace(call, { findDirectory });
  let password: string | undefined;
  const add = async (app: Application): Promise<readonly [line: string, advice: string]> => {
    password ??= await readPassword(call);
    const added = await ask(app, 'POST', '/users', { ...fields, password });
    // A start creates an administrator only if there are no users.
    const { length } = app.data.users.records.members('administrators', 'admin');
    return [toLine(added), length > 0 ? '' : noAdministrator];
  };
  // A mistake must not leave a new store behind, so it is tried in memory first.
  if (!(await place.exists())) await open(call, {}, add);
  const [line, advice] = await open(call, place.data, add);
  call.terminal.out(line);
  call.terminal.err(advice);
}

async function makeKey(call: Invocation): Promise<void> {
  const keyFor = call.read(keyName);
  if (keyFor === undefined)
    throw new OptionError('Cannot make the API key: use --name to say what it is for');
  const modules = await loadFeatures({ feed: false, openapi: false, page: false });
  const make = modules.find((each) => each.makeKey)?.makeKey;
  if (make === undefined) throw new OptionError('Cannot make API keys: they were left out');
  const sent = { name: keyFor, readOnly: call.read(readOnly) };
  await withUser(call, async ({ data }, { id }) => `${await make(data, id, sent)}\n`);
}

/** Prints the result of `work`. @throws OptionError for an unknown user */
async function withUser(
  call: Invocation,
  work: (app: Application, user: UserRecord, place: Place) => Promise<string>,
): Promise<void> {
  const email = JSON.stringify(call.operands[0]);
  const place = await findPlace(call);
  if (!(await place.exists()))
    throw new OptionError(
      `Cannot use --data ${JSON.stringify(place.name)}: no store is there; start a server, or use "cairn user add"`,
    );
  const text = await open(call, place.data, (app) => {
    const user = app.data.users.records.find('email', emailKey(call.operands[0] ?? ''));
    if (user !== undefined) return work(app, user, place);
    throw new OptionError(
      `Cannot find the user: no user has the address ${email}; see "cairn user list"`,
    );
  });
  call.terminal.out(text);
}

/** @throws LockedError while a server uses the directory */
async function open<T>(
  { terminal, read, command }: Invocation,
  data: Place['data'],
  work: (app: Application) => Promise<T>,
): Promise<T> {
  const knowsRoles = command.options.includes(options.collections);
  const { roles, ...others } = knowsRoles ? await loadDeclarations(read(options.collections)) : {};
  // Only removing a user affects records.
  const declared = command.options.includes(withRecords) ? others : { items: false };
  // The next start does not repeat what the store reports now, such as a torn write.
  const message: Log['message'] = (_level, text, { reason } = {}) =>
    terminal.err(`${text}${reason === undefined ? '' : `: ${reason}`}\n`);
  const settings = {
    passwordLengthMin: read(options.passwordLengthMin),
    scryptCost: read(options.scryptCost),
  };
  return withApp({ ...data, ...declared, roles, log: { ...silentLog, message } }, settings, work);
}

/**
 * Reads the password from `--password-file`, from a terminal, or from other standard input, without
 * a final line end.
 * @throws OptionError if it is empty, or was typed differently the second time
 */
export async function readPassword(call: Invocation): Promise<string> {
  const { terminal } = call;
  const file = call.read(passwordFile);
  let password: string;
  if (file !== undefined && file !== '-') password = await readFile(file, 'utf8');
  else if (file === '-' || terminal.input.isTTY !== true) password = await readAll(terminal.input);
  else {
    password = await readHidden(terminal, 'Password: ');
    if ((await readHidden(terminal, 'Once more: ')) !== password) {
      throw new OptionError('Cannot set the password: the two were not the same; try again');
    }
  }
  password = password.replace(/\r?\n$/, '');
  if (password === '') throw new OptionError('Cannot set the password: it is empty');
  return password;
}

/** Reads a line without showing it. */
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
