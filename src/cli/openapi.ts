import { openApi } from '../api/openapi.ts';
import { routeTable } from '../api/routes.ts';
import { packageVersion } from '../version.ts';
import { exitCodes, type Command } from './command.ts';

/** Shows what `/openapi.json` shows, without a server. */
export const openapi: Command = {
  name: 'openapi',
  summary: 'Prints the OpenAPI document',
  operands: [],
  options: [],
  async run({ terminal }) {
    terminal.out(`${JSON.stringify(openApi(routeTable(), packageVersion()), null, 2)}\n`);
    return exitCodes.done;
  },
};
