import type { Users } from '../../src/accounts/users.ts';
import type { Application } from '../../src/app/app.ts';
import { Fields } from '../../src/http/fields.ts';
import { openProgram, type App as PublicApp } from '../../src/programs/app.ts';
import type { PlainRequest as PublicRequest } from '../../src/programs/inject.ts';
import type { AppOptions } from '../../src/programs/options.ts';

/** A request and a reply with the fields as the server has them, for tests that look at each of them. */
export interface PlainRequest extends Omit<PublicRequest, 'headers'> {
  readonly fields?: Readonly<Record<string, string>> | undefined;
}
export interface PlainReply {
  readonly status: number;
  readonly fields: Fields;
  readonly body: string;
}

/** An app with what is inside of it, which no program gets. */
export interface App extends Omit<PublicApp, 'users' | 'inject'>, Pick<Application, 'store' | 'load' | 'unready'> {
  readonly users: Users;
  readonly certificate: string | undefined;
  readonly program: PublicApp;
  inject(request: PlainRequest): Promise<PlainReply>;
}

/** Does as the `createApp` of programs, for tests that look inside. */
export async function createApp(options: AppOptions = {}): Promise<App> {
  const { app: program, inside } = await openProgram(options);
  const { listen, handler, fetch, close, collection, single, versionOf, write } = program;
  const { authenticate, status, reloadKeys, renewTls } = program;
  return {
    ...{ listen, handler, fetch, close, collection, single, versionOf, write, authenticate, status },
    ...{ reloadKeys, renewTls },
    [Symbol.asyncDispose]: close,
    program,
    users: inside.data.users,
    store: inside.store,
    load: () => inside.load(),
    unready: () => inside.unready(),
    get certificate() {
      return inside.certificate;
    },
    async inject({ fields, ...request }) {
      const { status, headers, body } = await program.inject({ ...request, headers: fields });
      return { status, fields: new Fields([...headers].flat()), body };
    },
  };
}
