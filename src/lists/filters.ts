import { CairnError } from '../base/errors.ts';
import { isScalar, parseJsonNumber, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Query } from '../http/query.ts';
import type { Field, Shape, Value } from '../schema/field.ts';
import { findKind, type Operator } from '../schema/kinds.ts';
import { fieldAt, readablePaths, readerAt, searchedPaths } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';
import { comparedBy, comparedValue, chooseSortedPart, type Block } from './order.ts';
import { searchPattern, withoutAccents } from './search.ts';

export type Filter = readonly Condition[];

/** A condition, such as `price:gte=10`. */
export interface Condition {
  /** The field. With `search`, an empty name means all text fields. */
  readonly name: string;
  /** `search` is the parameter `q`; `exists` is for fields that may be absent. */
  readonly operator: Operator | 'search' | 'exists';
  /** One value, several for `in`, or the words for `search`. */
  readonly operands: readonly Scalar[];
}

/** Creates the test of a value. `operand` is the first of `operands`. */
type MakeTest = (operand: Scalar, operands: ReadonlySet<Scalar>) => (value: Scalar) => boolean;

const operators: { readonly [operator in Operator]: MakeTest } = {
  eq: (operand) => (value) => value === operand,
  ne: (_, operands) => (value) => !operands.has(value),
  // A value of another type is neither less nor greater.
  lt: (operand) => (value) => typeof value === typeof operand && value < operand,
  lte: (operand) => (value) => typeof value === typeof operand && value <= operand,
  gt: (operand) => (value) => typeof value === typeof operand && value > operand,
  gte: (operand) => (value) => typeof value === typeof operand && value >= operand,
  in: (_, operands) => (value) => operands.has(value),
  contains: (operand) => (value) => isText(value) && value.includes(String(operand)),
  starts: (operand) => (value) => isText(value) && value.startsWith(String(operand)),
  ends: (operand) => (value) => isText(value) && value.endsWith(String(operand)),
  has: (_, operands) => (value) => operands.has(value),
};

const isText = (value: Scalar): value is string => typeof value === 'string';

/**
 * Returns the error for a query parameter. `problem` completes the sentence that begins with its
 * name.
 */
export function invalidParameter(parameter: string, problem: string): CairnError {
  const name = parameter.length > 64 ? `${parameter.slice(0, 64)}…` : parameter;
  return new CairnError(
    'invalid_query',
    `Cannot read the query: ${JSON.stringify(name)} ${problem}`,
  );
}

export const repeated = (parameter: string): CairnError =>
  invalidParameter(parameter, 'is given more than once');

/** Parameters of json-server, with Cairn's own for the same thing. */
const foreign = new Map([
  ['_page', 'offset'],
  ['_start', 'offset'],
  ['_limit', 'limit'],
  ['_per_page', 'limit'],
  ['_end', 'limit'],
  ['_sort', 'sort'],
  ['_order', 'sort=-NAME'],
  ['_embed', 'embed'],
  ['_expand', 'embed'],
]);

/** Returns the error for an unknown parameter. `known` says what the path takes. */
export function unknownParameter(parameter: string, known: string): CairnError {
  const [, field, operator = ''] = /^(.{1,60})_(gte|lte|gt|lt|ne|like)$/.exec(parameter) ?? [];
  const filter = field && `${field}:${operator === 'like' ? 'contains' : operator}`;
  const meant = foreign.get(parameter) ?? filter;
  const hint = meant === undefined ? '' : `: write ${meant}`;
  return invalidParameter(parameter, `is not a known parameter${hint}; ${known}`);
}

/** Returns the value of the only allowed parameter. @throws CairnError `invalid_query` */
export function onlyParameter(query: Query, name: string): string | undefined {
  for (const [parameter, values] of query) {
    if (parameter !== name) throw invalidParameter(parameter, 'is not a known parameter');
    if (values.length > 1) throw repeated(parameter);
  }
  return query.get(name)?.[0];
}

