import { limits } from '../base/limits.ts';
import { atOnce } from '../base/turns.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter, type Write } from '../schema/record.ts';
import type { Collection, StoredRecord } from '../store/store.ts';
import { searcher, type Test } from './filters.ts';
import { finish, type ListCaller, type ListPool, type ListWork } from './list-pool.ts';
import { firstInOrder, sorted, type Block, type Compare } from './order.ts';
import { plan, type ListReader, type Plan } from './plan.ts';
import { writeCursor, type ListQuery } from './query.ts';
import {
  blockLengthMax,
  findPosition,
  skip,
  stepsThrough,
  toStretch,
  type Stretch,
} from './sorted-blocks.ts';

interface ListSource {
  readonly fields: Shape;
  readonly records: Collection<StoredRecord>;
  readonly pool: ListPool;
}

export type PieceWriter = (record: StoredRecord) => Iterable<string>;

interface ListRequest {
  readonly query: ListQuery;
  readonly reader?: ListReader | undefined;
  readonly withTotal: boolean;
  readonly caller: ListCaller;
  /** Writes records with embedded ones. If absent, nothing is embedded. */
  readonly embed?: PieceWriter | undefined;
}

export interface List {
  /** A JSON array. A long one is streamed; a reader that stops early must call `return`. */
  readonly body: string | AsyncIterable<string>;
  readonly next?: string | undefined;
  /** The number of matching records on all pages, if requested. */
  readonly total: number | undefined;
}

/** The approximate length of a piece of a long body, in UTF-16 code units. */
const pieceLength = 56 * 1024;

/**
 * Lists the records as they are at this moment. A page found at once is returned at once.
 * Everything else is done in slices, so that other requests are served however many records there
 * are.
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
    const chosen = planList(source, request, Infinity);
    const total = request.withTotal ? await finish(count(chosen, source), work) : undefined;
    const found = inOrder(chosen, source, Infinity, 0);
    return {
      body: new StreamedJson(jsonPieces(found, createWriter(source, request)), work),
      total,
    };
  } catch (error) {
    work.end();
    throw error;
  }
}

/**
 * Reads one record with its embedded ones, within the limits of a list.
 * @throws CairnError `overloaded` with `retryAfterSeconds`; `draining`
 */
export function readRecord(
  pool: ListPool,
  record: StoredRecord,
  request: Pick<ListRequest, 'caller'> & { readonly embed: PieceWriter },
): List['body'] {
  return atOnce(writeBody(jsonPieces([[record]], request.embed, '', ''), pool, request));
}

const createWriter = ({ fields }: ListSource, { query, embed }: ListRequest) =>
  embed ?? representationWriter(fields, query.fields);

type Selection = Pick<ListRequest, 'query' | 'withTotal' | 'reader'>;

const planList = (
  { fields, records, pool }: ListSource,
  { query, reader }: Selection,
  wanted: number,
) =>
  plan(
    query,
    { fields, records, keptOrder: (sort, compare) => pool.orders.find(records, sort, compare) },
    reader,
    wanted,
  );

export interface Page extends Pick<List, 'next' | 'total'> {
  readonly records: readonly StoredRecord[];
}

/** @throws CairnError as `readList` */
export function findPage(
  source: ListSource,
  request: Selection & Pick<ListRequest, 'caller'>,
  limit: number,
): Page | Promise<Page> {
  return source.pool.makePage(request.caller, findRecords(source, request, limit));
}

function* page(
  source: ListSource,
  request: ListRequest,
  limit: number,
): Generator<void, List, void> {
  const { records, ...place } = yield* findRecords(source, request, limit);
  const pieces = jsonPieces([records], createWriter(source, request));
  return { body: yield* writeBody(pieces, source.pool, request), ...place };
}

function* findRecords(
  source: ListSource,
  request: Selection,
  limit: number,
): Generator<void, Page, void> {
  const { query, withTotal } = request;
  const { offset = 0 } = query;
  const wanted = offset + limit + 1;
  // Counting needs all records.
  const chosen = planList(source, request, withTotal ? Infinity : wanted);
  const total = withTotal ? yield* count(chosen, source) : undefined;
  // If records need no test, those before the page are skipped at once.
  let before = isFoundAtOnce(chosen) ? 0 : offset;
  const found: Block[number][] = [];
  for (const block of inOrder(chosen, source, wanted, offset)) {
    if (before === 0) found.push(...block);
    else found.push(...block.slice(before));
    before = Math.max(0, before - block.length);
    if (found.length > limit) break;
    if (!isFoundAtOnce(chosen)) yield;
  }
  const shown = found.slice(0, limit);
  // A page by number has no cursor.
  const isLinked = query.offset === undefined && found.length > limit;
  const last = isLinked ? shown.at(-1) : undefined;
  return { records: shown, total, next: last && writeCursor(source.fields, query, last) };
}

