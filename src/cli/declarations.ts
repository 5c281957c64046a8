import { readFileSync, statSync } from 'node:fs';
import { takenNames } from '../api/taken-names.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { DeclarationError } from '../collections/define.ts';
import { parseDeclarations, type Declarations } from '../collections/declaration-file.ts';
import { OptionError } from '../config/options.ts';
import { errorCode } from '../store/disk/files.ts';

/** @throws OptionError with all mistakes */
export function readDeclarations(file: string): Declarations {
  const refusal = (problem: string): OptionError =>
    new OptionError(`Cannot use --collections ${JSON.stringify(file)}: ${problem}`);
  try {
    // Reading a pipe would wait for its writer and ignore signals.
    if (!statSync(file).isFile()) throw refusal('it is not a regular file');
    const json = parseJsonBytes(readFileSync(file));
    return parseDeclarations(json, takenNames(), takenNames(false));
  } catch (error) {
    const isWrong = error instanceof DeclarationError || error instanceof CairnError;
    const code = errorCode(error);
    if (!isWrong && code === undefined) throw error;
    throw refusal(isWrong ? error.message : `the file cannot be read (${code})`);
  }
}
