import { invariant } from '../base/invariant.ts';
import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/representation.ts';
import type { StoredRecord, View } from '../store/store.ts';
import { SortedOrders, presenceIn } from './list-orders.ts';
import type { OpenView, Source } from './list-orders.ts';
import { writeCursor } from './list-query.ts';
import type { ListQuery, Position } from './list-query.ts';
import { countOf, first, firstIndex, firstPlace, merge, smallest, sort } from './list-sort.ts';
import type { Blocks, Order } from './list-sort.ts';
import { matcher, orderingOf } from './list-values.ts';

/** A list as it is answered. */
export interface Listing {
  /** The revision of the collection that it shows. */
  readonly revision: number;
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

/** Pieces of about this many UTF-16 code units make up a long body. */
const pieceLength = 64 * 1024;

/**
 * The lists of one source of records, which hold the fields of `shape` under the names that callers know. Each list
 * is of one point in time, and what it does is done in slices: however many records there are, others are served.
 */
export class Lists<R extends StoredRecord> {
  readonly #shape: Shape;
  readonly #source: Source<R>;
  readonly #slices: Slices;
  readonly #orders: SortedOrders<R>;

  constructor(shape: Shape, source: Source<R>, slices: Slices) {
    this.#shape = shape;
    this.#source = source;
    this.#slices = slices;
    this.#orders = new SortedOrders(source, slices);
  }

  /** The list of the records as they are in the turn of the loop in which this is called. */
  async read(query: ListQuery, withTotal: boolean): Promise<Listing> {
    const view = this.#source.view();
    let closesItself = false;
    try {
      const open = { view, blocks: [...view.blocks()] };
      const { revision } = view;
      const ordering = orderingOf(this.#shape, query.sort);
      const passes = matcher(this.#shape, query.filters);
      const write = representationWriter(this.#shape, query.fields);
      const isPast = (record: R): boolean => query.after === undefined || ordering.compareTo(record, query.after) > 0;
      const sorted = await this.#sorted(query, ordering, isPast, open);
      const total = withTotal ? await this.#slices.run(count(matching(open.blocks, passes))) : undefined;
      if (query.limit === undefined) {
        invariant(sorted !== undefined, 'a list without a limit is sorted as a whole');
        closesItself = true;
        const body = await joinedIfShort(this.#pieces(view, matching(sorted, passes), write));
        return { revision, body, next: undefined, total };
      }
      const wanted = query.limit + 1;
      const walk = sorted && first(matching(sorted, passes), wanted, walkedBlocksMax);
      const scan = smallest(matching(matching(open.blocks, isPast), passes), wanted, ordering.compare);
      const records = (walk && (await this.#slices.run(walk))) ?? (await this.#slices.run(scan));
      const page = records.slice(0, query.limit);
      const last = records.length > page.length ? page.at(-1) : undefined;
      const next = last === undefined ? undefined : writeCursor(query, ordering.positionOf(last));
      return { revision, body: `[${page.map(write).join(',')}]`, next, total };
    } finally {
      if (!closesItself) view.close();
    }
  }

  /** The records after `query.after` in order; `undefined` for a page whose order is not at hand. */
  async #sorted(
    query: ListQuery,
    order: Order<R>,
    isPast: (record: R) => boolean,
    open: OpenView<R>,
  ): Promise<Iterable<readonly R[]> | undefined> {
    const [term] = query.sort;
    if (term === undefined || term.name === 'id') return byId(open.blocks, term?.descending ?? false, query.after);
    if (open.view.size < limits.sortedOrderRecordsMin) {
      if (query.limit !== undefined) return undefined;
      const records = await this.#slices.run(sort(open.blocks, order));
      return merge(records, [], order.compare, firstPlace(records, isPast));
    }
    const name = JSON.stringify(query.sort);
    const sorted = query.limit === undefined ? await this.#orders.get(name, order) : this.#orders.find(name, order);
    if (sorted === undefined) return undefined;
    const { base, recent } = await this.#orders.catchUp(name, sorted, open);
    const merged = merge(base, recent, order.compare, firstPlace(base, isPast), firstPlace(recent, isPast));
    const allPresent = countOf(base) + countOf(recent) === open.view.size;
    return allPresent ? merged : matching(merged, presenceIn(open.blocks));
  }

  /** The JSON array of `blocks` in pieces; closes `view` at the end. */
  async *#pieces(
    view: View<R>,
    blocks: Iterable<readonly R[]>,
    write: (record: R) => string,
  ): AsyncGenerator<string, undefined> {
    try {
      let piece = '[';
      let separator = '';
      for (const block of blocks) {
        for (const record of block) {
          piece += separator + write(record);
          separator = ',';
          if (piece.length < pieceLength) continue;
          yield piece;
          piece = '';
        }
        await this.#slices.breathe();
      }
      yield `${piece}]`;
    } finally {
      view.close();
    }
  }
}

/** The records of `blocks` by id, beginning after a position. */
function* byId<R extends StoredRecord>(
  blocks: Blocks<R>,
  descending: boolean,
  after: Position | undefined,
): Generator<readonly R[], undefined> {
  const position = typeof after?.[0] === 'number' ? after[0] : undefined;
  if (descending) {
    const end = position ?? Infinity;
    const blockEnd = firstIndex(blocks, ([record]) => record !== undefined && record.id >= end);
    for (const block of blocks.slice(0, blockEnd).reverse()) yield block.filter(({ id }) => id < end).reverse();
  } else {
    const start = position ?? 0;
    const blockStart = firstIndex(blocks, (block) => (block.at(-1)?.id ?? 0) > start);
    for (const block of blocks.slice(blockStart)) yield block.filter(({ id }) => id > start);
  }
}

function* matching<R>(
  blocks: Iterable<readonly R[]>,
  passes: (record: R) => boolean,
): Generator<readonly R[], undefined> {
  for (const block of blocks) yield block.filter(passes);
}

function* count(blocks: Iterable<readonly unknown[]>): Generator<undefined, number> {
  let total = 0;
  for (const block of blocks) {
    total += block.length;
    yield;
  }
  return total;
}

/** The one piece of a short text, or a stream that begins with the pieces that were looked at. */
async function joinedIfShort(pieces: AsyncGenerator<string, undefined>): Promise<string | AsyncIterable<string>> {
  const piece = await pieces.next();
  invariant(piece.done !== true, 'a text has a piece');
  const another = await pieces.next();
  if (another.done === true) return piece.value;
  const taken = [piece, another];
  const iterator: AsyncIterableIterator<string> = {
    next: async () => taken.shift() ?? pieces.next(),
    return: () => pieces.return(undefined),
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
