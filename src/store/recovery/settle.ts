import type { Files } from '../disk/files.ts';
import type { Report } from '../format/journal.ts';
import { conflictsIn, type AnyTable } from '../memory/table.ts';
import { StoreDamageError } from '../format/damage.ts';
import { snapshotName } from '../format/snapshot.ts';

/**
 * Reports values that contradict other records, and takes them away. Where that takes records
 * away, references to them are next.
 */
export function settle(files: Files, tables: ReadonlyMap<string, AnyTable>, report: Report): void {
  let gone: Map<string, number[]> | undefined;
  do {
    const conflicts = conflictsIn(tables, gone);
    gone = new Map();
    for (const conflict of conflicts) {
      const { name, problem } = conflict;
      const label = conflict.isClearable ? 'D2' : 'D3';
      report(new StoreDamageError(label, files, snapshotName(name), 0, problem));
      gone.set(name, (gone.get(name) ?? []).concat(conflict.settle()));
    }
  } while (gone.size > 0);
}
