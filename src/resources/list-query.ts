import { crc32 } from 'node:zlib';
import { CairnError } from '../base/errors.ts';
import { parseJsonNumber, parseJsonObject, type JsonObject, type JsonValue, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Query } from '../http/head.ts';
import type { Field, Rule, Shape } from '../schema/field.ts';
import { ruleSchema } from '../schema/json-schema.ts';
import { fieldValue, readableFields, readableNames } from '../schema/representation.ts';
import { faultOf } from '../schema/rules.ts';
import { reader, type SortTerm } from './list-orders.ts';

interface Filter {
  readonly name: string;
  readonly operator: Operator;
  /** One value, or several for `in`. */
  readonly operands: readonly Scalar[];
}

const ofNumbers = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'] as const;
const ofTexts = [...ofNumbers, 'contains', 'starts'] as const;
type Operator = (typeof ofTexts)[number];

type Test = (operand: Scalar, operands: ReadonlySet<Scalar>) => (value: Scalar) => boolean;

/** What each says of a field in the OpenAPI document, and the test it makes of its first operand, or of them all. */
const operators: Readonly<Record<Operator, { readonly words: string; readonly test: Test }>> = {
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

/** What is asked of a list, checked against the shape of its records. */
export interface ListQuery {
  /** `undefined`: all records. */
  readonly limit: number | undefined;
  /** Ends with `id`, so that no two records are equal in it. */
  readonly sort: readonly SortTerm[];
  readonly filters: readonly Filter[];
  /** The names of the fields to show; `undefined`: all. */
  readonly fields: readonly string[] | undefined;
  /** The list begins after where a record with these values of the sort's fields would stand. */
  readonly after: JsonObject | undefined;
}

/** One query parameter, for the OpenAPI document. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  /** Where it is an array, the values are separated by commas. */
  readonly schema: JsonObject;
}

/**
 * Reads the parameters of a list. Nothing is ignored: a parameter that is unknown or repeated, or a value that does
 * not fit, is refused.
 * @throws CairnError `invalid_query`, which names the parameter and what is allowed
 */
export function parseListQuery(shape: Shape, query: Query): ListQuery {
  const given = new Map<string, string>();
  const filters: Filter[] = [];
  for (const [parameter, [parts = [], ...more]] of query) {
    const filter = isOwnParameter(parameter) ? undefined : readFilter(shape, parameter, parts);
    const key = filter === undefined ? parameter : `${filter.name}:${filter.operator}`;
    if (more.length > 0 || given.has(key)) throw refusal(parameter, 'is given more than once');
    given.set(key, parts.join(','));
    if (filter !== undefined) filters.push(filter);
  }
  const sort = readSort(shape, given.get('sort') ?? 'id');
  const limit = given.get('limit');
  const cursor = given.get('cursor');
  return {
    limit: limit === undefined ? undefined : readLimit(limit),
    sort,
    filters,
    fields: readFields(shape, given.get('fields')),
    after: cursor === undefined ? undefined : readCursor(shape, sort, filters, cursor),
  };
}

/** Reads the one parameter that a single record takes, `fields`; refuses any other. */
export function parseFieldsQuery(shape: Shape, query: Query): readonly string[] | undefined {
  const other = [...query.keys()].find((parameter) => parameter !== 'fields');
  if (other !== undefined) throw refusal(other, 'is not a parameter here; allowed is fields');
  return parseListQuery(shape, query).fields;
}

/** The cursor of the page that begins after `record`; it fits only the same sort and filters. */
export function writeCursor({ sort, filters }: ListQuery, record: object): string {
  const after = sort.map(({ name }) => fieldValue(record, name) ?? null);
  return Buffer.from(JSON.stringify({ of: fingerprint(sort, filters), after })).toString('base64url');
}

