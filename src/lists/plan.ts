import { recordId, type RecordId } from '../base/record-id.ts';
import { limits } from '../base/limits.ts';
import { referenceIn, type Shape } from '../schema/field.ts';
import { lastOrderTerm } from '../schema/record.ts';
import type { Collection, From, StoredRecord } from '../store/store.ts';
import { onlyCondition, findRange, type Filter, type Range, type Test } from './filters.ts';
import { comparator, comparatorTo, type Block, type Compare, type OrderTerm } from './order.ts';
import type { ListQuery } from './query.ts';
import { blockLengthMax, type Direction } from './sorted-blocks.ts';

export interface ListTable {
  readonly fields: Shape;
  readonly records: Collection<StoredRecord>;
  /** Returns all records in an order; `undefined` if it is not kept. */
  readonly keptOrder: (
    sort: readonly OrderTerm[],
    compare: Compare,
  ) => readonly Block[] | undefined;
}

export interface ListReader {
  readonly test?: Test | undefined;
  /** The visible records by ascending id, if indexes have at most `most` of them. */
  found(most: number): Block | undefined;
  /** The first `most` visible records from an id on, by ascending id, if one index has them. */
  foundFrom(place: From, most: number): Block | undefined;
  mayBeIn(block: Block): boolean;
}

export interface Plan {
  /**
   * `own`: an index of the visible records. `filter`: an index for a filter. `order`: a kept order.
   * `all`: all records by number.
   */
  readonly source: 'own' | 'filter' | 'order' | 'all';
  readonly blocks: readonly Block[];
  /** The list's order or its reverse, so that the first field ascends. */
  readonly compare: Compare;
  /** The end of that order from which the list reads. */
  readonly direction: Direction;
  readonly isOrdered: boolean;
  readonly range: Range;
  /** True if a record follows the cursor's place, in that order. */
  readonly isPast: Test | undefined;
  /** True if a record is visible; `undefined` if all read records are. */
  readonly isSeen: Test | undefined;
  readonly isPassedOver: ((block: Block) => boolean) | undefined;
  readonly filters: readonly Filter[];
}

/**
 * Plans a list of at most `wanted` records, including those before its page. It takes the cheapest
 * source: an index of the visible records if they are few, an index for a filter, a kept order, or
 * all records.
 */
export function plan(
  { sort, filters, after }: Pick<ListQuery, 'sort' | 'filters' | 'after'>,
  { fields: shape, records, keptOrder }: ListTable,
  reader: ListReader | undefined,
  wanted: number,
): Plan {
  const isDescending = sort[0]?.descending === true;
  const order = isDescending ? sort.map(reverse) : sort;
  const byNumber = lastOrderTerm(shape);
  const name = order[0]?.name ?? byNumber;
  const isByNumber = name === byNumber;
  const compare = comparator(shape, order);
  const common = { compare, range: findRange(shape, filters, name) } as const;
  const toPlace = after && comparatorTo(shape, order, after);
  // A list after a record does not contain it. A descending list has the records before it.
  const isPast: Test | undefined =
    toPlace && ((record) => toPlace(record) >= (isDescending ? 0 : 1));
  const direction = isDescending ? 'backwards' : 'forwards';
  const place = {
    id: Number(after?.at(-1) ?? (isDescending ? Infinity : 0)),
    isDown: isDescending,
  };
  const found = { ...common, isPast, direction } as const;

  const own = (most: number): Plan | undefined => {
    // Its duration reveals their number, but not the number of other users' records.
    const isPage = isByNumber && wanted < Infinity && filters.length === 0;
    const seen = (isPage ? reader?.foundFrom(place, wanted + 1) : undefined) ?? reader?.found(most);
    return (
      seen && {
        ...found,
        ...unseen,
        source: 'own',
        blocks: inBlocks(seen),
        isOrdered: isByNumber,
        filters,
      }
    );
  };
  const few = own(limits.pageRecordsMax);
  if (few !== undefined) return few;
  const tests = {
    isSeen: reader?.test,
    isPassedOver: reader && ((block: Block) => !reader.mayBeIn(block)),
  };
  const indexed = indexedRecords(records, shape, filters);
  if (indexed !== undefined) {
    const others = filters.length === 1 ? [] : filters;
    return {
      ...found,
      ...tests,
      source: 'filter',
      blocks: indexed,
      isOrdered: isByNumber,
      filters: others,
    };
  }
  const kept = isByNumber ? undefined : keptOrder(order, compare);
  // A page of a kept order skips other users' records. Without one, even many are looked up.
  const many =
    kept === undefined || wanted === Infinity ? own(limits.indexedRecordsMax) : undefined;
  if (many !== undefined) return many;
  const blocks = kept ?? records.view().blocks;
  const source = kept === undefined ? 'all' : 'order';
  return {
    ...found,
    ...tests,
    source,
    blocks,
    isOrdered: isByNumber || kept !== undefined,
    filters,
  };
}

const unseen = { isSeen: undefined, isPassedOver: undefined };

const reverse = ({ name, descending }: OrderTerm): OrderTerm => ({ name, descending: !descending });

/**
 * Returns the records that pass a filter by id or reference, by ascending id; `undefined` without
 * such a filter, and if its index has too many.
 */
function indexedRecords(
  records: Collection<StoredRecord>,
  shape: Shape,
  filters: readonly Filter[],
): readonly Block[] | undefined {
  for (const filter of filters) {
    const { name = '', operator = 'ne', operands = [] } = onlyCondition(filter) ?? {};
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    const isIndexed = name === 'id' || (field !== undefined && referenceIn(field) !== undefined);
    if (!isIndexed || !['eq', 'in', 'has'].includes(operator)) continue;
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
