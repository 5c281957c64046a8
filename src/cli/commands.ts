import { options, systemEnvironment } from '../config/config.ts';
import type { CollectionDeclaration } from '../collections/collection.ts';
import { declarationsOf, type Command } from './command.ts';
import { run } from './run.ts';
import { serve } from './serve.ts';

/** Runs the command that the arguments of the process name. */
export async function main(): Promise<void> {
  // A reader may leave early, as in `cairn openapi | head`, and that is no error.
  process.stdout.on('error', () => undefined);
  const words = process.argv.slice(2);
  const [first = 'serve'] = words;
  const serves = first === 'serve' || (first.startsWith('-') && !['-h', '--help', '--version'].includes(first));
  process.exitCode = await run(serves ? [serve] : await allCommands(), words, {
    input: process.stdin,
    environment: systemEnvironment,
    interactive: process.stdout.isTTY,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  });
}

/** Loads all commands, in the order of the help. The start of a server does not wait for the others. */
export async function allCommands(): Promise<readonly Command[]> {
  const { userCommands } = await import('./user.ts');
  const { dataCommands } = await import('./data.ts');
  const { keyCommands } = await import('./keys.ts');
  return [serve, ...userCommands, ...dataCommands, ...keyCommands, routes, openapi];
}

const routes: Command = {
  name: 'routes',
  summary: 'Shows the route table: method, path, who may, what it does',
  options: [options.collections],
  async run({ terminal, read }) {
    const { routeTable } = await import('../api/routes.ts');
    const collections = await allCollections(read(options.collections));
    for (const { method, path, access, summary } of routeTable(collections).values()) {
      terminal.out(`${method.padEnd(6)}  ${path.padEnd(14)}  ${access.padEnd(8)}  ${summary}\n`);
    }
  },
};

const openapi: Command = {
  name: 'openapi',
  summary: 'Prints the OpenAPI document',
  options: [
    options.collections, options.registration, options.requireIfMatch, options.passwordLengthMin, options.basePath,
  ],
  async run({ terminal, read }) {
    const { routeTable } = await import('../api/routes.ts');
    const { openApi } = await import('../api/openapi.ts');
    const { version } = await import('../base/version.ts');
    const table = routeTable(await allCollections(read(options.collections)), {
      registration: read(options.registration),
      requireIfMatch: read(options.requireIfMatch),
      passwordLengthMin: read(options.passwordLengthMin),
    });
    terminal.out(`${JSON.stringify(openApi(table, version, read(options.basePath)), null, 2)}\n`);
  },
};

/** The collections that a server with this file of declarations has. */
async function allCollections(file: string | undefined): Promise<readonly CollectionDeclaration[]> {
  const { items: hasItems = true, collections = [] } = await declarationsOf(file);
  const { items } = await import('../collections/items.ts');
  return hasItems ? [items, ...collections] : collections;
}
