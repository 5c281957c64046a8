import type { RecordId } from '../../base/record-id.ts';
import type { Report } from '../format/damage.ts';
import { conflictsIn, type AnyTable } from '../memory/table.ts';
import { snapshotName } from '../format/snapshot.ts';

/**
 * Reports values that contradict other records, and takes them away. Where that takes records
 * away, references to them are next.
 */
export function settle(tables: ReadonlyMap<string, AnyTable>, report: Report): void {
  let gone: Map<string, RecordId[]> | undefined;
  do {
    const conflicts = conflictsIn(tables, gone);
    gone = new Map();
    for (const conflict of conflicts) {
      const { name, problem } = conflict;
      const label = conflict.isClearable ? 'D2' : 'D3';
      report({ label, file: snapshotName(name), detail: problem });
      gone.set(name, (gone.get(name) ?? []).concat(conflict.settle()));
    }
  } while (gone.size > 0);
}
