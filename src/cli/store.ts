import { openData } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import type { StoreStatus } from '../store/store.ts';
import type { Writer } from '../store/writer.ts';

/** Returns the store of a server with these declarations, without starting it. */
export function prepareStore(directory: string, declarations: Partial<Declarations> = {}): Writer {
  return openData({ ...defaultOptions, directory, ...declarations }).store;
}

/** Describes the collections that no declaration covers. */
export function undeclared(store: Writer, collections: StoreStatus['collections']): string[] {
  const meaning = 'no declaration covers it, so its records are only kept; use --collections';
  return store.undeclared(collections).map((name) => `${name}.json: ${meaning}`);
}
