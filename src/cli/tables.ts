import { openData } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import type { StoreStatus } from '../store/store.ts';
import type { Writer } from '../store/writer.ts';

type TablesOf = Writer['freshTables'];

/** Returns what makes the empty tables of a server that has the declared collections. */
export function tablesOf(directory: string, declarations: Partial<Declarations> = {}): TablesOf {
  return openData({ ...defaultOptions, directory, ...declarations }).store.freshTables;
}

/** Names the collections that are stored and that no declaration covers. */
export function undeclared(collections: StoreStatus['collections'], tables: TablesOf): string[] {
  const known = tables();
  return collections
    .filter(({ name, records }) => records > 0 && !known.has(name))
    .map(
      ({ name }) =>
        `${name}.json: no declaration covers it, so its records are only kept; use --collections`,
    );
}
