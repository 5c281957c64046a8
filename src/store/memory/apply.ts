import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { PublishedChange } from '../store.ts';
import { isCount, type AnyTable } from './table.ts';

/** Publishes one change of the commit `sequence` as a log has it. Returns it, or what is wrong with it. */
export function applyChange(
  change: JsonValue,
  sequence: number,
  tables: ReadonlyMap<string, AnyTable>,
): PublishedChange | string {
  if (!Array.isArray(change)) return 'a change is not a pair';
  const [name, value] = change;
  const table = typeof name === 'string' ? tables.get(name) : undefined;
  if (table === undefined) return 'it names a collection that the manifest does not list';
  const id = isJsonObject(value) ? value['id'] : value;
  if (!isCount(id)) return 'a change is neither a record nor an id';
  if (isJsonObject(value) && value['revision'] !== sequence) return 'a record does not have the revision of its commit';
  const problem = isJsonObject(value) ? table.load(value) : table.unload(id);
  table.advance(sequence, id + 1);
  return problem ?? { collection: table, id, record: table.get(id), sequence };
}

/** The changes of a group, each with the place of its commit in the group. */
export function* changesOf(commits: readonly JsonValue[]): Generator<[change: JsonValue, at: number], void, undefined> {
  for (const [at, commit] of commits.entries()) {
    for (const change of Array.isArray(commit) ? commit : [commit]) yield [change, at];
  }
}
