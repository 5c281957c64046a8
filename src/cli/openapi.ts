import { options } from '../config/options.ts';
import { silentLog } from '../log/log.ts';
import { loadDeclarations, type Command } from './command.ts';
import { ask, withApp } from './local-app.ts';

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
      const declarations = await loadDeclarations(read(options.collections));
      const settings = {
        auth: declarations.users === false ? ('none' as const) : ('required' as const),
        registration: read(options.registration),
        requireIfMatch: read(options.requireIfMatch),
        passwordLengthMin: read(options.passwordLengthMin),
        basePath: read(options.basePath),
      };
      const document = await withApp({ ...declarations, log: silentLog }, settings, (app) =>
        ask(app, 'GET', '/openapi.json'),
      );
      terminal.out(`${JSON.stringify(document, null, 2)}\n`);
    },
  },
];
