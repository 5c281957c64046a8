import { crc32 } from 'node:zlib';
import { CairnError } from '../base/errors.ts';
import { parseJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Query } from '../http/head.ts';
import type { Shape } from '../schema/field.ts';
import { fieldValue, readableFields, readableNames } from '../schema/representation.ts';
import { filterParameters, invalidParameter, readFilter, type Filter, type QueryParameter } from './filters.ts';
import type { SortTerm } from './order.ts';

/** The records that can be listed. */
export interface ListSubject {
  readonly shape: Shape;
  /** Whether they have owners, and callers can be told apart. */
  readonly hasOwners?: boolean | undefined;
}

/** The query of a list, checked against the shape of its records. */
export interface ListQuery {
  /** `undefined`: all records. */
  readonly limit: number | undefined;
  /** Ends with `id`, so that no two records are equal in it. */
  readonly sort: readonly SortTerm[];
  readonly filters: readonly Filter[];
  /** The names of the fields to show; `undefined`: all. */
  readonly fields: readonly string[] | undefined;
  /** Whether the list depends on the caller. */
  readonly isPersonal: boolean;
  /** The list begins after the place where a record with these values of the sort's fields would stand. */
  readonly after: JsonObject | undefined;
  /** The page ends with the record at this place or the last one before it; at the end, with the last of all. */
  readonly until: JsonObject | 'end' | undefined;
}

/**
 * Reads the parameters of a list. Nothing is ignored: a parameter that is unknown or repeated, or a value that does
 * not fit, is refused. `userId` is that of the caller.
 * @throws CairnError `invalid_query`, which names the parameter and what is allowed; `authentication_required`
 */
export function parseListQuery(subject: ListSubject, query: Query, userId?: number): ListQuery {
  const { shape } = subject;
  const known = ownParameters(subject);
  const own = new Map<string, string>();
  const filters = new Map<string, Filter>();
  for (const [parameter, [value = '', ...more]] of query) {
    const filter = known.includes(parameter) ? undefined : readFilter(shape, parameter, value);
    const key = filter === undefined ? parameter : `${filter.names.join()}:${filter.operator}`;
    if (more.length > 0 || filters.has(key)) throw invalidParameter(parameter, 'is given more than once');
    if (filter === undefined) own.set(parameter, value);
    else filters.set(key, filter);
  }
  const unknown = [...own.keys()].find((parameter) => !known.includes(parameter));
  if (unknown !== undefined) {
    const all = `${known.join(', ')}, and filters by ${readableNames(shape).join(', ')}`;
    throw invalidParameter(unknown, `is not a parameter here; there are ${all}`);
  }
  const [searched, owner] = [own.get('q'), own.get('owner')];
  if (searched !== undefined) filters.set('q', readSearch(shape, searched));
  if (owner !== undefined) filters.set('owner', readOwner(owner, userId));
  const ordering = { sort: readSort(shape, own.get('sort') ?? 'id'), filters: [...filters.values()] };
  const until = own.get('until');
  if (until !== undefined && (own.has('cursor') || !own.has('limit'))) {
    throw invalidParameter('until', 'must come with a limit and without a cursor');
  }
  return {
    ...ordering,
    limit: readLimit(own.get('limit')),
    fields: readFields(shape, own.get('fields')),
    isPersonal: owner !== undefined,
    after: readCursor(shape, ordering, 'cursor', own.get('cursor')),
    until: until === 'end' ? until : readCursor(shape, ordering, 'until', until),
  };
}

/** Reads the one parameter that a single record takes, `fields`. @throws CairnError `invalid_query` for any other */
export function parseFieldsQuery(shape: Shape, query: Query): readonly string[] | undefined {
  const other = [...query.keys()].find((parameter) => parameter !== 'fields');
  if (other !== undefined) throw invalidParameter(other, 'is not a parameter here; allowed is fields');
  return parseListQuery({ shape }, query).fields;
}

/** Every parameter that `parseListQuery` knows for this shape. */
export function listParameters(subject: ListSubject): QueryParameter[] {
  const { shape } = subject;
  const orders = sortableNames(shape).flatMap((name) => [name, `-${name}`]);
  const known = ownParameters(subject);
  const own: QueryParameter[] = [
    {
      name: 'limit',
      description: 'The most records of a page. Without it, all records are sent.',
      schema: { type: 'integer', minimum: 1, maximum: limits.pageRecordsMax },
    },
    {
      name: 'cursor',
      description: 'The beginning of the page, from the Link field of the page before.',
      schema: { type: 'string' },
    },
    {
      name: 'until',
      description:
        'The end of the page, which needs a `limit`: `end` for the last page, or the cursor of a page for the page ' +
        'before it.',
      schema: { type: 'string' },
    },
    {
      name: 'sort',
      description:
        'The fields to sort by; "-" reverses one. Texts stand by UTF-16 code units, e-mail addresses in lower case, ' +
        'and records that are equal in all of them by ascending id.',
      schema: { ...arrayOf(orders), maxItems: limits.sortTermsMax },
    },
    fieldsParameter(shape),
    {
      name: 'q',
      description: `Only records with this text in ${searchedNames(shape).join(' or ')}. Case does not count.`,
      schema: { type: 'string', minLength: 1, maxLength: limits.searchLengthMax },
    },
    {
      name: 'owner',
      description: 'Only records that the caller created.',
      schema: { type: 'string', enum: ['me'] },
    },
  ];
  const filters = filterParameters(shape).filter(({ name }) => !known.includes(name));
  return [...own.filter(({ name }) => known.includes(name)), ...filters];
}

