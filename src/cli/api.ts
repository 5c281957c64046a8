import { createApp } from '../app/app.ts';
import { routeTable } from '../api/routes.ts';
import { servedCollections } from '../collections/declaration-file.ts';
import { options } from '../config/config.ts';
import { declarationsOf, type Command } from './command.ts';

/** Commands that describe the API without serving it. */
export const apiCommands: readonly Command[] = [
  {
    name: 'routes',
    summary: 'Shows the route table: method, path, who may, what it does',
    options: [options.collections],
    async run({ terminal, read }) {
      const declarations = await declarationsOf(read(options.collections));
      const table = routeTable(servedCollections(declarations));
      for (const { method, path, access, summary } of table.values()) {
        const cells = [method.padEnd(6), path.padEnd(14), access.padEnd(8), summary];
        terminal.out(`${cells.join('  ')}\n`);
      }
    },
  },
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
      const app = await createApp({
        ...(await declarationsOf(read(options.collections))),
        registration: read(options.registration),
        requireIfMatch: read(options.requireIfMatch),
        passwordLengthMin: read(options.passwordLengthMin),
        basePath: read(options.basePath),
      });
      const { body } = await app.inject({ target: '/openapi.json' });
      await app.close();
      terminal.out(`${JSON.stringify(JSON.parse(body), null, 2)}\n`);
    },
  },
];
