import type { Scalar } from '../base/json.ts';
import { emailKey, type Shape } from '../schema/field.ts';
import { fieldValue } from '../schema/representation.ts';

/** An order, of records and of what has the fields that it looks at. */
export type Compare = (a: object, b: object) => number;

export interface SortTerm {
  readonly name: string;
  readonly descending: boolean;
}

export interface Filter {
  readonly name: string;
  readonly operator: Operator;
  /** One value, or several for `in`. */
  readonly operands: readonly Scalar[];
}

export const operatorNames = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in', 'contains', 'starts'] as const;
export type Operator = (typeof operatorNames)[number];

interface OperatorRow {
  /** What it says of a field, for the OpenAPI document. */
  readonly words: string;
  /** The test that it makes of its first operand, or of them all. */
  readonly test: (operand: Scalar, operands: ReadonlySet<Scalar>) => (value: Scalar) => boolean;
}

export const operators: Readonly<Record<Operator, OperatorRow>> = {
  eq: { words: 'is this value', test: (operand) => (value) => value === operand },
  ne: { words: 'is not this value', test: (operand) => (value) => value !== operand },
  lt: { words: 'is less', test: (operand) => (value) => value < operand },
  lte: { words: 'is this value or less', test: (operand) => (value) => value <= operand },
  gt: { words: 'is greater', test: (operand) => (value) => value > operand },
  gte: { words: 'is this value or greater', test: (operand) => (value) => value >= operand },
  in: { words: 'is one of these; a comma in one is %2C', test: (_, operands) => (value) => operands.has(value) },
  contains: { words: 'contains this text', test: (operand) => (value) => String(value).includes(String(operand)) },
  starts: { words: 'starts with this text', test: (operand) => (value) => String(value).startsWith(String(operand)) },
};

/** The order that a sort asks for: texts by UTF-16 code units, false before true, an absent value after all others. */
export function comparator(shape: Shape, sort: readonly SortTerm[]): Compare {
  const terms = sort.map(({ name, descending }) => ({ read: reader(shape, name), sign: descending ? -1 : 1 }));
  return (a, b) => {
    for (const { read, sign } of terms) {
      const x = read(a);
      const y = read(b);
      if (x === y) continue;
      return x !== undefined && (y === undefined || x < y) ? -sign : sign;
    }
    return 0;
  };
}

/** A test of whether a record passes all of `filters`. One that lacks the field passes `ne` alone. */
export function matcher(shape: Shape, filters: readonly Filter[]): (record: object) => boolean {
  const tests = filters.map(({ name, operator, operands }) => {
    const read = reader(shape, name);
    const keys = operands.map((operand) => keyOf(shape, name, operand));
    const passes = operators[operator].test(keys[0] ?? '', new Set(keys));
    return (record: object): boolean => {
      const value = read(record);
      return value === undefined ? operator === 'ne' : passes(value);
    };
  });
  return (record) => tests.every((passes) => passes(record));
}

/** Reads from a record what is compared. */
function reader(shape: Shape, name: string): (record: object) => Scalar | undefined {
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
