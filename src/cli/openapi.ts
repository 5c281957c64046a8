import { openApp } from '../app/app.ts';
import { LocalRequest } from '../app/local-request.ts';
import { defaultOptions } from '../app/options.ts';
import { options } from '../config/options.ts';
import { silentLog } from '../log/log.ts';
import { declarationsOf, type Command } from './command.ts';

export const commands: readonly Command[] = [
  {
    name: 'openapi',
    summary: 'Prints the OpenAPI document',
    options: [
      options.collections,
      options.registration,
      options.requireIfMatch,
      options.passwordLengthMin,
      options.basePath,
    ],
    async run({ terminal, read }) {
      const declarations = await declarationsOf(read(options.collections));
      const app = await openApp({
        ...defaultOptions,
        ...declarations,
        page: false,
        log: silentLog,
        settings: {
          ...defaultOptions.settings,
          auth: declarations.users === false ? 'none' : 'required',
          registration: read(options.registration),
          requireIfMatch: read(options.requireIfMatch),
          passwordLengthMin: read(options.passwordLengthMin),
          basePath: read(options.basePath),
        },
      });
      await app.begin();
      const { options: server } = app.server;
      const fields = ['host', 'localhost'];
      const receive = (): Buffer => Buffer.alloc(0);
      const asked = { method: 'GET', target: '/openapi.json', fields, receive };
      const { body } = await server.handle(new LocalRequest(server, asked));
      terminal.out(`${JSON.stringify(JSON.parse(String(body)), null, 2)}\n`);
      await app.close();
    },
  },
];
