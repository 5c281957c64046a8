import { openApi } from '../api/openapi.ts';
import { routeTable } from '../api/routes.ts';
import { version } from '../base/version.ts';
import { servedCollections } from '../collections/declaration-file.ts';
import { options } from '../config/options.ts';
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
      const declarations = await declarationsOf(read(options.collections));
      const table = routeTable(servedCollections(declarations), {
        registration: read(options.registration),
        requireIfMatch: read(options.requireIfMatch),
        passwordLengthMin: read(options.passwordLengthMin),
      });
      const document = openApi(table, version, read(options.basePath));
      terminal.out(`${JSON.stringify(document, null, 2)}\n`);
    },
  },
];
