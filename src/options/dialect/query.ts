/**
 * Turns queries of json-server's clients, versions 0.17 and 1.0, into Cairn's list queries:
 *
 *     _sort=a,b&_order=asc,desc  _sort=-a      the order
 *     _start=5&_end=10  _limit=5  _page=2      a part of the list, with its total
 *     _page=2&_per_page=5                      a page in an envelope
 *     views_gte=1  views:gt=1  title_like=x    filters
 *     _embed=comments  _expand=post            other records in each
 *     q=text                                   a search
 */
import type { RoutedCollection } from '../../api/call.ts';
import { isScalar, type Scalar } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { readId } from '../../base/record-id.ts';
import { embeddingWriter } from '../../collections/embedded.ts';
import type { Declared, Embedded, Registry } from '../../collections/declared.ts';
import type { Request } from '../../http/message.ts';
import type { Query } from '../../http/query.ts';
import {
  invalidParameter,
  isMixed,
  onlyCondition,
  readCondition,
  spelledBy,
  type Condition,
  type Filter,
} from '../../lists/filters.ts';
import type { OrderTerm } from '../../lists/order.ts';
import { isSortable, listParameters, parseListQuery } from '../../lists/query.ts';
import type { Field, Shape } from '../../schema/field.ts';
import { findKind } from '../../schema/kinds.ts';
import { fieldAt, readerAt, toRepresentation, representationWriter } from '../../schema/record.ts';
import type { StoredRecord } from '../../store/store.ts';
import { listReferring, knownIn, findByText, referenceTo, findTarget } from './relations.ts';
import type { IsKnown } from './relations.ts';

const parameters =
  /^(?:q|_(?:sort|order|start|end|limit|page|per_page|embed|expand|where|dependent))$/;

const filterForm = /^(.+?)(?:_(gte?|lte?|ne|like)|:(\w+))$/;

const operators: { readonly [name: string]: Condition['operator'] } = {
  ...{ eq: 'in', in: 'in', ne: 'ne', lt: 'lt', lte: 'lte', gt: 'gt', gte: 'gte' },
  ...{ like: 'search', contains: 'search', startsWith: 'starts', endsWith: 'ends' },
};

const isForeign = (name: string): boolean =>
  name !== 'q' && (parameters.test(name) || filterForm.exec(name)?.[2] !== undefined);

export function foreignReader(
  declared: Declared,
  registry: Registry,
): NonNullable<RoutedCollection['readForeign']> {
  const isKnown = knownIn(declared);
  const own: readonly string[] = listParameters(declared).filter((name) => name !== 'q');
  const unfiltered = parseListQuery(declared, new Map());
  return (sent, operation) => {
    const query = parseLeniently(sent);
    const owned = [...query.keys()].filter((name) => own.includes(name));
    // In json-server, records may have members named like parameters of Cairn.
    const isOwn = owned.length > 0 && ![...query.keys()].some(isForeign) && !owned.some(isKnown);
    if (isOwn) return undefined;
    const embedded = readEmbedded(declared, registry, query);
    if (operation === 'read') return { query: unfiltered, embedded, links: () => [] };
    const part = readPart(query);
    const filters = readFilters(declared.fields, query, isKnown);
    return {
      query: {
        ...unfiltered,
        sort: [...readSort(declared.fields, query, isKnown), ...unfiltered.sort],
        filters: [...toIdFilter(declared, filters), ...filters],
        limit: part.limit,
        offset: part.offset,
      },
      embedded,
      links: (request, total) => pageLinks(request, part, total),
    };
  };
}

/** Without a limit, the whole list. */
interface Part {
  readonly offset?: number;
  readonly limit?: number | undefined;
  /** 0 if the part is not a page. */
  readonly page: number;
  readonly isEnvelope: boolean;
}

/**
 * Parses a query as json-server does: a stray percent sign is text, and bytes that are not UTF-8
 * become U+FFFD.
 */
