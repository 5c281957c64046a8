import { CairnError } from '../base/errors.ts';
import { isScalar, parseJsonNumber, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Query } from '../http/query.ts';
import type { Field, Shape, Value } from '../schema/field.ts';
import { kindOf, type Operator } from '../schema/kinds.ts';
import { fieldAt, readablePaths, readerAt } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';
import { comparedBy, comparedValue, partOf, type Block } from './order.ts';
import { partLength, partsOf, textSearch } from './search.ts';

/** One filter of a list. A record passes if one of the conditions holds. */
export type Filter = readonly Condition[];

/** A condition of a record, such as `price:gte=10`. */
export interface Condition {
  /** The field. */
  readonly name: string;
  /** `search` is that of the parameter `q`, and `exists` is for fields that may be absent. */
  readonly operator: Operator | 'search' | 'exists';
  /** One value, or several for `in`. */
  readonly operands: readonly Scalar[];
}

/** Makes the test of a field's value. `operand` is the first of `operands`. */
type MakeTest = (operand: Scalar, operands: ReadonlySet<Scalar>) => (value: Scalar) => boolean;

const operators: { readonly [operator in Operator | 'search']: MakeTest } = {
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
  search: (operand) => textSearch(String(operand)),
};

const isText = (value: Scalar): value is string => typeof value === 'string';

/** Returns the error for a query parameter. `problem` follows its name. */
export function invalidParameter(parameter: string, problem: string): CairnError {
  const name = parameter.length > 64 ? `${parameter.slice(0, 64)}…` : parameter;
  return new CairnError(
    'invalid_query',
    `Cannot read the query: ${JSON.stringify(name)} ${problem}`,
  );
}

/** Returns the error for a parameter that comes twice. */
export const repeated = (parameter: string): CairnError =>
  invalidParameter(parameter, 'is given more than once');

/**
 * Returns the value of the only parameter that a query may have.
 * @throws CairnError `invalid_query`
 */
export function onlyParameter(query: Query, name: string): string | undefined {
  for (const [parameter, values] of query) {
    if (parameter !== name) throw invalidParameter(parameter, 'is not a known parameter');
    if (values.length > 1) throw repeated(parameter);
  }
  return query.get(name)?.[0];
}

/**
 * Parses a condition. `others` are the parameters of the list that are no filters.
 * @throws CairnError `invalid_query` for a parameter that names no readable field, too
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
    const names = readablePaths(shape).map(([known]) => known);
    const filters = `filters by ${names.join(', ')}`;
    const known = others.length === 0 ? filters : `takes ${others.join(', ')}, and ${filters}`;
    throw invalidParameter(parameter, `is not a known parameter; this list ${known}`);
  }
  const kind = kindOf(field);
  const allowed = operatorsOf(name, field);
  const operator = allowed.find((known) => known === written);
  if (operator === undefined) {
    const known = `${name} can be filtered by ${allowed.join(', ')}`;
    throw invalidParameter(parameter, `is not a known parameter; ${known}`);
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
  // A text may spell several values.
  return { name, operator: operator === 'eq' && operands.length > 1 ? 'in' : operator, operands };
}

/** Whether values can be of several types, so that a text spells several of them. */
export function isMixed(field: Field | undefined): boolean {
  if (field?.kind === 'list') return isMixed(field.of);
  if (field?.kind === 'json') return field.like === undefined;
  if (field?.kind === 'reference') return field.ids === 'any';
  return field?.kind === 'id' && field.of === 'any';
}

/** Returns the operators of a field. Only one that may be absent can be asked whether it exists. */
export function operatorsOf(path: string, field: Field): readonly (Operator | 'exists')[] {
  const { operators } = kindOf(field);
  return mayBeAbsent(path, field) ? [...operators, 'exists'] : operators;
}

/** Whether a record may have no value at a path, or null. */
export const mayBeAbsent = (path: string, { optional, nullable, kind }: Field): boolean =>
  optional === true || nullable === true || kind === 'json' || path.includes('.');

/** What `or` needs. */
const alternativesForm =
  'must be (field:operator:value,…) with up to 20 parts, not nested; ' +
  'in a value, write "\\" before "," "(" ")" and "\\"';