/** Every parameter that `parseListQuery` knows for this shape. */
export function listParameters(shape: Shape): QueryParameter[] {
  const filters = readableFields(shape).flatMap(([name, { rule }]) =>
    operatorsOf(rule).map((operator) => filterParameter(name, rule, operator)),
  );
  const orders = sortableNames(shape).flatMap((name) => [name, `-${name}`]);
  const order =
    'The fields to sort by; "-" reverses one. Texts stand by UTF-16 code units, e-mail addresses in lower case, and ' +
    'records that are equal in all of them by ascending id.';
  const limit = { type: 'integer', minimum: 1, maximum: limits.pageRecordsMax };
  return [
    {
      name: 'limit',
      description: 'How many records a page has at most; without it, all of them are sent.',
      schema: limit,
    },
    { name: 'cursor', description: 'Where the page begins; from the Link field of the page before.', schema: text },
    { name: 'sort', description: order, schema: { ...someOf(orders), maxItems: limits.sortTermsMax } },
    fieldsParameter(shape),
    ...filters.filter(({ name }) => !isOwnParameter(name)),
  ];
}

/** The parameter `fields` of a list or of a single record. */
export function fieldsParameter(shape: Shape): QueryParameter {
  const names = readableNames(shape);
  return { name: 'fields', description: 'The fields to show; without it, all of them.', schema: someOf(names) };
}

const text: JsonObject = { type: 'string' };
const someOf = (names: readonly string[]): JsonObject => ({
  type: 'array',
  items: { ...text, enum: names },
  minItems: 1,
});

const ownParameters = ['limit', 'cursor', 'sort', 'fields'];
const isOwnParameter = (parameter: string): boolean => ownParameters.includes(parameter);

function refusal(parameter: string, what: string): CairnError {
  const name = parameter.length > 64 ? `${parameter.slice(0, 64)}…` : parameter;
  return new CairnError('invalid_query', `Cannot read the query: ${JSON.stringify(name)} ${what}`);
}

function readLimit(value: string): number {
  const limit = /^[1-9][0-9]{0,5}$/.test(value) ? Number(value) : Infinity;
  if (limit <= limits.pageRecordsMax) return limit;
  throw refusal('limit', `must be a whole number from 1 to ${limits.pageRecordsMax}`);
}

function readFields(shape: Shape, value: string | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const allowed = readableNames(shape);
  const names = value.split(',');
  if (areSome(names, allowed)) return names;
  throw refusal('fields', `must name fields once each, separated by commas; there are ${allowed.join(', ')}`);
}

/** Whether these are some of `allowed`, each of them once. */
function areSome(names: readonly string[], allowed: readonly string[]): boolean {
  return names.every((name) => allowed.includes(name)) && new Set(names).size === names.length;
}

function readSort(shape: Shape, value: string): SortTerm[] {
  const allowed = sortableNames(shape);
  const terms = value.split(',').map((term) => ({ name: term.replace(/^-/, ''), descending: term.startsWith('-') }));
  const names = terms.map(({ name }) => name);
  const most = limits.sortTermsMax;
  if (!areSome(names, allowed) || names.length > most) {
    const order = `up to ${most} of ${allowed.join(', ')}, with commas between them`;
    throw refusal('sort', `must name ${order}; "-" reverses one`);
  }
  // No two records are equal in their ids: what follows that term decides nothing.
  const idAt = names.indexOf('id');
  return idAt === -1 ? [...terms, { name: 'id', descending: false }] : terms.slice(0, idAt + 1);
}

function sortableNames(shape: Shape): string[] {
  const sortable = ({ rule }: Field): boolean => rule.kind !== 'text' || rule.max <= limits.sortableTextMax;
  return readableFields(shape).flatMap(([name, field]) => (sortable(field) ? [name] : []));
}

function readFilter(shape: Shape, parameter: string, parts: readonly string[]): Filter {
  const [name = '', written = 'eq', ...rest] = parameter.split(':');
  const rule = readableFields(shape).find(([known]) => known === name)?.[1].rule;
  if (rule === undefined || rest.length > 0) {
    const names = readableNames(shape).join(', ');
    throw refusal(parameter, `is not a parameter here; there are ${ownParameters.join(', ')}, and filters by ${names}`);
  }
  const operator = operatorsOf(rule).find((known) => known === written);
  if (operator === undefined) {
    throw refusal(parameter, `is not a parameter here; ${name} can be filtered by ${operatorsOf(rule).join(', ')}`);
  }
  const operands = operator === 'in' ? parts : [parts.join(',')];
  return { name, operator, operands: operands.map((operand) => readOperand(rule, parameter, operand)) };
}

