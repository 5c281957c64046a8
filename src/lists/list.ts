import { limits } from '../base/limits.ts';
import type { JsonValue } from '../base/json.ts';
import { atOnce } from '../base/turns.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import { referenceIn, type Shape } from '../schema/field.ts';
import { lastTermOf, representationWriter, type Write } from '../schema/record.ts';
import type { Collection, From, StoredRecord } from '../store/store.ts';
import { onlyCondition, rangeOf, searcher, type Filter, type Range, type Test } from './filters.ts';
import { finish, type Caller, type ListPool, type ListWork } from './list-pool.ts';
import { writeCursor, type ListQuery } from './query.ts';
import {
  comparator,
  firstInOrder,
  sorted,
  type Block,
  type Compare,
  type SortTerm,
} from './order.ts';
import {
  blockLengthMax,
  placeOf,
  skip,
  stepsThrough,
  wholeOf,
  type Direction,
  type Stretch,
} from './sorted-blocks.ts';

/** What a list is made of. */
interface ListSource {
  readonly fields: Shape;
  readonly records: Collection<StoredRecord>;
  readonly pool: ListPool;
}

/** Returns the JSON of a record in pieces. */
export type PieceWriter = (record: StoredRecord) => Iterable<string>;

/** What a caller may see of the records. */
interface ListReader {
  /** What the test depends on. */
  readonly key: string;
  /** Absent: the caller sees all. */
  readonly test?: Test | undefined;
  /** The records that are seen, by ascending id, where indexes have at most `most` of them. */
  found(most: number): Block | undefined;
  /** The first `most` that are seen from an id on, by ascending id, where an index has them. */
  foundFrom(place: From, most: number): Block | undefined;
  /** Whether records of a block may be seen. */
  mayBeIn(block: Block): boolean;
}

/** A request for a list. */
interface ListRequest {
  readonly query: ListQuery;
  /** What the caller may see of the records. Absent: all. */
  readonly reader?: ListReader | undefined;
  /** Whether to count all records that pass the filters. */
  readonly withTotal: boolean;
  readonly caller: Caller;
  /** Writes records with what is embedded in them. Absent: nothing is embedded. */
  readonly embed?: PieceWriter | undefined;
  /** Returns what tells versions of a record's embedded ones apart. Absent: a page has no marks. */
  readonly markOf?: ((record: StoredRecord) => unknown) | undefined;
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
  /** What tells versions of a page's records apart, as they were before they were written. */
  readonly marks?: readonly unknown[] | undefined;
}

/** The approximate length of a piece of a long body, in UTF-16 code units. */
const pieceLength = 56 * 1024;

/**
 * Reads a list of the records as they are when this is called. A page that is found at once
 * is returned at once. All else is made in slices, so that other requests are served however
 * many records there are.
 * @throws CairnError `overloaded` with `retryAfterSeconds`; `draining`
 */
export function readList(source: ListSource, request: ListRequest): List | Promise<List> {
  const { records, pool } = source;
  const isShort = records.size <= limits.pageRecordsMax;
  const limit = request.query.limit ?? (isShort ? limits.pageRecordsMax : undefined);
  return limit === undefined
    ? readWhole(source, request)
    : pool.makePage(request.caller, page(source, request, limit));
}

async function readWhole(source: ListSource, request: ListRequest): Promise<List> {
  const work = source.pool.begin(request.caller);
  try {
    const selection = new Selection(source, request);
    const total = request.withTotal ? await finish(selection.count(), work) : undefined;
    const pieces = jsonPieces(selection.inOrder(Infinity), writerOf(source, request));
    return { body: new StreamedJson(pieces, work), total };
  } catch (error) {
    work.end();
    throw error;
  }
}

/**
 * Reads one record with what is embedded in it, in the bounds of a list.
 * @throws CairnError `overloaded` with `retryAfterSeconds`; `draining`
 */
export function readRecord(
  pool: ListPool,
  record: StoredRecord,
  request: Pick<ListRequest, 'caller'> & { readonly embed: PieceWriter },
): List['body'] {
  return atOnce(bodyOf(jsonPieces([[record]], request.embed, '', ''), pool, request));
}

const writerOf = ({ fields }: ListSource, { query, embed }: ListRequest) =>
  embed ?? representationWriter(fields, query.fields);

/** The records of a page, and its neighbours. */
export interface Page extends Pick<List, 'next' | 'previous' | 'total'> {
  readonly records: readonly StoredRecord[];
}

/**
 * Finds the records of a page, as `readList` does. @throws CairnError as `readList`
 */
