import { limits } from '../base/limits.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { Collection, StoredRecord } from '../store/store.ts';
import { matcher } from './filters.ts';
import type { ListCaller, ListPool, ListWork } from './list-pool.ts';
import { writeCursor, type ListQuery, type ListSubject } from './list-query.ts';
import { comparator, firstInOrder, sorted, type Block, type Compare, type SortTerm } from './order.ts';

/** The records that are listed. They hold the fields of `shape` under the names that callers know. */
export interface ListSource extends ListSubject {
  readonly records: Pick<Collection<StoredRecord>, 'view'>;
  readonly pool: ListPool;
}

/** A list as it is asked for. */
export interface ListRequest {
  readonly query: ListQuery;
  /** Whether to count all records that pass the filters. */
  readonly withTotal: boolean;
  readonly caller: ListCaller;
}

/** A list as it is answered. */
export interface List {
  /** A JSON array. A long one comes in pieces; a reader that does not take all of them has to call `return`. */
  readonly body: string | AsyncIterable<string>;
  /** The cursor of the next page, if there is one. */
  readonly next?: string | undefined;
  /** The cursor with which the page before ends (`until`), if there is one and this page was asked for in that way. */
  readonly previous?: string | undefined;
  /** The number of records that pass the filters, on this page or not, if it was asked for. */
  readonly total: number | undefined;
}

type Test = (record: StoredRecord) => boolean;

/** So many records are looked at between two pauses; a search in long texts takes 0.1 ms for each of them. */
const stepLength = 64;

/** A page that is found in so many steps needs no place in the pool, and neither does a list of no more records. */
const freeSteps = 128;

/** A long body comes in pieces of about this many UTF-16 code units. */
const pieceLength = 56 * 1024;

/**
 * Makes a list of the records as they are in the turn of the event loop in which this is called. It is made in slices,
 * so that other requests are served however many records there are.
 * @throws CairnError `overloaded` with `retryAfterSeconds`; `draining`
 */
export async function readList({ shape, records, pool }: ListSource, request: ListRequest): Promise<List> {
  const { query, withTotal, caller } = request;
  const { size, blocks } = records.view();
  const { limit = size <= limits.pageRecordsMax ? limits.pageRecordsMax : Infinity } = query;
  const isFree = size <= freeSteps * stepLength;
  const work = pool.begin(caller, isFree ? Infinity : limit === Infinity ? 0 : freeSteps);
  let isStreamed = false;
  try {
    const passes = matcher(shape, query.filters);
    const write = representationWriter(shape, query.fields);
    const counted = () => (query.filters.length === 0 ? size : countOf(blocks, passes, work));
    const total = withTotal ? await counted() : undefined;
    const found = inOrder(blocks, passes, routeOf(shape, query), limit + 1, work);
    if (limit === Infinity) {
      const body = pieces(found, write, work);
      // From its first step on, the generator ends the work itself.
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
    if (query.until !== undefined) shown.reverse();
    const body = `[${shown.map(write).join(',')}]`;
    if (page.length <= limit) return { body, total };
    // The record behind a page that was made from its end is the one before it.
    const last = page[query.until === undefined ? limit - 1 : limit];
    const cursor = last && writeCursor(query, last);
    return query.until === undefined ? { body, next: cursor, total } : { body, previous: cursor, total };
  } finally {
    if (!isStreamed) work.end();
  }
}

async function countOf(blocks: readonly Block[], passes: Test, work: ListWork): Promise<number> {
  let count = 0;
  for await (const block of matching(blocks, passes, work)) count += block.length;
  return count;
}

/** How a list goes through its records: in this order, and from the first one on for which `isPast` holds. */
interface Route {
  readonly sort: readonly SortTerm[];
  readonly compare: Compare;
  readonly isPast: Test;
}

/** A page that has an end is made from there, in the reverse order. */
function routeOf(shape: Shape, { sort, after, until }: ListQuery): Route {
  if (until === undefined) {
    const compare = comparator(shape, sort);
    return { sort, compare, isPast: (record) => after === undefined || compare(record, after) > 0 };
  }
  const reversed = sort.map(({ name, descending }) => ({ name, descending: !descending }));
  const compare = comparator(shape, reversed);
  return { sort: reversed, compare, isPast: (record) => until === 'end' || compare(record, until) >= 0 };
}

/** The records that pass, on their route: all of them, or at least `wanted`. */
async function* inOrder(
  blocks: readonly Block[],
  passes: Test,
  { sort: [first], compare, isPast }: Route,
  wanted: number,
  work: ListWork,
): AsyncGenerator<Block> {
  if (first?.name === 'id') {
    yield* matching(startingAt(blocks, first.descending, isPast), passes, work);
    return;
  }
  const candidates = matching(scattered(blocks), (record) => isPast(record) && passes(record), work);
  if (wanted === Infinity) yield* sorted(candidates, compare);
  else yield await firstInOrder(candidates, wanted, compare);
}

/** The records that pass, step by step. */
async function* matching(blocks: Iterable<Block>, passes: Test, work: ListWork): AsyncGenerator<Block> {
  for (const block of blocks) {
    for (let start = 0; start < block.length; start += stepLength) {
      yield block.slice(start, start + stepLength).filter(passes);
      await work.pause();
    }
  }
}

/** The records in order of id, or `reversed`, from the first one on for which `isPast` holds. */
function* startingAt(blocks: readonly Block[], reversed: boolean, isPast: Test): Generator<Block> {
  for (const block of reversed ? blocks.toReversed() : blocks) {
    const last = block.at(reversed ? 0 : -1);
    if (last === undefined || !isPast(last)) continue;
    const records = block.filter(isPast);
    yield reversed ? records.reverse() : records;
  }
}

/**
 * The same blocks in another order. Values often grow with the ids; a search for the largest ones would then find still
 * larger ones in each block, and sort nearly all records.
 */
function scattered(blocks: readonly Block[]): Block[] {
  const stride = 32;
  return Array.from({ length: stride }, (_, start) => blocks.filter((_, index) => index % stride === start)).flat();
}

/** Writes the JSON array of `blocks` in pieces, after an empty one. It ends the work however it is left. */
async function* pieces(blocks: AsyncIterable<Block>, write: (record: StoredRecord) => string, work: ListWork) {
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
