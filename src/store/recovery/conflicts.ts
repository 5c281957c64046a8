import type { Files } from '../disk/files.ts';
import type { Report } from '../journal/journal-format.ts';
import type { AnyTable } from '../memory/table.ts';
import { StoreDamageError } from './damage.ts';
import { snapshotName } from './snapshot.ts';

/**
 * Reports values that contradict other records, and takes them away. Where that takes records
 * away, references to them are next.
 */
export function settle(files: Files, tables: ReadonlyMap<string, AnyTable>, report: Report): void {
  for (let isSettled = false; !isSettled;) {
    isSettled = true;
    for (const table of tables.values()) {
      for (const { problem, isClearable, settle } of table.conflicts(tables)) {
        const label = isClearable ? 'D2' : 'D3';
        report(new StoreDamageError(label, files, snapshotName(table.name), 0, problem));
        settle();
        isSettled = false;
      }
    }
  }
}