export function findPage(
  source: ListSource,
  request: Pick<ListRequest, 'query' | 'withTotal' | 'caller' | 'reader'>,
  limit: number,
): Page | Promise<Page> {
  return source.pool.makePage(request.caller, pageOf(source, request, limit));
}

/** Makes a page in steps. */
function* page(
  source: ListSource,
  request: ListRequest,
  limit: number,
): Generator<void, List, void> {
  const { records, ...place } = yield* pageOf(source, request, limit);
  const { markOf } = request;
  const marks: unknown[] = [];
  for (const record of markOf === undefined ? [] : records) {
    marks.push(markOf?.(record));
    if (request.embed !== undefined) yield;
  }
  const pieces = jsonPieces([records], writerOf(source, request));
  return { body: yield* bodyOf(pieces, source.pool, request), marks, ...place };
}

/** Finds the records of a page in steps. */
function* pageOf(
  source: ListSource,
  request: Pick<ListRequest, 'query' | 'withTotal' | 'reader'>,
  limit: number,
): Generator<void, Page, void> {
  const { query, withTotal } = request;
  const { offset = 0 } = query;
  const selection = new Selection(source, request, withTotal ? undefined : offset + limit + 1);
  const total = withTotal ? yield* totalOf(source, request, selection) : undefined;
  // Where no record is tested, the selection skips them at once.
  let before = selection.isFoundAtOnce ? 0 : offset;
  const found: Block[number][] = [];
  for (const block of selection.inOrder(offset + limit + 1)) {
    if (before === 0) found.push(...block);
    else found.push(...block.slice(before));
    before = Math.max(0, before - block.length);
    if (found.length > limit) break;
    if (!selection.isFoundAtOnce) yield;
  }
  const shown = found.slice(0, limit);
  const isReversed = query.until !== undefined;
  if (isReversed) shown.reverse();
  // The last record of this page, or in reverse the record before the page.
  const last = found.length > limit ? found[isReversed ? limit : limit - 1] : undefined;
  const cursor = last && writeCursor(source.fields, query, last);
  return isReversed
    ? { records: shown, total, previous: cursor }
    : { records: shown, total, next: cursor };
}

/** Counts the records that pass, once for a state of the collection and what the caller sees. */
function* totalOf(
  { records, pool }: ListSource,
  { query: { filters }, reader }: Pick<ListRequest, 'query' | 'reader'>,
  selection: Selection,
): Generator<void, number> {
  const key = JSON.stringify([records.name, records.revision, filters, reader?.key]);
  const known = pool.totals.get(key);
  if (known !== undefined) return known;
  const total = yield* selection.count();
  pool.totals.set(key, total);
  const [oldest = key] = pool.totals.keys();
  if (pool.totals.size > limits.totalsKeptMax) pool.totals.delete(oldest);
  return total;
}

/**
 * Returns the records that a filter by ids or references leaves, by ascending id; `undefined`
 * without such a filter, and where its index has many.
 */
function indexedRecords(
  records: Collection<StoredRecord>,
  shape: Shape,
  filters: readonly Filter[],
): readonly Block[] | undefined {
  for (const filter of filters) {
    const { name = '', operator = 'ne', operands = [] } = onlyCondition(filter) ?? {};
    const field = shape[name];
    const isIndexed = name === 'id' || (field !== undefined && referenceIn(field) !== undefined);
    if (!isIndexed || !indexedOperators.has(operator)) continue;
    const ids = [...new Set(operands.map(recordId))];
    const found = name === 'id' ? withIds(records, ids) : referringTo(records, name, ids);
    if (found !== undefined) return inBlocks(found);
  }
  return undefined;
}

const inBlocks = (records: Block): readonly Block[] =>
  Array.from({ length: Math.ceil(records.length / blockLengthMax) }, (_, index) =>
    records.slice(index * blockLengthMax, (index + 1) * blockLengthMax),
  );

const indexedOperators: ReadonlySet<string> = new Set(['eq', 'in', 'has']);

function withIds(records: Collection<StoredRecord>, ids: readonly RecordId[]): Block {
  const found = new Set(ids.flatMap((id) => records.withId(id) ?? []));
  return [...found].sort((a, b) => a.id - b.id);
}

function referringTo(
  records: Collection<StoredRecord>,
  name: string,
  ids: readonly RecordId[],
): Block | undefined {
  let count = 0;
  for (const id of ids) count += records.countAtMost(name, id);
  if (count > limits.indexedRecordsMax) return undefined;
  const found = ids.flatMap((id) => records.members(name, id));
  return ids.length === 1 ? found : found.sort((a, b) => a.id - b.id);
}

/** How a list is read in an order with a first field that ascends. */
interface Reading {
  readonly direction: Direction;
  /** What a record compares with the place of the cursor at least, to be behind it. */
  readonly behind: 0 | 1;
}

