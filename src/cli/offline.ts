import { stat } from 'node:fs/promises';
import { createApp, type App } from '../app.ts';
import { options } from '../config.ts';
import { UsageError } from '../options.ts';
import type { Call } from './command.ts';

/** The options of a command that works on a data directory while no server does. */
export const offlineOptions = [options.data, options.passwordMin, options.scryptCost] as const;

/**
 * Opens the data directory, lets `work` use it without serving anybody, and closes it again.
 * @throws LockedError while a server has the directory, UsageError where there is none
 */
export async function offline<T>(call: Call, work: (app: App) => Promise<T> | T): Promise<T> {
  const directory = await dataDirectory(call);
  const app = await createApp({
    directory,
    passwordLengthMin: call.read(options.passwordMin),
    scryptCost: call.read(options.scryptCost),
    page: false,
  });
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

/** The data directory, which is there: a slip in its name must not make a new one. @throws UsageError */
export function dataDirectory(call: Call): Promise<string> {
  return existingDirectory('--data', call.read(options.data));
}

/** @throws UsageError naming `what` where it is no directory */
export async function existingDirectory(what: string, directory: string): Promise<string> {
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() === true) return directory;
  throw new UsageError(`Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory`);
}