/**
 * Parses a condition. `others` are the list's other parameters.
 * @throws CairnError `invalid_query`, also for an unknown or unreadable field
 */
export function readCondition(
  shape: Shape,
  parameter: string,
  value: string,
  others: readonly string[],
): Condition {
  const [, name, written = 'eq'] =
    /^([\p{L}\p{N}_][^:,()[\]\\]*)(?::(\w+))?$/u.exec(parameter) ?? [];
  const field = name === undefined ? undefined : fieldAt(shape, name);
  if (name === undefined || field === undefined) {
    if (parameter === 'until')
      throw invalidParameter(
        parameter,
        'is withdrawn: write offset=0, and Link names the last page (rel="last")',
      );
    const names = readablePaths(shape).map(([known]) => known);
    const filters = `filters by ${names.join(', ')}`;
    const known = others.length === 0 ? filters : `takes ${others.join(', ')}, and ${filters}`;
    throw unknownParameter(parameter, `this list ${known}`);
  }
  const kind = findKind(field);
  const allowed = listOperators(name, field);
  const operator = allowed.find((known) => known === written);
  if (operator === undefined) {
    const known = `${name} can be filtered by ${allowed.join(', ')}`;
    throw unknownParameter(parameter, known);
  }
  if (operator === 'exists') {
    if (value !== 'true' && value !== 'false')
      throw invalidParameter(parameter, 'must be true or false');
    return { name, operator, operands: [value === 'true'] };
  }
  if (operator === 'contains' && value.length > limits.containedTextMax) {
    throw invalidParameter(parameter, `must be at most ${limits.containedTextMax} characters long`);
  }
  const values = operator === 'in' ? splitValues(value) : [value];
  const operands = values.flatMap((text) => {
    if (isMixed(field)) return spelledBy(text, operator);
    const operand = kind.operand(text, field);
    if (isScalar(operand)) return operand;
    throw invalidParameter(parameter, operand.detail);
  });
  // A text may stand for several values.
  return { name, operator: operator === 'eq' && operands.length > 1 ? 'in' : operator, operands };
}

/** True if values can have several types, so that a text stands for several of them. */
export function isMixed(field: Field | undefined): boolean {
  if (field?.kind === 'list') return isMixed(field.of);
  if (field?.kind === 'json') return field.like === undefined;
  if (field?.kind === 'reference') return field.ids === 'any';
  return field?.kind === 'id' && field.of === 'any';
}

/** Returns the operators of a field. `exists` is only for a field that may be absent. */
export function listOperators(path: string, field: Field): readonly (Operator | 'exists')[] {
  const { operators } = findKind(field);
  return mayBeAbsent(path, field) ? [...operators, 'exists'] : operators;
}

export const mayBeAbsent = (path: string, { optional, nullable, kind }: Field): boolean =>
  optional === true || nullable === true || kind === 'json' || path.includes('.');

const alternativesForm =
  'must be (field:operator:value,…) with up to 20 parts, not nested; ' +
  'in a value, write "\\" before "," "(" ")" and "\\"';
const alternativesMax = 20;

/** Parses `(price:lt:10,state:eq:new)`. @throws CairnError `invalid_query` */
export function readAlternatives(shape: Shape, value: string): Filter {
  const parts = isWrapped.test(value) ? splitValues(value.slice(1, -1), ',()\\') : [];
  if (parts.length < 1 || parts.length > alternativesMax)
    throw invalidParameter('or', alternativesForm);
  return parts.map((part) => {
    const [, parameter, operand] = /^([^:]*:[^:]*):(.*)$/s.exec(part) ?? [];
    if (parameter === undefined || operand === undefined)
      throw invalidParameter('or', alternativesForm);
    return readCondition(shape, parameter, operand, []);
  });
}

/** Matches text in parentheses, with any inner parentheses after a backslash. */
const isWrapped = /^\((?:[^\\()]|\\.)*\)$/s;

