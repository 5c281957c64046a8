import { readFileSync } from 'node:fs';
import { routeTable } from '../api/routes.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { DeclarationError } from '../collections/collection.ts';
import { parseDeclarations, type Declarations } from '../collections/declaration-file.ts';
import { UsageError } from '../config/settings.ts';
import { errorCode } from '../store/disk/files.ts';
import { pageEndpoints } from '../web/assets.ts';

/**
 * Reads the file that `--collections` names.
 * @throws UsageError with the place of the first mistake
 */
export function readDeclarations(file: string): Declarations {
  const pages = pageEndpoints(false).map(({ route }) => route);
  const routes = [...routeTable([]).values(), ...pages];
  const taken = routes.map(({ path }) => path.split('/')[1] ?? '');
  try {
    return parseDeclarations(parseJsonBytes(readFileSync(file)), taken);
  } catch (error) {
    const isWrong = error instanceof DeclarationError || error instanceof CairnError;
    const code = errorCode(error);
    if (!isWrong && code === undefined) throw error;
    const problem = isWrong ? error.message : `the file cannot be read (${code})`;
    throw new UsageError(`Cannot use --collections ${JSON.stringify(file)}: ${problem}`);
  }
}
