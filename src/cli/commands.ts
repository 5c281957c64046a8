import type { Command } from './command.ts';
import { dataCommands } from './data.ts';
import { flags } from './flags.ts';
import { keyCommands } from './keys.ts';
import { routeCommands } from './routes.ts';
import { serve } from './serve.ts';
import { userCommands } from './user.ts';

/** All there are, in the order of the help; the first one is meant where none is named. */
export const commands: readonly Command[] = [
  serve,
  ...userCommands,
  ...dataCommands,
  ...keyCommands,
  ...routeCommands,
  flags,
];