/** True if records are shown exactly as they are read, in the same order. */
const isFoundAtOnce = (chosen: Plan): boolean => chosen.isOrdered && isUntested(chosen);

const isUntested = ({ isSeen, filters }: Plan): boolean =>
  isSeen === undefined && filters.length === 0;

function* count(chosen: Plan, source: ListSource): Generator<void, number> {
  let total = 0;
  if (isUntested(chosen)) {
    for (const { length } of chosen.blocks) total += length;
    return total;
  }
  for (const block of passing({ ...chosen, direction: 'forwards' }, source, between(chosen))) {
    total += block.length;
    yield;
  }
  return total;
}

/**
 * Yields the records in the list's order: all, or at least `wanted`, including those before the
 * page.
 */
function* inOrder(
  chosen: Plan,
  source: ListSource,
  wanted: number,
  offset: number,
): Generator<Block> {
  const { isPast, isOrdered, direction, blocks } = chosen;
  const isForward = direction === 'forwards';
  if (isOrdered) {
    const stretch = isForward ? between(chosen, isPast) : between(chosen, undefined, isPast);
    if (!isFoundAtOnce(chosen)) return yield* passing(chosen, source, stretch);
    const rest = skip(stretch, direction, offset);
    return yield* stepsThrough(rest, direction, Math.min(wanted, blockLengthMax));
  }
  // A page far from the beginning is not sorted in one go.
  const isFar = wanted > limits.pageRecordsMax + 1;
  const compare: Compare = isForward ? chosen.compare : (a, b) => chosen.compare(b, a);
  const isInside = isPast && ((record: object) => isPast(record) === isForward);
  const all = toStretch(isFar ? blocks : scattered(blocks));
  const candidates = passing({ ...chosen, direction: 'forwards' }, source, all, isInside);
  yield* isFar ? sorted(candidates, compare) : firstInOrder(candidates, wanted, compare);
}

/**
 * The records that may pass, from the first for which one test holds to the first for which the
 * other holds.
 */
function between(
  { blocks, isOrdered, range }: Plan,
  hasBegun: Test = () => true,
  hasEnded: Test = () => false,
): Stretch {
  if (!isOrdered) return toStretch(blocks);
  return {
    blocks,
    start: findPosition(blocks, (record) => range.hasBegun(record) && hasBegun(record)),
    end: findPosition(blocks, (record) => range.hasEnded(record) || hasEnded(record)),
  };
}

/** Yields the records of each step that pass all tests. */
function* passing(
  { direction, isPassedOver, isSeen, filters }: Plan,
  { fields }: ListSource,
  stretch: Stretch,
  isInside?: Test,
): Generator<Block> {
  const search = filters.length === 0 ? undefined : searcher(fields, filters);
  for (const block of stepsThrough(stretch, direction, testsPerStep, isPassedOver)) {
    const inside = isInside === undefined ? block : block.filter(isInside);
    const seen = isSeen === undefined ? inside : inside.filter(isSeen);
    if (search === undefined) yield seen;
    else yield* search(seen);
  }
}

const testsPerStep = 64;

/**
 * Shuffles blocks. Values often grow with ids, so a search for the largest would otherwise find
 * larger ones in every block and sort nearly all records.
 */
function scattered(blocks: readonly Block[]): Block[] {
  const stride = 32;
  return Array.from({ length: stride }, (_, start) =>
    blocks.filter((_, index) => index % stride === start),
  ).flat();
}

/**
 * Returns JSON as text, or as a stream if it is long. A stream with embedded records has a place in
 * the pool.
 * @throws CairnError `overloaded`, `draining`
 */
function* writeBody(
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

/** Yields a JSON array in pieces. An empty piece is a pause. */
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
        // Finding embedded records may have taken long.
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

/** JSON produced while it is sent. It releases its place when it ends or the reader stops. */
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