const alternativesMax = 20;

/**
 * Parses alternatives, such as `(price:lt:10,state:eq:new)`.
 * @throws CairnError `invalid_query`
 */
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

/** Matches a text in parentheses that has no others, but after a backslash. */
const isWrapped = /^\((?:[^\\()]|\\.)*\)$/s;

/**
 * Returns the filters that conditions make together. Several of a field mean one of their
 * values with `eq` and `in`, and all of the conditions with `ne` and `has`.
 * @throws CairnError `invalid_query` for another operator that comes twice, and for too many
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
 * Returns the values that a text spells: `1` is the number and the text. An order takes one of
 * them: the number, if it is one.
 */
function spelledBy(text: string, operator: Operator): Scalar[] {
  const number = parseJsonNumber(text);
  if (operator === 'contains' || operator === 'starts' || operator === 'ends') return [text];
  if (text === 'true' || text === 'false') return [text === 'true', text];
  if (!Number.isFinite(number)) return [text];
  return Object.hasOwn(orders, operator) ? [number] : [number, text];
}
const orders = { lt: true, lte: true, gt: true, gte: true };

/** Splits at commas. A backslash before one of the `escaped` makes it part of the value. */
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

/** A test of a record. */
export type Test = (record: object) => boolean;

/** Returns the test of a condition. A record without the field passes only `ne`. */
function conditionTest(shape: Shape, { name, operator, operands }: Condition): Test {
  const read = readerAt(shape, name);
  if (operator === 'exists') {
    const [wanted] = operands;
    return (record) => ((read(record) ?? undefined) !== undefined) === wanted;
  }
  const passes = operandTest(fieldAt(shape, name), operator, operands);
  return (record) => {
    const value = read(record);
    return isScalar(value) ? passes(value) : operator === 'ne';
  };
}

/** A condition that looks at all of a value, however long it is. */
interface LongCondition extends Condition {
  readonly operator: 'contains' | 'has' | 'search';
}

function isSearch(condition: Condition): condition is LongCondition {
  return ['contains', 'has', 'search'].includes(condition.operator);
}

/** Whether a filter has such a condition. */
const isLong = (filter: Filter): boolean => filter.some(isSearch);

/** How much a step has looked at, in characters. */
interface Work {
  done: number;
}

/** A test of a record that takes steps where it has much to look at. */
type Search = (record: object) => boolean | Steps;
type Steps = Generator<readonly [], boolean>;
type Passes = (value: Scalar) => boolean;

/** About how many characters are searched in a step, and what any value counts. */
const searchedPerStep = 8192;
const valueMin = 32;

function searchOf(shape: Shape, { name, operator, operands }: LongCondition, work: Work): Search {
  const read = readerAt(shape, name);
  const passes = operandTest(fieldAt(shape, name), operator, operands);
  return (record) => {
    const value = read(record);
    if (operator === 'has') {
      if (!Array.isArray(value)) return false;
      if (value.length > searchedPerStep) return elementIn(value, passes, work);
      work.done += value.length;
      return value.some((one) => isScalar(one) && passes(one));
    }
    if (typeof value !== 'string' && operator === 'contains') return false;
    if (isShort(value)) {
      work.done += valueMin + value.length;
      return passes(value);
    }
    return textIn(value, passes, work);
  };
}

const isShort = (value: Value | undefined): value is string =>
  typeof value === 'string' && value.length <= partLength;

/** Whether an element of a long list passes. */
function* elementIn(values: readonly Value[], passes: Passes, work: Work): Steps {
  for (const one of values) {
    if (isScalar(one) && passes(one)) return true;
    work.done += 1;
    if (work.done < searchedPerStep) continue;
    work.done = 0;
    yield [];
  }
  return false;
}

/** Whether a text at any depth of a value passes. */
function* textIn(value: Value | undefined, passes: Passes, work: Work): Steps {
  const isText = typeof value === 'string';
  if (!isText && (typeof value !== 'object' || value === null)) return false;
  const all: Iterable<Value> = isText ? partsOf(value) : Object.values<Value>(value);
  for (const one of all) {
    work.done += valueMin;
    if (typeof one === 'string' && (isText || isShort(one))) {
      work.done += one.length;
      if (passes(one)) return true;
    } else if (yield* textIn(one, passes, work)) return true;
    if (work.done < searchedPerStep) continue;
    work.done = 0;
    yield [];
  }
  return false;
}

