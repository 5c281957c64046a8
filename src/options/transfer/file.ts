/**
 * Reads json-server's files: one JSON object with arrays of records,
 * `{ "posts": [{ "id": 1, "title": "…" }], "comments": [] }`. A file is read whole.
 */
import { constants } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { CairnError, FatalError } from '../../base/errors.ts';
import { isJsonObject, scan, decodeText, type JsonValue } from '../../base/json.ts';

export type Member = readonly [name: string, value: JsonValue];

/**
 * Returns the members of a file, without `$schema`, which newer versions of json-server write for
 * editors. A file that is an array is one collection, named like the file.
 * @throws FatalError if the file is missing, is not an object, or does not fit into memory
 */
export function readMembers(file: string): readonly Member[] {
  const refusal = (exitCode: 64 | 65, problem: string): FatalError =>
    new FatalError(exitCode, `Cannot read ${file}: ${problem}`);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw refusal(64, 'there is no such file');
  if (!found.isFile()) throw refusal(64, 'it is not a regular file');
  if (found.size > constants.MAX_STRING_LENGTH) {
    const most = `at most ${constants.MAX_STRING_LENGTH} can be read at once; split it`;
    throw refusal(65, `it has ${found.size} bytes, and ${most}`);
  }
  try {
    const text = decodeText(readFileSync(file));
    const values = scan(text, Infinity);
    const problem = lackOfMemory(values * bytesPerValue + text.length * bytesPerCharacter);
    if (problem !== undefined) throw refusal(65, problem);
    const value: JsonValue = JSON.parse(text);
    if (Array.isArray(value)) return [[basename(file).replace(/\.json$/i, ''), value]];
    if (!isJsonObject(value)) throw refusal(65, 'it must be an object whose members are arrays');
    return Object.entries(value).filter(([name]) => name !== '$schema');
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    throw refusal(65, error.message.replace('Cannot read the JSON: ', ''));
  }
}

/**
 * The memory needed until all records are stored: as parsed, as checked, as stored, and as text of
 * a commit. Measured with records of one to ten members, and rounded up.
 */
const bytesPerValue = 280;
const bytesPerCharacter = 3;

function lackOfMemory(needed: number): string | undefined {
  const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
  if (needed <= limit - used) return undefined;
  const figures = `it may take ${inMiB(needed)} of memory, and ${inMiB(limit - used)} are left`;
  return `${figures}; split it, or give Node.js more by NODE_OPTIONS=--max-old-space-size=…`;
}

export function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20).toLocaleString('en')} MiB`;
}
