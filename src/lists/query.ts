import { crc32 } from 'node:zlib';
import { CairnError } from '../base/errors.ts';
import { isScalar, parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { parseQuery, type Query } from '../http/query.ts';
import { idField, referenceIn, type Field, type Shape } from '../schema/field.ts';
import {
  fieldAt,
  lastOrderTerm,
  ownerPath,
  readableNames,
  readablePaths,
  readerAt,
  searchedPaths,
} from '../schema/record.ts';
import { hasType } from '../schema/kinds.ts';
import {
  combined,
  invalidParameter,
  mayBeAbsent,
  readAlternatives,
  readCondition,
  repeated,
  unknownParameter,
  type Condition,
  type Filter,
} from './filters.ts';
import { chooseSortedPart, type OrderTerm } from './order.ts';
import { withoutAccents } from './search.ts';

export interface ListSubject {
  readonly fields: Shape;
  readonly hasOwners?: boolean;
  readonly embeddables?: readonly { readonly name: string }[];
}

interface RecordQuery {
  readonly fields: readonly string[] | undefined;
  readonly embed: readonly string[];
}

/** A list's query, validated against the shape of its records. */
export interface ListQuery extends RecordQuery {
  readonly limit: number | undefined;
  /** Ends with `id` or the record's number, so that no two records are equal. */
  readonly sort: readonly OrderTerm[];
  readonly filters: readonly Filter[];
  readonly isPersonal: boolean;
  /** The list starts after a record with these values of the sort fields. */
  readonly after: readonly JsonValue[] | undefined;
  readonly offset: number | undefined;
}

/**
 * Parses the parameters of a list. Unknown parameters and invalid values are refused, never
 * ignored. `userId` is the caller's.
 *
 * Parameters with several values may be repeated, since some generated clients do not join them
 * with commas. A repeated filter matches any value; with `ne` none of them, with `has` all of them.
 * @throws CairnError `invalid_query`, which names the parameter and what is allowed;
 *   `authentication_required`
 */
export function parseListQuery(subject: ListSubject, query: Query, userId?: number): ListQuery {
  const { fields: shape, embeddables = [] } = subject;
  refuseTaken(subject, query);
  const embeddableNames = embeddables.map(({ name }) => name);
  const offered: readonly string[] = listParameters(subject);
  const own = new Map<string, string>();
  const conditions: Condition[] = [];
  for (const [parameter, value] of eachParameter(query)) {
    if (!offered.includes(parameter)) {
      conditions.push(readCondition(shape, parameter, value, offered));
    } else {
      const former = own.get(parameter);
      if (former !== undefined && !takesSeveral.test(parameter)) throw repeated(parameter);
      own.set(parameter, former === undefined ? value : `${former},${value}`);
    }
  }
  const filters = combined(conditions);
  const alternatives = own.get('or');
  const searched = own.get('q');
  const owner = own.get('owner');
  if (alternatives !== undefined) filters.push(readAlternatives(shape, alternatives));
  if (searched !== undefined) filters.push(readSearch(searched));
  if (owner !== undefined) filters.push(readOwner(owner, userId));
  const ordering = { sort: readSort(shape, own.get('sort')), filters };
  if (own.has('offset') && own.has('cursor'))
    throw invalidParameter('offset', 'must come without a cursor');
  const offset = readOffset(own.get('offset'));
  return {
    ...ordering,
    limit:
      readLimit(own.get('limit')) ?? (offset === undefined ? undefined : limits.pageRecordsMax),
    fields: readNames('fields', readableNames(shape), own.get('fields')),
    embed: readNames('embed', embeddableNames, own.get('embed')) ?? [],
    isPersonal: owner !== undefined,
    after: readCursor(shape, ordering, own.get('cursor')),
    offset,
  };
}

/** Queries by their text: front ends request the same few pages over and over. */
const remembered = new WeakMap<ListSubject, Map<string, ListQuery>>();
const [rememberedMax, rememberedLengthMax] = [64, 256];

/** Parses a list's query string, without its "?". @throws CairnError as `parseListQuery` */
export function readListQuery(subject: ListSubject, sent: string, userId?: number): ListQuery {
  const known = remembered.get(subject) ?? new Map<string, ListQuery>();
  const found = known.get(sent);
  if (found !== undefined) return found;
  const query = parseListQuery(subject, parseQuery(sent), userId);
  if (query.isPersonal || sent.length > rememberedLengthMax) return query;
  if (known.size === rememberedMax) known.delete(known.keys().next().value ?? '');
  remembered.set(subject, known.set(sent, query));
  return query;
}

const takesSeveral = /^(?:sort|fields|embed)$/;

/** Yields each parameter with each of its values. Axios sends an array as `id[]=1&id[]=2`. */
function* eachParameter(query: Query): Generator<[parameter: string, value: string]> {
  for (const [written, values] of query) {
    const parameter = written.replace(/\[\]$/, '');
    for (const value of values) yield [parameter, value];
  }
}

/** @throws CairnError `invalid_query` */
export function parseRecordQuery(subject: ListSubject, query: Query): RecordQuery {
  refuseTaken(subject, query);
  const known: readonly string[] = recordParameters(subject);
  const other = [...query.keys()].find((parameter) => !known.includes(parameter));
  if (other === undefined) return parseListQuery(subject, query);
  throw unknownParameter(other, `a record takes ${known.join(', ')}`);
}

/** Explains why `embed` does not accept a reference whose short name is another field's. */
function refuseTaken({ fields: shape, embeddables = [] }: ListSubject, query: Query): void {
  for (const name of (query.get('embed') ?? []).join().split(',')) {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    const reference = field && referenceIn(field);
    if (reference === undefined || embeddables.some((each) => each.name === name)) continue;
    const members = [name.replace(/Ids?$/, ''), reference.to];
    const taken = members.find((member) => Object.hasOwn(shape, member));
    if (taken === undefined) continue;
    const problem = `cannot add what ${name} refers to: the field "${taken}" has its name`;
    throw invalidParameter('embed', problem);
  }
}

const ownParameters = [
  'limit',
  'offset',
  'cursor',
  'sort',
  'fields',
  'embed',
  'or',
  'q',
  'owner',
] as const;
export type OwnParameter = (typeof ownParameters)[number];

const isOffered: { readonly [name in OwnParameter]?: (subject: ListSubject) => boolean } = {
  embed: ({ embeddables = [] }) => embeddables.length > 0,
  q: ({ fields }) => searchedPaths(fields).length > 0,
  owner: ({ hasOwners }) => hasOwners === true,
};

export function listParameters(subject: ListSubject): OwnParameter[] {
  return ownParameters.filter((name) => isOffered[name]?.(subject) ?? true);
}

export function recordParameters(subject: ListSubject): OwnParameter[] {
  return listParameters(subject).filter((name) => name === 'fields' || name === 'embed');
}

/** The paths of all readable fields except lists and objects. */
export const sortableNames = (shape: Shape): string[] =>
  readablePaths(shape).flatMap(([path, field]) => (isSortable(field) ? path : []));

export const isSortable = ({ kind }: Field): boolean => kind !== 'list' && kind !== 'object';

function readSearch(value: string): Filter {
  const words = value.split(/\s+/).filter((word) => withoutAccents(word) !== '');
  const isBounded = words.length <= limits.searchWordsMax && value.length <= limits.searchLengthMax;
  if (words.length > 0 && isBounded) return [{ name: '', operator: 'search', operands: words }];
  const most = `${limits.searchWordsMax} words, with ${limits.searchLengthMax} characters in all`;
  throw invalidParameter('q', `must be 1 to ${most}`);
}

function readOwner(value: string, userId: number | undefined): Filter {
  if (value !== 'me') throw invalidParameter('owner', 'must be "me"');
  if (userId !== undefined) return [{ name: ownerPath, operator: 'eq', operands: [userId] }];
  const message = 'Cannot list your own records: sign in or send a bearer token';
  throw new CairnError('authentication_required', message);
}

function readLimit(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const limit = /^[1-9][0-9]{0,5}$/.test(value) ? Number(value) : Infinity;
  if (limit <= limits.pageRecordsMax) return limit;
  throw invalidParameter('limit', `must be a whole number from 1 to ${limits.pageRecordsMax}`);
}

function readOffset(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^(?:0|[1-9][0-9]{0,14})$/.test(value)) return Number(value);
  throw invalidParameter('offset', 'must be a whole number from 0 on');
}