/** How values of this rule can be filtered. */
const operatorsOf = ({ kind }: Rule): readonly Operator[] => operatorsByKind[kind] ?? ofTexts;

/** Texts have them all: what is asked for may be a part of one, and need not be a value of the field. */
const operatorsByKind: Partial<Record<Rule['kind'], readonly Operator[]>> = {
  boolean: ['eq', 'ne'],
  choice: ['eq', 'ne', 'in'],
  number: ofNumbers,
  integer: ofNumbers,
  timestamp: ofNumbers,
};

/** The operand as a value of the field. It need not keep the field's bounds: to ask for prices below 0 is no error. */
function readOperand(rule: Rule, parameter: string, value: string): Scalar {
  const { kind } = rule;
  if (kind === 'number' || kind === 'integer') {
    const number = parseJsonNumber(value);
    if (Number.isFinite(number)) return number;
    throw refusal(parameter, 'must be a number, as JSON and a double can hold it');
  }
  const operand = kind === 'boolean' && (value === 'true' || value === 'false') ? value === 'true' : value;
  const fault = operatorsByKind[kind] && faultOf(rule, operand);
  if (fault !== undefined) throw refusal(parameter, fault.detail);
  return operand;
}

function filterParameter(name: string, rule: Rule, operator: Operator): QueryParameter {
  const typing = Object.entries(ruleSchema(rule)).filter(([word]) => ['type', 'enum', 'format'].includes(word));
  const schema: JsonObject = Object.fromEntries(typing);
  return {
    name: operator === 'eq' ? name : `${name}:${operator}`,
    description: `Only records whose ${name} ${operators[operator].words}.${notes[rule.kind] ?? ''}`,
    schema: operator === 'in' ? { type: 'array', items: schema, minItems: 1 } : schema,
  };
}

const notes: Partial<Record<Rule['kind'], string>> = {
  text: ' Compared by UTF-16 code units: case counts, and nothing is normalised.',
  email: ' Case does not count.',
};

/** Tells whether a cursor was made for this sort and these filters. It protects from mistakes; nothing rests on it. */
function fingerprint(sort: readonly SortTerm[], filters: readonly Filter[]): number {
  const texts = filters.map((filter) => JSON.stringify(filter)).sort();
  return crc32(JSON.stringify([sort, texts]));
}

function readCursor(shape: Shape, sort: readonly SortTerm[], filters: readonly Filter[], value: string): JsonObject {
  const { of, after } = parseJsonObject(Buffer.from(value, 'base64url')) ?? {};
  const values: readonly JsonValue[] = Array.isArray(after) && of === fingerprint(sort, filters) ? after : [];
  const position = sort.map(({ name }, index): [string, JsonValue] => [name, values[index] ?? null]);
  const fits = position.every(([name, part]) =>
    part === null ? shape[name]?.presence === 'optional' : typeof part === typeof shape[name]?.example,
  );
  if (fits && values.length === sort.length) return Object.fromEntries(position);
  throw refusal('cursor', 'must come from the Link field of a list with the same sort and filters');
}

/** A test of whether a record passes all of `filters`. One that lacks the field passes `ne` alone. */
export function matcher(shape: Shape, filters: readonly Filter[]): (record: object) => boolean {
  const tests = filters.map(({ name, operator, operands }) => {
    const read = reader(shape, name);
    const keys = operands.flatMap((operand) => read({ [name]: operand }) ?? []);
    const passes = operators[operator].test(keys[0] ?? '', new Set(keys));
    return (record: object): boolean => {
      const value = read(record);
      return value === undefined ? operator === 'ne' : passes(value);
    };
  });
  return (record) => tests.every((passes) => passes(record));
}
