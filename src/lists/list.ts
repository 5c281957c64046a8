import { limits } from '../base/limits.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { Collection, StoredRecord } from '../store/store.ts';
import { matcher } from './filters.ts';
import type { ListCaller, ListPool, ListWork } from './list-pool.ts';
import { writeCursor, type ListQuery, type ListSubject } from './list-query.ts';
import {
  comparator,
  firstInOrder,
  sorted,
  type Block,
  type Compare,
  type SortTerm,
} from './order.ts';

/** The records to list. They have the fields of `shape`. */
export interface ListSource extends ListSubject {
  readonly records: Pick<Collection<StoredRecord>, 'view'>;
  readonly pool: ListPool;
}

/** A request for a list. */
export interface ListRequest {
  readonly query: ListQuery;
  /** Whether to count all records that pass the filters. */
  readonly withTotal: boolean;
  readonly caller: ListCaller;
}

/** A list in response to a request. */
export interface List {
  /**
   * A JSON array. A long one comes in pieces; a reader that stops early must call
   * `return`.
   */
  readonly body: string | AsyncIterable<string>;
  /** Cursor of the next page, if there is one. */
  readonly next?: string | undefined;
  /**
   * Cursor at which the previous page ends, if there is one and the query has `until`.
   */
  readonly previous?: string | undefined;
  /**
   * The number of records that pass the filters, on all pages, if the request asks for
   * it.
   */
  readonly total: number | undefined;
}

type Test = (record: StoredRecord) => boolean;

/** Records tested between two pauses. A search takes 0.1 ms for each long text. */
const stepLength = 64;

/**
 * Steps that need no place in the pool: for a page found early, or a small collection.
 */
const freeSteps = 128;

/** The approximate length of a piece of a long body, in UTF-16 code units. */
const pieceLength = 56 * 1024;

/**
 * Reads a list of the records as they are when this is called. It works in slices, so
 * that other requests are served however many records there are.
 * @throws CairnError `overloaded` with `retryAfterSeconds`; `draining`
 */
export async function readList(
  { shape, records, pool }: ListSource,
  { query, withTotal, caller }: ListRequest,
): Promise<List> {
  const { size, blocks } = records.view();
  const isReversed = query.until !== undefined;
  const { limit = size <= limits.pageRecordsMax ? limits.pageRecordsMax : Infinity } = query;
  const isFree = size <= freeSteps * stepLength;
  const work = pool.begin(caller, isFree ? Infinity : limit === Infinity ? 0 : freeSteps);
  let isStreamed = false;
  try {
    const passes = matcher(shape, query.filters);
    const write = representationWriter(shape, query.fields);
    const counted = () => (query.filters.length === 0 ? size : countOf(blocks, passes, work));
    const total = withTotal ? await counted() : undefined;
    const found = inOrder(blocks, shape, query, passes, limit + 1, work);
    if (limit === Infinity) {
      const body = pieces(found, write, work);
      // After its first step, the generator ends the work itself.
      await body.next();
      isStreamed = true;
      return { body, total };
    }
    const page: StoredRecord[] = [];
    for await (const block of found) {
      page.push(...block);
      if (page.length > limit) break;
    }
    const shown = page.slice(0, limit);
    if (isReversed) shown.reverse();
    const body = `[${shown.map(write).join(',')}]`;
    // The last record of this page, or in reverse the record before the page.
    const last = page.length > limit ? page[isReversed ? limit : limit - 1] : undefined;
    const cursor = last && writeCursor(query, last);
    return isReversed ? { body, total, previous: cursor } : { body, total, next: cursor };
  } finally {
    if (!isStreamed) work.end();
  }
}

async function countOf(blocks: readonly Block[], passes: Test, work: ListWork): Promise<number> {
  let count = 0;
  for await (const block of matching(blocks, passes, work)) count += block.length;
  return count;
}

/**
 * Yields the records that pass, in the order of the query: all of them, or at least
 * `wanted`. A page with `until` is read from its end, in reverse order.
 */
