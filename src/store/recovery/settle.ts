/**
 * What remains to be done when all records have been read.
 *
 * While an import runs, the file `import` is there: `{"after":120}`. What later commits wrote counts
 * once the file is gone. An import only inserts, so the revision of a record tells whether it is
 * one of them.
 */
import { readWhole, replaceFile, type Files } from '../disk/files.ts';
import { parseObject, type Report } from '../format/journal.ts';
import { conflictsIn, isCount, type AnyTable } from '../memory/table.ts';
import { StoreDamageError } from '../format/damage.ts';
import { snapshotName } from '../format/snapshot.ts';

const importName = 'import';

/** Begins an import after the commit `after`. */
export function beginImport(files: Files, after: number): Promise<void> {
  return replaceFile(files, importName, Buffer.from(JSON.stringify({ after })));
}

/** Ends an import, which counts from now on, or one that was taken back durably. */
export async function endImport(files: Files): Promise<void> {
  await files.remove(importName);
  await files.syncDirectory();
}

/** Returns the file of an import that has not ended. */
export function unfinishedImport(files: Files): Promise<Buffer | undefined> {
  return readWhole(files, importName);
}

/** Takes back what an import has written. `begun` is its file. */
export function takeBack(
  files: Files,
  begun: Buffer,
  tables: ReadonlyMap<string, AnyTable>,
  report: Report,
): void {
  const after = parseObject(begun)?.['after'];
  if (!isCount(after)) {
    report(new StoreDamageError('J2', files, importName));
    return;
  }
  for (const table of tables.values()) {
    for (const { id, revision } of table.view().blocks.flat()) {
      if (revision > after) table.unload(id);
    }
  }
}

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
