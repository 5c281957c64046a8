import { openApi } from '../api/openapi.ts';
import { routeTable } from '../api/routes.ts';
import { packageVersion } from '../base/system.ts';
import { options } from '../config.ts';
import type { Command } from './command.ts';
import { dataCommands } from './data.ts';
import { flags } from './flags.ts';
import { keyCommands } from './keys.ts';
import { serve } from './serve.ts';
import { userCommands } from './user.ts';

/** All there are, in the order of the help. */
export const commands: readonly Command[] = [
  serve,
  ...userCommands,
  ...dataCommands,
  ...keyCommands,
  {
    name: 'routes',
    summary: 'Shows the route table: method, path, who may, what it does',
    options: [],
    async run({ terminal }) {
      const routes = [...routeTable().values()];
      const rows = routes.map(({ method, path, access, summary }) => [method, path, access, summary]);
      const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
      for (const row of rows) {
        terminal.out(`${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`);
      }
    },
  },
  {
    name: 'openapi',
    summary: 'Prints the OpenAPI document',
    options: [options.registration, options.requireIfMatch, options.passwordLengthMin],
    async run({ terminal, read }) {
      const routes = routeTable(undefined, {
        registration: read(options.registration),
        requireIfMatch: read(options.requireIfMatch),
        passwordLengthMin: read(options.passwordLengthMin),
      });
      terminal.out(`${JSON.stringify(openApi(routes, packageVersion()), null, 2)}\n`);
    },
  },
  flags,
];