/** The parameter `fields` of a list or of a single record. */
export function fieldsParameter(shape: Shape): QueryParameter {
  const description = 'The fields to show. Without it, all of them.';
  return { name: 'fields', description, schema: arrayOf(readableNames(shape)) };
}

function arrayOf(names: readonly string[]): JsonObject {
  return { type: 'array', items: { type: 'string', enum: names }, minItems: 1 };
}

/** The names of the parameters that are not filters by a field. */
function ownParameters({ shape, hasOwners = false }: ListSubject): string[] {
  const search = searchedNames(shape).length > 0 ? ['q'] : [];
  return ['limit', 'cursor', 'until', 'sort', 'fields', ...search, ...(hasOwners ? ['owner'] : [])];
}

function searchedNames(shape: Shape): string[] {
  return readableFields(shape)
    .filter(([, { rule }]) => rule.kind === 'text' || rule.kind === 'email')
    .map(([name]) => name);
}

function readSearch(shape: Shape, value: string): Filter {
  const { length } = value.normalize('NFC');
  if (length > 0 && length <= limits.searchLengthMax) {
    return { names: searchedNames(shape), operator: 'search', operands: [value] };
  }
  throw invalidParameter('q', `must be from 1 to ${limits.searchLengthMax} characters long`);
}

function readOwner(value: string, userId: number | undefined): Filter {
  if (value !== 'me') throw invalidParameter('owner', 'must be "me"');
  if (userId !== undefined) return { names: ['ownerId'], operator: 'eq', operands: [userId] };
  const message = 'Cannot list the records of the caller: sign in or send a bearer token';
  throw new CairnError('authentication_required', message);
}

function readLimit(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const limit = /^[1-9][0-9]{0,5}$/.test(value) ? Number(value) : Infinity;
  if (limit <= limits.pageRecordsMax) return limit;
  throw invalidParameter('limit', `must be a whole number from 1 to ${limits.pageRecordsMax}`);
}

function readFields(shape: Shape, value: string | undefined): readonly string[] | undefined {
  const allowed = readableNames(shape);
  const names = value?.split(',');
  if (names === undefined || isSelection(names, allowed)) return names;
  throw invalidParameter('fields', `must name fields once each, separated by commas; there are ${allowed.join(', ')}`);
}

/** Whether each of `names` is allowed and stands there once. */
function isSelection(names: readonly string[], allowed: readonly string[]): boolean {
  return names.every((name) => allowed.includes(name)) && new Set(names).size === names.length;
}

function readSort(shape: Shape, value: string): SortTerm[] {
  const allowed = sortableNames(shape);
  const terms = value.split(',').map((term) => ({ name: term.replace(/^-/, ''), descending: term.startsWith('-') }));
  const names = terms.map(({ name }) => name);
  if (!isSelection(names, allowed) || names.length > limits.sortTermsMax) {
    const choice = `up to ${limits.sortTermsMax} of ${allowed.join(', ')}, with commas between them`;
    throw invalidParameter('sort', `must name ${choice}; "-" reverses one`);
  }
  // No two records are equal in their ids, so the terms after it decide nothing.
  const index = names.indexOf('id');
  return index === -1 ? [...terms, { name: 'id', descending: false }] : terms.slice(0, index + 1);
}

/** The readable fields but long texts: a cursor carries the values, and has to fit into a request line. */
function sortableNames(shape: Shape): string[] {
  return readableFields(shape)
    .filter(([, { rule }]) => rule.kind !== 'text' || rule.max <= limits.sortableTextMax)
    .map(([name]) => name);
}

type Ordering = Pick<ListQuery, 'sort' | 'filters'>;

/** The cursor of the page that begins after `record`, or ends with it. It fits only the same sort and filters. */
export function writeCursor(query: Ordering, record: object): string {
  const after = query.sort.map(({ name }) => fieldValue(record, name) ?? null);
  return Buffer.from(JSON.stringify({ of: fingerprint(query), after })).toString('base64url');
}

function readCursor(
  shape: Shape,
  query: Ordering,
  parameter: 'cursor' | 'until',
  value: string | undefined,
): JsonObject | undefined {
  if (value === undefined) return undefined;
  const { of, after } = parseJsonObject(Buffer.from(value, 'base64url')) ?? {};
  const values: readonly JsonValue[] = Array.isArray(after) && of === fingerprint(query) ? after : [];
  const fits = query.sort.every(({ name }, index) => {
    const field = shape[name];
    const part = values[index];
    return part === null ? field?.presence === 'optional' : typeof part === typeof field?.example;
  });
  if (!fits || values.length !== query.sort.length) {
    throw invalidParameter(parameter, 'must come from the Link field of a list with the same sort and filters');
  }
  return Object.fromEntries(query.sort.map(({ name }, index) => [name, values[index] ?? null]));
}

/** Tells apart the cursors of other sorts and filters. It guards against mistakes; no security rests on it. */
function fingerprint({ sort, filters }: Ordering): number {
  return crc32(JSON.stringify([sort, filters.map((filter) => JSON.stringify(filter)).sort()]));
}