/**
 * Groups conditions into filters. Several of a field match any value with `eq` and `in`, and every
 * condition with `ne` and `has`.
 * @throws CairnError `invalid_query` if another operator is repeated, and for too many
 */
export function combined(conditions: readonly Condition[]): Filter[] {
  const groups = new Map<string, Condition[]>();
  for (const condition of conditions) {
    const key = `${condition.name}:${condition.operator}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [condition]);
    else group.push(condition);
  }
  const filters = [...groups].flatMap(([key, group]): Filter[] => {
    const [{ name, operator } = { name: '', operator: 'eq' }] = group;
    if (group.length === 1 || operator === 'ne' || operator === 'has') {
      return group.map((condition) => [condition]);
    }
    if (operator !== 'eq' && operator !== 'in') throw repeated(key);
    return [[{ name, operator: 'in', operands: group.flatMap(({ operands }) => operands) }]];
  });
  const [over] = filters[limits.conditionsMax] ?? [];
  if (over !== undefined) {
    throw invalidParameter(over.name, `is in over ${limits.conditionsMax} conditions`);
  }
  return filters;
}

/**
 * Returns the values that a text stands for: `1` is the number and the text. An ordering operator
 * takes one of them, preferably the number.
 */
export function spelledBy(text: string, operator: Operator): Scalar[] {
  const number = parseJsonNumber(text);
  if (operator === 'contains' || operator === 'starts' || operator === 'ends') return [text];
  if (text === 'true' || text === 'false') return [text === 'true', text];
  if (!Number.isFinite(number)) return [text];
  return Object.hasOwn(orders, operator) ? [number] : [number, text];
}
const orders = { lt: true, lte: true, gt: true, gte: true };

/** Splits at commas, except after a backslash, which escapes each of `escaped`. */
function splitValues(list: string, escaped = ',\\'): string[] {
  const values: string[] = [];
  let value = '';
  for (let at = 0; at < list.length; at += 1) {
    const character = list.charAt(at);
    const next = list[at + 1];
    if (character === ',') {
      values.push(value);
      value = '';
    } else if (character === '\\' && next !== undefined && escaped.includes(next)) {
      value += next;
      at += 1;
    } else {
      value += character;
    }
  }
  return [...values, value];
}

export type Test = (record: object) => boolean;
type Passes = (value: Scalar) => boolean;

interface Examined {
  characters: number;
}

/** The characters examined between two pauses, and the least that a value counts as. */
const charactersPerStep = 8192;
const valueMin = 32;

/**
 * Returns a function that finds the records that pass all `filters`. It pauses, with the records
 * found so far, once it has examined enough characters, but not within a value. Cheap conditions
 * come first.
 */
export function searcher(
  shape: Shape,
  filters: readonly Filter[],
): (records: Block) => Generator<Block> {
  const examined: Examined = { characters: 0 };
  const tests = filters
    .toSorted((a, b) => Number(isLong(a)) - Number(isLong(b)))
    .map((conditions) => {
      const [test, ...others] = conditions.map((one) => conditionTest(shape, one, examined));
      if (test === undefined || others.length === 0) return test ?? (() => false);
      return (record: object) => test(record) || others.some((other) => other(record));
    });
  const [only, ...others] = tests;
  const passes: Test =
    only === undefined || others.length > 0
      ? (record) => tests.every((test) => test(record))
      : only;
  return function* search(records) {
    let found: StoredRecord[] = [];
    for (const record of records) {
      if (passes(record)) found.push(record);
      if (examined.characters < charactersPerStep) continue;
      yield found;
      found = [];
      examined.characters = 0;
    }
    yield found;
  };
}

const isLong = (filter: Filter): boolean =>
  filter.some(({ operator }) => ['contains', 'has', 'search'].includes(operator));

/** Returns the test of a condition. A record without the field passes only `ne`. */
function conditionTest(shape: Shape, condition: Condition, examined: Examined): Test {
  const { name, operator, operands } = condition;
  if (operator === 'search') return searchTest(shape, condition, examined);
  const read = readerAt(shape, name);
  if (operator === 'exists') {
    const [wanted] = operands;
    return (record) => ((read(record) ?? undefined) !== undefined) === wanted;
  }
  const passes = operandTest(fieldAt(shape, name), operator, operands);
  if (operator === 'has')
    return (record) => {
      const value = read(record);
      if (!Array.isArray(value)) return false;
      examined.characters += value.length;
      return value.some((one) => isScalar(one) && passes(one));
    };
  return (record) => {
    const value = read(record);
    if (!isScalar(value)) return operator === 'ne';
    if (operator === 'contains') examined.characters += valueMin + String(value).length;
    return passes(value);
  };
}

/**
 * Tests if each word occurs in some text of the field, or, without a name, of all searched fields,
 * at any depth.
 */
function searchTest(shape: Shape, { name, operands }: Condition, examined: Examined): Test {
  const names = name === '' ? searchedPaths(shape) : [name];
  const readers = names.map((each) => readerAt(shape, each));
  const words = operands.map((word) => searchPattern(String(word)));
  return (record) => {
    let missing: readonly RegExp[] = words;
    const look = (value: Value | undefined): boolean => {
      if (typeof value === 'string') {
        examined.characters += valueMin + value.length;
        const text = withoutAccents(value);
        if (missing.some((word) => word.test(text)))
          missing = missing.filter((word) => !word.test(text));
        return missing.length === 0;
      }
      if (typeof value !== 'object' || value === null) return false;
      examined.characters += valueMin;
      return Object.values<Value>(value).some(look);
    };
    return readers.some((read) => look(read(record)));
  };
}

function operandTest(
  field: Field | undefined,
  operator: Operator,
  operands: readonly Scalar[],
): Passes {
  const compared = comparedBy(field);
  const keys = operands.map(compared);
  const passes = operators[operator](keys[0] ?? '', new Set(keys));
  return (value) => passes(compared(value));
}

export const onlyCondition = (filter: Filter): Condition | undefined =>
  filter.length === 1 ? filter[0] : undefined;

export interface Range {
  /** True from the first record of the range on. */
  readonly hasBegun: Test;
  /** True for every record after the range. */
  readonly hasEnded: Test;
}

/**
 * The operators that bound a range from below and above. A range may have more records than pass,
 * because only the beginning of a long text is compared.
 */
const lowerBounds: { readonly [operator in Condition['operator']]?: Operator } = {
  gt: 'gte',
  gte: 'gte',
  eq: 'gte',
};
const upperBounds: typeof lowerBounds = {
  lt: 'lte',
  lte: 'lte',
  eq: 'lte',
};

/** Returns the range that filters by a field leave in the order by this field. */
export function findRange(shape: Shape, filters: readonly Filter[], name: string): Range {
  const read = comparedValue(shape, name);
  const field = fieldAt(shape, name);
  const boundTests = (bounds: typeof lowerBounds) =>
    filters.flatMap((conditions) => {
      const condition = onlyCondition(conditions);
      // Values of one type among mixed ones do not form a range.
      if (condition?.name !== name || field?.kind === 'json' || isMixed(field)) return [];
      const bound = bounds[condition.operator];
      if (bound === undefined) return [];
      return [operandTest(field, bound, condition.operands.map(chooseSortedPart(field)))];
    });
  const lower = boundTests(lowerBounds);
  const upper = boundTests(upperBounds);
  const isBounded = lower.length + upper.length > 0;
  return {
    hasBegun: (record) => {
      const value = read(record);
      return !isScalar(value) || lower.every((passes) => passes(value));
    },
    // Records without a value follow all others, and do not pass a range filter.
    hasEnded: (record) => {
      const value = read(record);
      return isScalar(value) ? !upper.every((passes) => passes(value)) : isBounded;
    },
  };
}