/**
 * Returns a function that finds the records which pass all `filters`, in steps that look at as
 * much, however long the values are. The filters that look at little are asked first.
 */
export function searcher(
  shape: Shape,
  filters: readonly Filter[],
): (records: Block) => Generator<Block> {
  const work: Work = { done: 0 };
  const testOf = (one: Condition): Search =>
    isSearch(one) ? searchOf(shape, one, work) : conditionTest(shape, one);
  const testsOf = (some: readonly Filter[]): Search[] =>
    some.map((conditions) => combination(conditions.map(testOf), true));
  const quick = testsOf(filters.filter((filter) => !isLong(filter)));
  const long = combination(testsOf(filters.filter(isLong)), false);
  return function* search(records) {
    let found: StoredRecord[] = [];
    let candidates = records;
    for (const test of quick) candidates = candidates.filter((record) => test(record) === true);
    for (const record of candidates) {
      const passes = long(record);
      if (passes === true || (passes !== false && (yield* passes))) found.push(record);
      if (work.done < searchedPerStep) continue;
      yield found;
      found = [];
      work.done = 0;
    }
    yield found;
  };
}

/** Returns a test that ends with the first result that is `decisive`. */
function combination([first, ...rest]: readonly Search[], decisive: boolean): Search {
  if (first === undefined) return () => !decisive;
  if (rest.length === 0) return first;
  const others = combination(rest, decisive);
  const afterSteps = function* (record: object, steps: Steps): Steps {
    if ((yield* steps) === decisive) return decisive;
    const passes = others(record);
    return typeof passes === 'boolean' ? passes : yield* passes;
  };
  return (record) => {
    const passes = first(record);
    if (passes === decisive) return decisive;
    return typeof passes === 'boolean' ? others(record) : afterSteps(record, passes);
  };
}

/** Returns the test of a value of a field that is there, or of an element of a list. */
function operandTest(
  field: Field | undefined,
  operator: Operator | 'search',
  operands: readonly Scalar[],
): Passes {
  const compared = comparedBy(field);
  const keys = operands.map(compared);
  const passes = operators[operator](keys[0] ?? '', new Set(keys));
  return (value) => passes(compared(value));
}

/** Returns the condition of a filter that has no alternatives. */
export const onlyCondition = (filter: Filter): Condition | undefined =>
  filter.length === 1 ? filter[0] : undefined;

/** The part of an ascending order that filters leave. */
export interface Range {
  /** Holds from the first record of the range on. */
  readonly hasBegun: Test;
  /** Holds from the first record behind the range on. */
  readonly hasEnded: Test;
}

/**
 * The operators that bound a range from below and from above. A range may have more records than
 * pass: of a long text, only the beginning is compared.
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

/** Returns the range that filters by a field leave of the order by this field. */
export function rangeOf(shape: Shape, filters: readonly Filter[], name: string): Range {
  const read = comparedValue(shape, name);
  const field = fieldAt(shape, name);
  const testsOf = (bounds: typeof lowerBounds) =>
    filters.flatMap((conditions) => {
      const condition = onlyCondition(conditions);
      // Values of one type among mixed ones are no range of them.
      if (condition?.name !== name || field?.kind === 'json' || isMixed(field)) return [];
      const bound = bounds[condition.operator];
      if (bound === undefined) return [];
      return [operandTest(field, bound, condition.operands.map(partOf(field)))];
    });
  const lower = testsOf(lowerBounds);
  const upper = testsOf(upperBounds);
  const isBounded = lower.length + upper.length > 0;
  return {
    hasBegun: (record) => {
      const value = read(record);
      return !isScalar(value) || lower.every((passes) => passes(value));
    },
    // Records without a value follow all others, and pass no filter of a range.
    hasEnded: (record) => {
      const value = read(record);
      return isScalar(value) ? !upper.every((passes) => passes(value)) : isBounded;
    },
  };
}
