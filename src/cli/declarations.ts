import { readFileSync } from 'node:fs';
import { routeTable } from '../api/routes.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { DeclarationError } from '../collections/define.ts';
import { parseDeclarations, type Declarations } from '../collections/declaration-file.ts';
import { OptionError } from '../config/options.ts';
import { errorCode } from '../store/disk/files.ts';

/** The names that no collection can have, because the API has paths that begin with them. */
export function takenNames(): string[] {
  return ['changes', 'page', ...routeTable([]).map(({ path }) => path.split('/')[1] ?? '')];
}

/**
 * Reads the file that `--collections` names.
 * @throws OptionError with all mistakes
 */
export function readDeclarations(file: string): Declarations {
  try {
    return parseDeclarations(parseJsonBytes(readFileSync(file)), takenNames());
  } catch (error) {
    const isWrong = error instanceof DeclarationError || error instanceof CairnError;
    const code = errorCode(error);
    if (!isWrong && code === undefined) throw error;
    const problem = isWrong ? error.message : `the file cannot be read (${code})`;
    throw new OptionError(`Cannot use --collections ${JSON.stringify(file)}: ${problem}`);
  }
}
