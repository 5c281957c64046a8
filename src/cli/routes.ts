import { routeTable } from '../api/routes.ts';
import { exitCodes, type Command } from './command.ts';

/** Shows what can be asked for, and by whom. */
export const routes: Command = {
  name: 'routes',
  summary: 'Shows the route table: method, path, who may, what it does',
  operands: [],
  options: [],
  async run({ terminal }) {
    const rows = [...routeTable().values()].map(({ method, path, access, summary }) => [method, path, access, summary]);
    const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    for (const row of rows) {
      terminal.out(`${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`);
    }
    return exitCodes.done;
  },
};
