import { CairnError } from '../base/errors.ts';
import { parseJsonNumber, type JsonObject, type Scalar } from '../base/json.ts';
import type { Rule, Shape } from '../schema/field.ts';
import { typeSchema } from '../schema/json-schema.ts';
import { readableFields } from '../schema/representation.ts';
import { ruleViolation } from '../schema/rules.ts';
import { comparedValue } from './order.ts';
import { textSearch } from './text-search.ts';

/** One filter of a list, such as `price:gte=10`. */
export interface Filter {
  /** The fields of which one has to pass. */
  readonly names: readonly string[];
  readonly operator: Operator;
  /** One value, or several for `in`. */
  readonly operands: readonly Scalar[];
}

/** One query parameter, for the OpenAPI document. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  /** The values of an array are separated by commas. */
  readonly schema: JsonObject;
}

type MakeTest = (operand: Scalar, operands: ReadonlySet<Scalar>) => (value: Scalar) => boolean;

/** Each operator, with its words in the OpenAPI document and the test that it makes of its operands. */
const operators = {
  eq: { words: 'is this value', test: (operand) => (value) => value === operand },
  ne: { words: 'is not this value', test: (operand) => (value) => value !== operand },
  lt: { words: 'is less', test: (operand) => (value) => value < operand },
  lte: { words: 'is this value or less', test: (operand) => (value) => value <= operand },
  gt: { words: 'is greater', test: (operand) => (value) => value > operand },
  gte: { words: 'is this value or greater', test: (operand) => (value) => value >= operand },
  in: {
    words: 'is one of these; in a value, a comma is written "\\," and a backslash "\\\\"',
    test: (_, operands) => (value) => operands.has(value),
  },
  contains: { words: 'contains this text', test: (operand) => (value) => String(value).includes(String(operand)) },
  starts: { words: 'starts with this text', test: (operand) => (value) => String(value).startsWith(String(operand)) },
  search: { words: 'contains this text in upper or lower case', test: (operand) => textSearch(String(operand)) },
} as const satisfies { readonly [name: string]: { readonly words: string; readonly test: MakeTest } };

type Operator = keyof typeof operators;

const comparisons = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'] as const;

const operatorsByKind: { readonly [kind in Rule['kind']]: readonly Operator[] } = {
  text: [...comparisons, 'contains', 'starts'],
  email: [...comparisons, 'contains', 'starts'],
  password: [],
  number: comparisons,
  integer: comparisons,
  timestamp: comparisons,
  boolean: ['eq', 'ne'],
  choice: ['eq', 'ne', 'in'],
};

/** The error for a query parameter. `problem` follows its name, such as "is given more than once". */
export function invalidParameter(parameter: string, problem: string): CairnError {
  const name = parameter.length > 64 ? `${parameter.slice(0, 64)}…` : parameter;
  return new CairnError('invalid_query', `Cannot read the query: ${JSON.stringify(name)} ${problem}`);
}

/**
 * Reads a filter; `undefined` where the parameter names no field that can be read.
 * @throws CairnError `invalid_query`
 */
export function readFilter(shape: Shape, parameter: string, value: string): Filter | undefined {
  const [, name, written = 'eq'] = /^(\w+)(?::(\w+))?$/.exec(parameter) ?? [];
  const [, field] = readableFields(shape).find(([known]) => known === name) ?? [];
  if (name === undefined || field === undefined) return undefined;
  const { rule } = field;
  const operator = operatorsByKind[rule.kind].find((known) => known === written);
  if (operator === undefined) {
    const known = operatorsByKind[rule.kind].join(', ');
    throw invalidParameter(parameter, `is not a parameter here; ${name} can be filtered by ${known}`);
  }
  const values = operator === 'in' ? splitValues(value) : [value];
  return { names: [name], operator, operands: values.map((one) => readOperand(rule, parameter, one)) };
}

/** Splits at commas, but not where an odd number of backslashes stands before one. */
function splitValues(list: string): string[] {
  return list.split(/(?<=(?<!\\)(?:\\\\)*),/).map((value) => value.replaceAll(/\\([,\\])/g, '$1'));
}

/** Reads an operand as a value of the field, within the bounds of its rule or not: a price below 0 can be asked for. */
function readOperand(rule: Rule, parameter: string, text: string): Scalar {
  if (rule.kind === 'text' || rule.kind === 'email') return text;
  if (rule.kind === 'number' || rule.kind === 'integer') {
    const number = parseJsonNumber(text);
    if (Number.isFinite(number)) return number;
    throw invalidParameter(parameter, 'must be a number, as JSON and a double can hold it');
  }
  const value = rule.kind === 'boolean' && /^(?:true|false)$/.test(text) ? text === 'true' : text;
  const violation = ruleViolation(rule, value);
  if (violation !== undefined) throw invalidParameter(parameter, violation.detail);
  return value;
}

/** All filters that a list of records of this shape takes. */
export function filterParameters(shape: Shape): QueryParameter[] {
  return readableFields(shape).flatMap(([name, { rule }]) =>
    operatorsByKind[rule.kind].map((operator) => {
      const schema = { ...typeSchema(rule) };
      return {
        name: operator === 'eq' ? name : `${name}:${operator}`,
        description: `Only records whose ${name} ${operators[operator].words}.${notes[rule.kind] ?? ''}`,
        schema: operator === 'in' ? { type: 'array', items: schema, minItems: 1 } : schema,
      };
    }),
  );
}

const notes: { readonly [kind in Rule['kind']]?: string } = {
  text: ' Texts are compared by UTF-16 code units: case counts, and nothing is normalised.',
  email: ' Case does not count.',
};

/** Makes a test of whether a record passes all of `filters`. A record without the field passes `ne` alone. */
export function matcher(shape: Shape, filters: readonly Filter[]): (record: object) => boolean {
  const tests = filters.map(({ names, operator, operands }) => {
    const ofFields = names.map((name) => {
      const read = comparedValue(shape, name);
      const keys = operands.flatMap((operand) => read({ [name]: operand }) ?? []);
      const passes = operators[operator].test(keys[0] ?? '', new Set(keys));
      return (record: object): boolean => {
        const value = read(record);
        return value === undefined ? operator === 'ne' : passes(value);
      };
    });
    return (record: object): boolean => ofFields.some((passes) => passes(record));
  });
  return (record) => tests.every((passes) => passes(record));
}