export function parseLeniently(query: string): Query {
  const parameters = new Map<string, string[]>();
  // The "&" keeps a "?" at the beginning from being removed.
  for (const [name, value] of new URLSearchParams(`&${query}`))
    parameters.set(name, [...(parameters.get(name) ?? []), value]);
  return parameters;
}

/** An empty parameter counts as absent. */
const lastValue = (query: Query, name: string): string | undefined =>
  query.get(name)?.at(-1) || undefined;

/** @throws CairnError `invalid_query` */
export function readPart(query: Query): Part {
  const read = (name: string): number | undefined => {
    const text = lastValue(query, name);
    if (text === undefined) return undefined;
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw invalidParameter(name, 'must be a whole number from 0 on');
  };
  const [number, size, most, end] = ['_page', '_per_page', '_limit', '_end'].map(read);
  if (number !== undefined) {
    const [page, limit] = [number || 1, (size ?? most) || 10];
    return { offset: (page - 1) * limit, limit, page, isEnvelope: size !== undefined };
  }
  const offset = read('_start') ?? 0;
  const limit = end === undefined ? most : Math.max(0, end - offset);
  return { ...(limit !== undefined && { offset }), limit, page: 0, isEnvelope: false };
}

/**
 * Returns the `Link` field of a page of 0.17, name and value, with absolute URLs for pages of other
 * origins.
 */
function pageLinks(request: Request, part: Part, total: number): string[] {
  const { page, limit = 1, isEnvelope } = part;
  const last = Math.ceil(total / limit);
  if (page === 0 || isEnvelope || last < 2 || page > last) return [];
  const { fields, basePath, target, encrypted } = request;
  const origin = `${encrypted ? 'https' : 'http'}://${fields.get('host') ?? ''}`;
  const numbers = { first: 1, prev: page - 1, next: page + 1, last };
  const links = Object.entries(numbers).flatMap(([relation, number]) => {
    if (number < 1 || number > last) return [];
    const path = target
      .replace(/([?&]_page=)[^&]*/, `$1${number}`)
      .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent);
    return `<${origin}${basePath}${path}>; rel="${relation}"`;
  });
  return ['Link', links.join(', ')];
}

/**
 * @throws CairnError `invalid_query` for a name that is neither a collection nor one of its records
 */
function readEmbedded(declared: Declared, registry: Registry, query: Query): Embedded | undefined {
  const { fields } = declared;
  const chosen = new Map<string, string>();
  for (const parameter of ['_embed', '_expand'])
    for (const member of (query.get(parameter) ?? []).join().split(','))
      if (member !== '') chosen.set(member, parameter);
  if (chosen.size === 0) return undefined;
  const parts = [...chosen].map(([member, parameter]) => {
    const name = `${member}Id`;
    const one = findTarget(name, registry);
    const many = one !== undefined && knownIn(declared)(name) ? undefined : registry.get(member);
    const of = many ?? one;
    if (of === undefined)
      throw invalidParameter(parameter, `must name some of ${[...registry.keys()].join(', ')}`);
    const idIn = readerAt(fields, name);
    const find = (record: StoredRecord): readonly StoredRecord[] | undefined => {
      if (many !== undefined)
        return listReferring(many, referenceTo(declared, many), readId(record));
      const found = findByText(of, String(idIn(record)));
      return found && [found];
    };
    const writeOne = representationWriter(of.fields);
    return { member, isOne: many === undefined, of, find, writeOne };
  });
  // An embedded record replaces a member of the same name.
  const write = (record: object): string => {
    const own = Object.entries(toRepresentation(fields, record));
    return JSON.stringify(Object.fromEntries(own.filter(([name]) => !chosen.has(name))));
  };
  return {
    selection: `~${parts.map(({ of }) => of.shapeTag).join('')}`,
    revisionWith: (own) => Math.max(own, ...parts.map(({ of }) => of.records.revision)),
    writer: () => embeddingWriter(write, parts),
  };
}

