import { readFileSync } from 'node:fs';
import { takenNames } from '../api/route-table.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { DeclarationError } from '../collections/define.ts';
import { parseDeclarations, type Declarations } from '../collections/declaration-file.ts';
import { OptionError } from '../config/options.ts';
import { errorCode } from '../store/disk/files.ts';

/**
 * Reads the file that `--collections` names.
 * @throws OptionError with all mistakes
 */
export function readDeclarations(file: string): Declarations {
  try {
    const json = parseJsonBytes(readFileSync(file));
    return parseDeclarations(json, takenNames(), takenNames(false));
  } catch (error) {
    const isWrong = error instanceof DeclarationError || error instanceof CairnError;
    const code = errorCode(error);
    if (!isWrong && code === undefined) throw error;
    const problem = isWrong ? error.message : `the file cannot be read (${code})`;
    throw new OptionError(`Cannot use --collections ${JSON.stringify(file)}: ${problem}`);
  }
}
