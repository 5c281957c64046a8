import type { Files } from '../disk/files.ts';
import type { Report } from '../journal/journal-format.ts';
import { conflictsIn, type AnyTable } from '../memory/table.ts';
import { StoreDamageError } from './damage.ts';
import { snapshotName } from './snapshot.ts';

/**
 * Reports values that contradict other records, and takes them away. Where that takes records
 * away, references to them are next.
 */
export function settle(files: Files, tables: ReadonlyMap<string, AnyTable>, report: Report): void {
  for (let isSettled = false; !isSettled;) {
    isSettled = true;
    for (const { name, problem, isClearable, settle } of conflictsIn(tables)) {
      const label = isClearable ? 'D2' : 'D3';
      report(new StoreDamageError(label, files, snapshotName(name), 0, problem));
      settle();
      isSettled = false;
    }
  }
}