/** Ignores fields that cannot be sorted by. */
function readSort(shape: Shape, query: Query, isKnown: IsKnown): OrderTerm[] {
  const orders = lastValue(query, '_order')?.toLowerCase().split(',') ?? [];
  const terms = lastValue(query, '_sort')?.split(',') ?? [];
  return terms.flatMap((term, index) => {
    const name = term.replace(/^-/, '');
    const field = isKnown(name) ? fieldAt(shape, name) : undefined;
    if (field === undefined || !isSortable(field)) return [];
    return [{ name, descending: term !== name || orders[index] === 'desc' }];
  });
}

/** @throws CairnError `invalid_query` */
function readFilters(shape: Shape, query: Query, isKnown: IsKnown): Filter[] {
  const filters: Filter[] = [];
  const searched = lastValue(query, 'q');
  if (searched !== undefined) filters.push(searchFor('q', '', [searched]));
  if (query.has('_where'))
    throw invalidParameter('_where', 'is not supported: filter by views_gte, views:gt or or=(…)');
  for (const [written, values] of query) {
    const parameter = written.replace(/\[\]$/, '');
    if (parameters.test(parameter)) continue;
    const [, path = '', suffix, operator = suffix ?? ''] = filterForm.exec(parameter) ?? [];
    // Of a path only the first name is known, so its ending is taken for an operator.
    if (path !== '' && (path.includes('.') || !isKnown(parameter)))
      filters.push(...toFilters(shape, path, operator, values));
    else if (isKnown(parameter)) filters.push(...toFilters(shape, parameter, 'eq', values));
  }
  return filters;
}

/** Returns the filter by id for a filter by reference: an index serves both. */
function toIdFilter(declared: Declared, filters: readonly Filter[]): Filter[] {
  for (const filter of filters) {
    const { name = '', operator, operands = [] } = onlyCondition(filter) ?? {};
    if (operator !== 'in' || !name.endsWith('Id')) continue;
    const found = [...new Set(operands.map(String))].flatMap((text) =>
      listReferring(declared, name, text),
    );
    if (found.length >= limits.pageRecordsMax) continue;
    return [[{ name: 'id', operator, operands: found.map(readId) }]];
  }
  return [];
}

const mayBound = /^(?:[gl]te?|like)$/;

/**
 * Returns the filters for an operator with these values. As in json-server, no record matches a
 * value that the field cannot have.
 * @throws CairnError `invalid_query`
 */
function toFilters(
  shape: Shape,
  name: string,
  written: string,
  texts: readonly string[],
): Filter[] {
  const field = fieldAt(shape, name);
  if (field === undefined) return [[]];
  if (!Object.hasOwn(operators, written))
    return texts.map((text) => [readCondition(shape, `${name}:${written}`, text, [])]);
  const { [written]: operator = 'in' } = operators;
  // An empty field of a form bounds nothing.
  const sent = mayBound.test(written) ? texts.filter((text) => text !== '') : texts;
  if (sent.length === 0) return [];
  if (operator === 'search') return [searchFor(name, name, sent)];
  const values = written === 'in' ? sent.flatMap((text) => text.split(',')) : sent;
  const operands = values.flatMap((text) => spelledValues(text, field));
  if (operator === 'ne')
    return [[{ name, operator: 'exists', operands: [true] }], [{ name, operator, operands }]];
  // An index serves only a single condition.
  if (operator === 'in' && field.kind !== 'list') return [[{ name, operator, operands }]];
  const each = operator === 'in' ? 'has' : operator;
  return [operands.map((operand) => ({ name, operator: each, operands: [operand] }))];
}

/** @throws CairnError `invalid_query` */
function searchFor(parameter: string, name: string, texts: readonly string[]): Filter {
  if (texts.some(({ length }) => length > limits.searchLengthMax))
    throw invalidParameter(parameter, `must be up to ${limits.searchLengthMax} characters long`);
  return texts.map((text) => ({ name, operator: 'search', operands: [text] }));
}

/** Returns the values of a field that a text may mean. */
function spelledValues(text: string, field: Field): Scalar[] {
  if (field.kind === 'json' || isMixed(field)) return spelledBy(text, 'eq');
  const operand = findKind(field).operand(text, field);
  return isScalar(operand) ? [operand] : [];
}