function readNames(
  parameter: string,
  allowed: readonly string[],
  value: string | undefined,
): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const names = value.split(',');
  if (isSelection(names, allowed)) return names;
  const choice = `some of ${allowed.join(', ')}`;
  throw invalidParameter(parameter, `must name ${choice}, separated by commas, each once`);
}

function isSelection(names: readonly string[], allowed: readonly string[]): boolean {
  if (names.length > allowed.length) return false;
  return names.every((name) => allowed.includes(name)) && new Set(names).size === names.length;
}

function readSort(shape: Shape, value: string | undefined): readonly OrderTerm[] {
  const last: OrderTerm = { name: lastOrderTerm(shape), descending: false };
  if (value === undefined) return [last];
  const allowed = sortableNames(shape);
  const terms = value
    .split(',')
    .map((term) => ({ name: term.replace(/^-/, ''), descending: term.startsWith('-') }));
  const names = terms.map(({ name }) => name);
  const isAllowed = names.every((name) => {
    const field = fieldAt(shape, name);
    return field !== undefined && isSortable(field);
  });
  if (!isAllowed || new Set(names).size < names.length || names.length > limits.sortTermsMax) {
    const choice = `up to ${limits.sortTermsMax} of ${allowed.join(', ')}, separated by commas`;
    throw invalidParameter('sort', `must name ${choice}; "-" before a name reverses it`);
  }
  // Ids are unique, so later terms have no effect.
  const index = names.indexOf('id');
  return index === -1 ? [...terms, last] : terms.slice(0, index + 1);
}