async function* inOrder(
  blocks: readonly Block[],
  shape: Shape,
  { sort, after, until }: ListQuery,
  passes: Test,
  wanted: number,
  work: ListWork,
): AsyncGenerator<Block> {
  const isReversed = until !== undefined;
  const reverse = (term: SortTerm) => ({ ...term, descending: !term.descending });
  const order = isReversed ? sort.map(reverse) : sort;
  const compare = comparator(shape, order);
  const start = until === 'end' ? undefined : (until ?? after);
  // A page contains the record at which it ends, but not the one after which it starts.
  const least = isReversed ? 0 : 1;
  const isPast: Test = (record) => start === undefined || compare(record, start) >= least;
  const [first] = order;
  if (first?.name === 'id') {
    yield* matching(startingAt(blocks, first.descending, isPast), passes, work);
    return;
  }
  const ordered = await sortedView(blocks, order, compare, work);
  if (ordered !== undefined) {
    yield* matching(startingAt(ordered, false, isPast), passes, work);
    return;
  }
  const isMatch: Test = (record) => isPast(record) && passes(record);
  const candidates = matching(scattered(blocks), isMatch, work);
  if (wanted === Infinity) yield* sorted(candidates, compare);
  else yield await firstInOrder(candidates, wanted, compare);
}

interface SortedView {
  readonly order: string;
  /** All records in this order, once they are sorted. */
  blocks?: readonly Block[];
  isSorting?: boolean;
}

/** The latest order of each view. A view is the same array until a record changes. */
const sortedViews = new WeakMap<readonly Block[], SortedView>();

/**
 * Returns all records of a view in an order, or `undefined` where they are not sorted. The
 * second list in an order sorts them for those that follow.
 */
async function sortedView(
  blocks: readonly Block[],
  order: readonly SortTerm[],
  compare: Compare,
  work: ListWork,
): Promise<readonly Block[] | undefined> {
  const size = blocks.reduce((sum, block) => sum + block.length, 0);
  if (size > limits.sortedViewRecordsMax) return undefined;
  const text = JSON.stringify(order);
  const view = sortedViews.get(blocks);
  if (view?.order !== text) {
    sortedViews.set(blocks, { order: text });
    return undefined;
  }
  if (view.blocks !== undefined || view.isSorting) return view.blocks;
  view.isSorting = true;
  try {
    const inOrder: Block[] = [];
    for await (const block of sorted(
      matching(blocks, () => true, work),
      compare,
    )) {
      inOrder.push(block);
      await work.pause();
    }
    view.blocks = inOrder;
  } finally {
    view.isSorting = false;
  }
  return view.blocks;
}

/** Yields the records that pass, step by step. */
async function* matching(
  blocks: Iterable<Block>,
  passes: Test,
  work: ListWork,
): AsyncGenerator<Block> {
  for (const block of blocks) {
    for (let start = 0; start < block.length; start += stepLength) {
      yield block.slice(start, start + stepLength).filter(passes);
      await work.pause();
    }
  }
}

/**
 * Yields the records of blocks in an order, or in its reverse, from the first for which
 * `isPast` holds.
 */
function* startingAt(blocks: readonly Block[], reversed: boolean, isPast: Test): Generator<Block> {
  for (const block of reversed ? blocks.toReversed() : blocks) {
    const last = block.at(reversed ? 0 : -1);
    if (last === undefined || !isPast(last)) continue;
    const records = block.filter(isPast);
    yield reversed ? records.reverse() : records;
  }
}

/**
 * Returns the blocks in another order. Values often grow with the ids: a search for the
 * largest values would then find larger ones in each block, and sort nearly all records.
 */
function scattered(blocks: readonly Block[]): Block[] {
  const stride = 32;
  return Array.from({ length: stride }, (_, start) =>
    blocks.filter((_, index) => index % stride === start),
  ).flat();
}

/**
 * Yields the JSON array of `blocks` in pieces, after an empty one. Always ends the work.
 */
async function* pieces(
  blocks: AsyncIterable<Block>,
  write: (record: StoredRecord) => string,
  work: ListWork,
) {
  try {
    yield '';
    let piece = '[';
    let separator = '';
    for await (const block of blocks) {
      for (const record of block) {
        piece += `${separator}${write(record)}`;
        separator = ',';
        if (piece.length < pieceLength) continue;
        yield piece;
        piece = '';
        await work.pause();
      }
    }
    yield `${piece}]`;
  } finally {
    work.end();
  }
}
