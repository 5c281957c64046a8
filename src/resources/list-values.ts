import { invariant, unreachable } from '../base/invariant.ts';
import type { Scalar } from '../base/json.ts';
import { emailKey } from '../schema/field.ts';
import type { Shape } from '../schema/field.ts';
import { fieldValue } from '../schema/representation.ts';
import type { Filter, Position, SortTerm } from './list-query.ts';
import type { Key, Order } from './list-sort.ts';

/** The order that a sort asks for: texts by UTF-16 code units, false before true, an absent value after all others. */
export interface Ordering extends Order<object> {
  /** Where a record stands with regard to a position: negative before it, positive after it. */
  readonly compareTo: (record: object, position: Position) => number;
  readonly positionOf: (record: object) => Position;
}

export function orderingOf(shape: Shape, sort: readonly SortTerm[]): Ordering {
  const terms = sort.map(({ name, descending }) => ({ read: valueReader(shape, name), sign: descending ? -1 : 1 }));
  const [first] = terms;
  invariant(first !== undefined, 'a sort has a term');
  const compare = (a: object, b: object): number => {
    for (const { read, sign } of terms) {
      const order = compareValues(read(a), read(b));
      if (order !== 0) return order * sign;
    }
    return 0;
  };
  return {
    compare,
    keyOf: first.read,
    descending: first.sign < 0,
    compareTo: (record, position) => {
      for (const [index, { read, sign }] of terms.entries()) {
        const order = compareValues(read(record), position[index] ?? undefined);
        if (order !== 0) return order * sign;
      }
      return 0;
    },
    positionOf: (record) => terms.map(({ read }) => read(record) ?? null),
  };
}

/** A test of whether a record passes all of `filters`. One that lacks the field passes `ne` alone. */
export function matcher(shape: Shape, filters: readonly Filter[]): (record: object) => boolean {
  const tests = filters.map((filter) => {
    const read = valueReader(shape, filter.name);
    const passes = valueTest(shape, filter);
    return (record: object): boolean => {
      const value = read(record);
      return value === undefined ? filter.operator === 'ne' : passes(value);
    };
  });
  return (record) => tests.every((passes) => passes(record));
}

function valueTest(shape: Shape, { name, operator, operands }: Filter): (value: Scalar) => boolean {
  const keys = operands.map((operand) => keyOf(shape, name, operand));
  const [key] = keys;
  invariant(key !== undefined, 'a filter has an operand');
  switch (operator) {
    case 'eq':
      return (value) => value === key;
    case 'ne':
      return (value) => value !== key;
    case 'lt':
      return (value) => value < key;
    case 'lte':
      return (value) => value <= key;
    case 'gt':
      return (value) => value > key;
    case 'gte':
      return (value) => value >= key;
    case 'in': {
      const set = new Set(keys);
      return (value) => set.has(value);
    }
    case 'contains':
      return (value) => String(value).includes(String(key));
    case 'starts':
      return (value) => String(value).startsWith(String(key));
    default:
      return unreachable(operator);
  }
}

/** Reads from a record what is compared. */
function valueReader(shape: Shape, name: string): (record: object) => Key {
  if (shape[name]?.rule.kind !== 'email') return (record) => fieldValue(record, name);
  return (record) => {
    const value = fieldValue(record, name);
    return value === undefined ? undefined : keyOf(shape, name, value);
  };
}

/** E-mail addresses are compared as they are held to be unique. */
function keyOf(shape: Shape, name: string, value: Scalar): Scalar {
  return shape[name]?.rule.kind === 'email' ? emailKey(String(value)) : value;
}

function compareValues(a: Key, b: Key): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
