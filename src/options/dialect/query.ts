/**
 * What clients of json-server ask of a list, by its versions 0.17 and 1.0, in terms of Cairn:
 *
 *     _sort=a,b&_order=asc,desc  _sort=-a      the order
 *     _start=5&_end=10  _limit=5  _page=2      a part of the list, with its total
 *     _page=2&_per_page=5                      a page in an envelope
 *     views_gte=1  views:gt=1  title_like=x    filters
 *     _embed=comments  _expand=post            other records in each
 *     q=text                                   a search
 */
import { isScalar, parseJsonNumber, type Scalar } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import type { Query } from '../../http/query.ts';
import {
  combined,
  invalidParameter,
  isMixed,
  readCondition,
  type Condition,
  type Filter,
} from '../../lists/filters.ts';
import type { SortTerm } from '../../lists/order.ts';
import { isSortable, parseListQuery, type ListQuery, type ListSubject } from '../../lists/query.ts';
import type { Field, Shape } from '../../schema/field.ts';
import { kindOf } from '../../schema/kinds.ts';
import { fieldAt, memberPrefix } from '../../schema/record.ts';
import type { IsKnown } from './relations.ts';

const parameters =
  /^(?:q|_(?:sort|order|start|end|limit|page|per_page|embed|expand|where|dependent))$/;

/** A filter with an operator, as either version writes it. */
const filterForm = /^(.+?)(?:_(gte?|lte?|ne|like)|:(\w+))$/;

/** The operators, by the names that are not Cairn's or mean something else there. */
const operators: { readonly [name: string]: Condition['operator'] } = {
  ...{ eq: 'in', in: 'in', ne: 'ne', lt: 'lt', lte: 'lte', gt: 'gt', gte: 'gte' },
  ...{ like: 'search', contains: 'search', startsWith: 'starts', endsWith: 'ends' },
};

/** Whether a parameter is one of json-server alone. */
export const isForeign = (name: string): boolean =>
  name !== 'q' && (parameters.test(name) || filterForm.exec(name)?.[2] !== undefined);

/** A part of a list. */
export interface Part {
  readonly offset: number;
  readonly limit: number;
  /** The number of the page; `undefined` where the part is none. */
  readonly page?: number;
  readonly isEnvelope?: boolean;
}

/**
 * Parses a query as json-server does: a stray percent sign is text, and bytes that are not UTF-8 are
 * U+FFFD.
 */
export function parseLeniently(query: string): Query {
  const parameters = new Map<string, string[]>();
  // The "&" protects a "?" at the beginning, which would be removed.
  for (const [name, value] of new URLSearchParams(`&${query}`))
    parameters.set(name, [...(parameters.get(name) ?? []), value]);
  return parameters;
}

/** Returns the last value of a parameter; `undefined` for none, and for an empty one. */
const lastValue = (query: Query, name: string): string | undefined =>
  query.get(name)?.at(-1) || undefined;

/** Returns the part of a list that is asked for. @throws CairnError `invalid_query` */
export function readPart(query: Query): Part | undefined {
  const read = (name: string): number | undefined => {
    const text = lastValue(query, name);
    if (text === undefined) return undefined;
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw invalidParameter(name, 'must be a whole number from 0 on');
  };
  const [page, size, most, end] = ['_page', '_per_page', '_limit', '_end'].map(read);
  if (page !== undefined) {
    const [number, limit] = [page || 1, (size ?? most) || 10];
    const offset = (number - 1) * limit;
    return { offset, limit, page: number, isEnvelope: size !== undefined };
  }
  const offset = read('_start') ?? 0;
  const limit = end === undefined ? most : Math.max(0, end - offset);
  return limit === undefined ? undefined : { offset, limit };
}

