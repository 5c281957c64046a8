import { openData } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import type { StoreStatus } from '../store/store.ts';
import type { Writer } from '../store/writer.ts';

/** Does not start the store. */
export function prepareStore(directory: string, declarations: Partial<Declarations> = {}): Writer {
  return openData({ ...defaultOptions, directory, ...declarations }).store;
}

export function undeclared(store: Writer, collections: StoreStatus['collections']): string[] {
  const meaning = 'no declaration covers it, so its records are only kept; use --collections';
  return store.undeclared(collections).map((name) => `${name}.json: ${meaning}`);
}