/**
 * A page after a record does not contain it; one that ends with a record does, and is read from
 * its end. Where the query descends, all is reversed. Without a place, lists are read as `after`.
 */
// prettier-ignore
const readings = {
  after: {
    ascending: { direction: 'forwards', behind: 1 }, descending: { direction: 'backwards', behind: 0 },
  },
  until: {
    ascending: { direction: 'backwards', behind: 1 }, descending: { direction: 'forwards', behind: 0 },
  },
} as const satisfies Record<string, Record<string, Reading>>;

/** Returns where an order by number begins behind a place, or before it; without one, at an end. */
function fromOf(direction: Direction, place: JsonValue | undefined): From {
  const isDown = direction === 'backwards';
  return { id: typeof place === 'number' ? place : isDown ? Infinity : 0, isDown };
}

/** The records that a query selects at this moment, and the way to them. */
class Selection {
  /** Whether the caller may see a record; `undefined` where all that are read are seen. */
  readonly #isSeen: Test | undefined;
  /** The filters; `undefined` without any that are still to be asked. */
  readonly #search: ReturnType<typeof searcher> | undefined;
  /** An order that begins with an ascending field: that of the query, or its reverse. */
  readonly #compare: Compare;
  /** Whether the records are read in that order, or from its end. */
  readonly #direction: Direction;
  /** All records, in that order if it is kept. */
  readonly #blocks: readonly Block[];
  readonly #isOrdered: boolean;
  /** What the filters leave of that order. */
  readonly #range: Range;
  /** Whether a record is behind the place of the cursor, in that order. */
  readonly #isPast: Test | undefined;
  readonly #offset: number;
  readonly #isPassedOver: (block: Block) => boolean;

  /** `wanted`: of how many records a page is made at most; absent where all are read. */
  constructor(
    { fields: shape, records, pool }: ListSource,
    {
      query: { sort, filters, after, until, offset = 0 },
      reader,
    }: Pick<ListRequest, 'query' | 'reader'>,
    wanted?: number,
  ) {
    const isDescending = sort[0]?.descending === true;
    const reverse = ({ name, descending }: SortTerm) => ({ name, descending: !descending });
    const order = isDescending ? sort.map(reverse) : sort;
    const byNumber = lastTermOf(shape);
    const name = order[0]?.name ?? byNumber;
    const compare = comparator(shape, order);
    const isByNumber = name === byNumber;
    const { direction, behind }: Reading =
      readings[until === undefined ? 'after' : 'until'][isDescending ? 'descending' : 'ascending'];
    const place = until === 'end' ? undefined : (until ?? after);
    // Their number tells the time that this takes, not that of records which others see.
    const isPage = wanted !== undefined && isByNumber && filters.length === 0;
    let own =
      (isPage ? reader?.foundFrom(fromOf(direction, place?.[byNumber]), wanted + 1) : undefined) ??
      reader?.found(limits.pageRecordsMax);
    let indexed = own ? inBlocks(own) : indexedRecords(records, shape, filters);
    const kept =
      isByNumber || indexed !== undefined ? undefined : pool.orders.find(records, order, compare);
    // A page of a kept order passes over what others have. Else even many are looked up.
    if (indexed === undefined && (kept === undefined || wanted === undefined)) {
      own = reader?.found(limits.indexedRecordsMax);
      indexed = own && inBlocks(own);
    }
    // The index has answered the only filter.
    const isAnswered = own === undefined && indexed !== undefined && filters.length === 1;
    const others = isAnswered ? [] : filters;
    this.#isSeen = own ? undefined : reader?.test;
    this.#search = others.length === 0 ? undefined : searcher(shape, others);
    this.#compare = compare;
    this.#direction = direction;
    this.#blocks = indexed ?? kept ?? records.view().blocks;
    this.#isOrdered = isByNumber || (indexed === undefined && kept !== undefined);
    this.#range = rangeOf(shape, filters, name);
    this.#isPast = place && ((record) => compare(record, place) >= behind);
    this.#offset = offset;
    this.#isPassedOver = (block) => own === undefined && reader?.mayBeIn(block) === false;
  }

  /** Whether no record is read that the list does not show; those before the page are skipped. */
  get isFoundAtOnce(): boolean {
    return this.#isOrdered && this.#isAll;
  }

