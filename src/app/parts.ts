import type { Format } from '../log/log.ts';
import { OptionError } from '../config/options.ts';

/**
 * What a server can do without. Each part lies in a folder or file of its own, is loaded by its
 * line below before the server says that it serves, and nothing else imports it. Who does not
 * want a part removes it and its line.
 */
export interface Parts {
  readonly readableLog?: () => Promise<{ readonly readable: Format }>;
}

export const parts: Parts = {
  readableLog: () => import('../options/readable-log/format.ts'),
};

/** Loads a part that an option asks for. @throws OptionError where the part was removed */
export function load<P>(part: (() => Promise<P>) | undefined, option: string): Promise<P> {
  if (part !== undefined) return part();
  throw new OptionError(`Cannot use ${option}: this installation has been built without it`);
}