/** Returns the query of a list, without its part. @throws CairnError `invalid_query` */
export function readQuery(subject: ListSubject, query: Query, isKnown: IsKnown): ListQuery {
  const { fields: shape } = subject;
  const searched = lastValue(query, 'q');
  const orders = lastValue(query, '_order')?.toLowerCase().split(',') ?? [];
  const terms = lastValue(query, '_sort')?.split(',') ?? [];
  const sort = terms.flatMap((term, index): SortTerm[] => {
    const name = term.replace(/^-/, '');
    const path = toPath(shape, name);
    const field = isKnown(name) ? fieldAt(shape, path) : undefined;
    if (field === undefined || !isSortable(field)) return [];
    return [{ name: path, descending: term !== name || orders[index] === 'desc' }];
  });
  const asked = parseListQuery(subject, new Map());
  const filters = [...asked.filters];
  // The whole text is looked for, in any field.
  if (searched !== undefined) filters.push(searchOf('q', '', [searched]));
  if (query.has('_where'))
    throw invalidParameter('_where', 'is not supported: filter by views_gte, views:gt or or=(…)');
  for (const [written, all] of query) {
    const parameter = written.replace(/\[\]$/, '');
    if (parameters.test(parameter)) continue;
    const [, name, suffix, operator = suffix] = filterForm.exec(parameter) ?? [];
    // An empty field of a form bounds nothing.
    const isBound = /^(?:[gl]te?|like)$/.test(operator ?? '');
    const values = isBound ? all.filter((value) => value !== '') : all;
    if (values.length === 0) continue;
    const isOperated = name !== undefined && operator !== undefined;
    // Of a path only the first name is known: what ends it is taken for an operator.
    if (isKnown(parameter) && !(isOperated && name.includes('.')))
      filters.push(...toFilters(shape, parameter, 'eq', values));
    else if (isOperated) {
      const listed = operator === 'in' ? values.flatMap((value) => value.split(',')) : values;
      filters.push(...toFilters(shape, name, operator, listed));
    }
  }
  return { ...asked, sort: [...sort, ...asked.sort], filters };
}

/** Returns the path of a member, also of one that is called as what the server stores. */
const toPath = (shape: Shape, name: string): string =>
  /^(?:revision|ownerId)(?:\.|$)/.test(name) && !Object.hasOwn(shape, name)
    ? memberPrefix + name
    : name;

/** Returns the names that a parameter gives. */
export const readNames = (query: Query, parameter: string): readonly string[] =>
  (query.get(parameter) ?? []).flatMap((value) => value.split(',')).filter((name) => name !== '');

/**
 * Returns the filters that an operator with these values makes. As json-server, what a field cannot
 * be is no mistake: no record passes.
 * @throws CairnError `invalid_query`
 */
function toFilters(
  shape: Shape,
  given: string,
  written: string,
  texts: readonly string[],
): Filter[] {
  const name = toPath(shape, given);
  const field = fieldAt(shape, name);
  if (field === undefined) return [[]];
  if (!Object.hasOwn(operators, written))
    return combined(texts.map((text) => readCondition(shape, `${given}:${written}`, text, [])));
  const { [written]: operator = 'eq' } = operators;
  if (operator === 'search') return [searchOf(given, name, texts)];
  const operands = texts.flatMap((text) => spelledValues(text, field));
  if (operator === 'ne')
    return [[{ name, operator: 'exists', operands: [true] }], [{ name, operator, operands }]];
  // An index answers one condition.
  if (operator === 'in' && field.kind !== 'list') return [[{ name, operator, operands }]];
  const each = operator === 'in' ? 'has' : operator;
  return [operands.map((operand) => ({ name, operator: each, operands: [operand] }))];
}

/** Returns the filter by one of these texts, in a field or in all. @throws CairnError `invalid_query` */
function searchOf(parameter: string, name: string, texts: readonly string[]): Filter {
  if (texts.some(({ length }) => length > limits.searchLengthMax))
    throw invalidParameter(parameter, `must be up to ${limits.searchLengthMax} characters long`);
  return texts.map((text) => ({ name, operator: 'search', operands: [text] }));
}

/** Returns the values of a field that a text spells. */
function spelledValues(text: string, field: Field): Scalar[] {
  if (field.kind !== 'json' && !isMixed(field)) {
    const operand = kindOf(field).operand(text, field);
    return isScalar(operand) ? [operand] : [];
  }
  const number = parseJsonNumber(text);
  const isTruth = text === 'true' || text === 'false';
  return [
    text,
    ...(Number.isFinite(number) ? [number] : []),
    ...(isTruth ? [text === 'true'] : []),
  ];
}