type Ordering = Pick<ListQuery, 'sort' | 'filters'>;

/** Returns the cursor of the page after `record`, valid only with the same sort and filters. */
export function writeCursor(shape: Shape, query: Ordering, record: object): string {
  const after = query.sort.map(({ name }) => {
    const value = readerAt(shape, name)(record) ?? null;
    // Lists and objects are all equal.
    return isScalar(value) ? chooseSortedPart(fieldAt(shape, name))(value) : value && {};
  });
  return Buffer.from(JSON.stringify({ of: fingerprint(query), after })).toString('base64url');
}

function readCursor(
  shape: Shape,
  query: Ordering,
  value: string | undefined,
): readonly JsonValue[] | undefined {
  if (value === undefined) return undefined;
  const { of, after } = parseJsonObject(Buffer.from(value, 'base64url')) ?? {};
  const values: readonly JsonValue[] =
    Array.isArray(after) && of === fingerprint(query) ? after : [];
  const fits = query.sort.every(({ name }, index) => {
    const field: Field | undefined = name === lastOrderTerm(shape) ? idField : fieldAt(shape, name);
    const part = values[index];
    if (field === undefined) return false;
    return part === null ? mayBeAbsent(name, field) : hasType(field, part);
  });
  if (fits && values.length === query.sort.length) return values;
  throw invalidParameter(
    'cursor',
    'must come from the Link field of a list with the same sort and filters',
  );
}

/** Identifies a cursor's sort and filters, to detect mistakes. Not a security measure. */
function fingerprint({ sort, filters }: Ordering): number {
  return crc32(JSON.stringify([sort, filters.map((filter) => JSON.stringify(filter)).sort()]));
}
