import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { StoredRecord, View } from '../store/store.ts';
import { comparator, first, firstIndex, smallest, sortedOrders } from './list-orders.ts';
import type { Blocks, Compare, Source } from './list-orders.ts';
import { matcher, writeCursor, type ListQuery } from './list-query.ts';

/** A list as it is answered. */
export interface Listing {
  /** A JSON array; a long one comes in pieces, and whoever does not take them all has to call `return`. */
  readonly body: string | AsyncIterable<string>;
  /** The cursor of the next page, if there is one. */
  readonly next: string | undefined;
  /** How many records pass the filters, on this page or not, if that was asked for. */
  readonly total: number | undefined;
}

/**
 * A page that is not found in so many blocks of sorted records is looked for among all records as they lie: to walk an
 * order is to jump about in memory, twenty times as slow.
 */
const walkedBlocksMax = 64;

/** A long body comes in pieces of about this many UTF-16 code units, of so many records' texts at a time. */
const pieceLength = 56 * 1024;
const recordsAtATime = 64;

/**
 * The lists of one source of records, which hold the fields of `shape` under the names that callers know. Each list
 * is of one point in time, and what it does is done in slices: however many records there are, others are served.
 */
export function lister<R extends StoredRecord>(shape: Shape, source: Source<R>, slices: Slices) {
  const orders = sortedOrders(source, slices);

  /** The list of the records as they are in the turn of the loop in which this is called. */
  async function read(query: ListQuery, withTotal: boolean): Promise<Listing> {
    const { after } = query;
    const view = source.view();
    // A short list is one page.
    const limit = query.limit ?? (view.size <= limits.pageRecordsMax ? limits.pageRecordsMax : undefined);
    let closesItself = false;
    try {
      const records = [...view.blocks()];
      const compare = comparator(shape, query.sort);
      const passes = query.filters.length > 0 ? matcher(shape, query.filters) : undefined;
      const write = representationWriter(shape, query.fields);
      const isPast = after && ((record: R): boolean => compare(record, after) > 0);
      const sorted = await sortedBy(query.sort, limit, compare, records);
      const total = withTotal ? await slices.run(count(matching(records, passes))) : undefined;
      const walk = sorted && matching(startingAt(sorted, isPast), passes);
      if (limit === undefined) {
        const body = pieces(walk ?? [], write, view);
        closesItself = true;
        await body.next();
        return { body, next: undefined, total };
      }
      const blocksMax = query.sort[0]?.name === 'id' ? Infinity : walkedBlocksMax;
      const walked = walk && (await slices.run(first(walk, limit + 1, blocksMax)));
      const scan = smallest(matching(matching(records, isPast), passes), limit + 1, compare);
      const found = walked ?? (await slices.run(scan));
      const page = found.slice(0, limit);
      const last = found.length > limit ? page.at(-1) : undefined;
      const next = last && writeCursor(query, last);
      return { body: `[${page.map(write).join(',')}]`, next, total };
    } finally {
      if (!closesItself) view.close();
    }
  }

  /** `records` in order; `undefined` for a page whose order is not at hand. */
  async function sortedBy(sort: ListQuery['sort'], limit: number | undefined, compare: Compare, records: Blocks<R>) {
    const [term] = sort;
    if (term === undefined || term.name === 'id') return { blocks: records, reversed: term?.descending === true };
    const name = JSON.stringify(sort);
    const sorted = limit === undefined ? orders.get(name, compare) : orders.find(name, compare);
    return sorted && { blocks: (await sorted).blocks, reversed: false };
  }

  /** The JSON array of `blocks` in pieces, the first of them empty; closes `view` at the end. */
  async function* pieces(
    blocks: Iterable<readonly R[]>,
    write: (record: R) => string,
    view: View<R>,
  ): AsyncGenerator<string, undefined> {
    try {
      yield '';
      let piece = '[';
      let separator = '';
      for (const block of blocks) {
        for (let start = 0; start < block.length; start += recordsAtATime) {
          const texts = block.slice(start, start + recordsAtATime).map(write);
          piece += `${separator}${texts.join(',')}`;
          separator = ',';
          if (piece.length < pieceLength) continue;
          yield piece;
          piece = '';
        }
        await slices.breathe();
      }
      yield `${piece}]`;
    } finally {
      view.close();
    }
  }

  return read;
}

interface Iterated<R> {
  readonly blocks: Blocks<R>;
  /** Whether they are to be read from the end. */
  readonly reversed: boolean;
}

/** The records in order, from the first one on that `isPast` holds for. */
function* startingAt<R>(
  { blocks, reversed }: Iterated<R>,
  isPast: (record: R) => boolean = () => true,
): Generator<readonly R[], undefined> {
  const inOrder = reversed ? blocks.toReversed() : blocks;
  const start = firstIndex(inOrder, (block) => (reversed ? block.slice(0, 1) : block.slice(-1)).some(isPast));
  for (const block of inOrder.slice(start)) {
    const records = reversed ? block.toReversed() : block;
    yield records.slice(firstIndex(records, isPast));
  }
}

function* matching<R>(
  blocks: Iterable<readonly R[]>,
  passes: ((record: R) => boolean) | undefined,
): Generator<readonly R[], undefined> {
  for (const block of blocks) yield passes === undefined ? block : block.filter(passes);
}

function* count(blocks: Iterable<readonly unknown[]>): Generator<undefined, number> {
  let total = 0;
  for (const block of blocks) {
    total += block.length;
    yield;
  }
  return total;
}
