import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Breathe } from '../base/slices.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { StoredRecord } from '../store/store.ts';
import {
  comparator, createRoom, firstIndex, sortedOrders, type Blocks, type Compare, type Source,
} from './list-orders.ts';
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

type Test<R> = (record: R) => boolean;

/**
 * The lists of one source of records, which hold the fields of `shape` under the names that callers know. Each list
 * is of one point in time, and what it does is done in slices: however many records there are, others are served.
 */
export function lister<R extends StoredRecord>(
  shape: Shape,
  source: Source<R>,
  breathe: Breathe,
  recordsMax: number = limits.listedRecordsMax,
) {
  const take = createRoom(recordsMax);
  const sortedBy = sortedOrders(source, breathe, take);

  /**
   * The list of the records as they are in the turn of the loop in which this is called.
   * @throws CairnError `overloaded` with `retryAfterSeconds`
   */
  async function read(query: ListQuery, withTotal: boolean): Promise<Listing> {
    const { sort, after } = query;
    const view = source.view();
    // A short list is one page.
    const limit = query.limit ?? (view.size <= limits.pageRecordsMax ? limits.pageRecordsMax : Infinity);
    const records = view.blocks;
    const compare = comparator(shape, sort);
    const passes = query.filters.length > 0 ? matcher(shape, query.filters) : undefined;
    const write = representationWriter(shape, query.fields);
    const isPast = after && ((record: R): boolean => compare(record, after) > 0);
    const byId = sort[0]?.name === 'id';
    const sorted = byId ? records : await sortedBy(JSON.stringify(sort), compare, limit < Infinity);
    const walk = matching(startingAt(sorted ?? [], byId && sort[0]?.descending, isPast), passes);
    const body = limit < Infinity ? undefined : pieces(sorted, walk, write);
    if (body !== undefined) await body.next();
    const total = withTotal ? await count(matching(records, passes)) : undefined;
    if (body !== undefined) return { body, next: undefined, total };
    const walked = sorted && (await first(walk, limit + 1, byId ? Infinity : walkedBlocksMax));
    const found = walked ?? (await smallest(matching(matching(records, isPast), passes), limit + 1, compare));
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    const next = last && writeCursor(query, last);
    return { body: `[${page.map(write).join(',')}]`, next, total };
  }

  /** The JSON array of what is walked of `blocks`, in pieces. The first is empty, and with it there is room for all. */
  async function* pieces(blocks: Blocks<R> | undefined, walk: Iterable<readonly R[]>, write: (record: R) => string) {
    const release = blocks && take(blocks);
    if (release === undefined) throw tooManyLists;
    try {
      yield '';
      let piece = '[';
      let separator = '';
      for (const block of walk) {
        for (let start = 0; start < block.length; start += recordsAtATime) {
          const texts = block.slice(start, start + recordsAtATime).map(write);
          piece += `${separator}${texts.join(',')}`;
          separator = ',';
          if (piece.length < pieceLength) continue;
          yield piece;
          piece = '';
        }
        await breathe();
      }
      yield `${piece}]`;
    } finally {
      release();
    }
  }

  async function count(blocks: Iterable<readonly R[]>): Promise<number> {
    let total = 0;
    for (const block of blocks) {
      total += block.length;
      await breathe();
    }
    return total;
  }

  /** The first `wanted` records of `blocks` as they come; `undefined` if `blocksMax` blocks do not have so many. */
  async function first(blocks: Iterable<readonly R[]>, wanted: number, blocksMax: number): Promise<R[] | undefined> {
    const records: R[] = [];
    let looked = 0;
    for (const block of blocks) {
      if (looked === blocksMax) return undefined;
      records.push(...block.slice(0, wanted - records.length));
      if (records.length === wanted) break;
      looked += 1;
      await breathe();
    }
    return records;
  }

  /** The first `wanted` records of `blocks` in sorted order, in memory for them and one block. */
  async function smallest(blocks: Iterable<readonly R[]>, wanted: number, compare: Compare): Promise<R[]> {
    let best: R[] = [];
    for (const block of blocks) {
      const last = best.length === wanted ? best.at(-1) : undefined;
      const candidates = last === undefined ? block : block.filter((record) => compare(record, last) < 0);
      if (candidates.length > 0) best = [...best, ...candidates].sort(compare).slice(0, wanted);
      await breathe();
    }
    return best;
  }

  return read;
}

const tooManyLists = new CairnError('overloaded', 'Cannot make the list: too many long ones are being sent', {
  retryAfterSeconds: 5,
});

/** The records in order, `reversed` from the last one, but only from the first one on that `isPast` holds for. */
function* startingAt<R>(blocks: Blocks<R>, reversed = false, isPast: Test<R> = () => true) {
  const inOrder = reversed ? blocks.toReversed() : blocks;
  const start = firstIndex(inOrder, (block) => (reversed ? block.slice(0, 1) : block.slice(-1)).some(isPast));
  for (const block of inOrder.slice(start)) {
    const records = reversed ? block.toReversed() : block;
    yield records.slice(firstIndex(records, isPast));
  }
}

function* matching<R>(blocks: Iterable<readonly R[]>, passes: Test<R> | undefined) {
  for (const block of blocks) yield passes === undefined ? block : block.filter(passes);
}