  /** Whether no record has to be tested. */
  get #isAll(): boolean {
    return this.#isSeen === undefined && this.#search === undefined;
  }

  /** Counts the records that pass the filters, wherever the page starts. */
  *count(): Generator<void, number> {
    let count = 0;
    if (this.#isAll) {
      for (const { length } of this.#blocks) count += length;
      return count;
    }
    for (const block of this.#passing(this.#between(), 'forwards')) {
      count += block.length;
      yield;
    }
    return count;
  }

  /**
   * Yields the records of the list in the order of the query: all, or at least `wanted`, with
   * those before the page.
   */
  *inOrder(wanted: number): Generator<Block> {
    const isPast = this.#isPast;
    const isForward = this.#direction === 'forwards';
    if (this.#isOrdered) {
      const stretch = isForward ? this.#between(isPast) : this.#between(undefined, isPast);
      if (this.isFoundAtOnce) {
        const rest = skip(stretch, this.#direction, this.#offset);
        return yield* stepsThrough(rest, this.#direction, Math.min(wanted, blockLengthMax));
      }
      return yield* this.#passing(stretch, this.#direction);
    }
    // What is far from the beginning is not sorted in one go.
    const isFar = wanted > limits.pageRecordsMax + 1;
    const compare: Compare = isForward ? this.#compare : (a, b) => this.#compare(b, a);
    const isInside: Test = (record) => isPast === undefined || isPast(record) === isForward;
    const all = wholeOf(isFar ? this.#blocks : scattered(this.#blocks));
    const candidates = this.#passing(all, 'forwards', isInside);
    yield* isFar ? sorted(candidates, compare) : firstInOrder(candidates, wanted, compare);
  }

  /** The records that may pass, from where one test begins to hold to where another does. */
  #between(hasBegun: Test = () => true, hasEnded: Test = () => false): Stretch {
    const blocks = this.#blocks;
    if (!this.#isOrdered) return wholeOf(blocks);
    const range = this.#range;
    return {
      blocks,
      start: placeOf(blocks, (record) => range.hasBegun(record) && hasBegun(record)),
      end: placeOf(blocks, (record) => range.hasEnded(record) || hasEnded(record)),
    };
  }

  /** Yields the records of each step that pass all tests. */
  *#passing(stretch: Stretch, direction: Direction, isInside?: Test): Generator<Block> {
    for (const block of stepsThrough(stretch, direction, testsPerStep, this.#isPassedOver)) {
      const inside = isInside === undefined ? block : block.filter(isInside);
      const seen = this.#isSeen === undefined ? inside : inside.filter(this.#isSeen);
      if (this.#search === undefined) yield seen;
      else yield* this.#search(seen);
    }
  }
}

/** How many records are tested in a step. */
const testsPerStep = 64;

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
 * Returns JSON as a text, or as a stream if it is long. A stream that embeds has a place in
 * the pool. @throws CairnError `overloaded`; `draining`
 */
function* bodyOf(
  pieces: Generator<string, undefined>,
  pool: ListPool,
  { caller, embed }: Pick<ListRequest, 'caller' | 'embed'>,
): Generator<void, List['body']> {
  let text = '';
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) break;
    text += value;
    if (text.length < pieceLength) {
      if (embed !== undefined) yield;
      continue;
    }
    const work = pool.begin(caller, embed !== undefined);
    return new StreamedJson(pieces, work, text);
  }
  return text;
}

/** Yields the JSON array of `blocks` in pieces. An empty piece is a pause. */
function* jsonPieces(
  blocks: Iterable<Block>,
  write: Write | PieceWriter,
  start = '[',
  end = ']',
): Generator<string, undefined> {
  let piece = start;
  let separator = '';
  for (const block of blocks) {
    for (const record of block) {
      const written = write(record);
      piece += separator;
      separator = ',';
      if (typeof written === 'string') {
        piece += written;
      } else {
        for (const text of written) {
          piece += text;
          if (piece.length < pieceLength) continue;
          yield piece;
          piece = '';
        }
        // What is embedded may have been looked for among many.
        yield '';
      }
      if (piece.length < pieceLength) continue;
      yield piece;
      piece = '';
    }
    yield '';
  }
  yield `${piece}${end}`;
}

/** JSON that is made while it is sent. It gives its place back when it ends or is left. */
class StreamedJson implements AsyncIterableIterator<string> {
  readonly #pieces: Generator<string, undefined>;
  readonly #work: ListWork;
  #first: string;

  constructor(pieces: Generator<string, undefined>, work: ListWork, first = '') {
    this.#pieces = pieces;
    this.#work = work;
    this.#first = first;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    try {
      const first = this.#first;
      this.#first = '';
      if (first !== '') return { done: false, value: first };
      for (;;) {
        const { done, value } = this.#pieces.next();
        if (done === true) return await this.return();
        await this.#work.pause();
        if (value !== '') return { done: false, value };
      }
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<string, undefined>> {
    this.#work.end();
    return this.#pieces.return(undefined);
  }
}
