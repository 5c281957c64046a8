import type { JsonObject } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { listOperators } from '../../lists/filters.ts';
import {
  listParameters,
  recordParameters,
  sortableNames,
  type ListSubject,
  type OwnParameter,
} from '../../lists/query.ts';
import { splitShape, type Field, type Shape } from '../../schema/field.ts';
import { findKind, type Operator } from '../../schema/kinds.ts';
import { readableNames, readablePaths, searchedPaths } from '../../schema/record.ts';

export interface QueryParameter extends Described {
  readonly name: string;
  readonly required?: boolean;
}

interface Described {
  readonly description: string;
  /** The values of an array are separated by commas. */
  readonly schema: JsonObject;
}

export function describeList(subject: ListSubject): QueryParameter[] {
  const own = describeOwn(listParameters(subject), subject);
  const filters = readablePaths(subject.fields).flatMap(([name, field]) =>
    listOperators(name, field).map((operator) => describeFilter(name, field, operator)),
  );
  return [...own, ...filters.filter(({ name }) => own.every((other) => other.name !== name))];
}

export function describeRecord(subject: ListSubject): QueryParameter[] {
  return describeOwn(recordParameters(subject), subject);
}

function describeOwn(names: readonly OwnParameter[], subject: ListSubject): QueryParameter[] {
  return names.map((name) => ({ name, ...ownParameters[name](subject) }));
}

function describeFilter(name: string, field: Field, operator: ListOperator): QueryParameter {
  return {
    name: operator === 'eq' ? name : `${name}:${operator}`,
    description: `Only records in which ${name} ${operatorWords[operator]}.${notes[field.kind] ?? ''}`,
    schema: operandSchema(operator, field),
  };
}

const operatorWords: { readonly [operator in ListOperator]: string } = {
  eq: 'is this value, or one of several if it is repeated',
  ne: 'is not this value, nor another one if it is repeated',
  lt: 'is less than this value',
  lte: 'is at most this value',
  gt: 'is greater than this value',
  gte: 'is at least this value',
  in: 'is any of these values; write a comma in a value as "\\," and a backslash as "\\\\"',
  contains: 'contains this text',
  starts: 'starts with this text',
  ends: 'ends with this text',
  exists: 'is filled in, or with `false` is not',
  has: 'has this value as an element, and all of them if it is repeated',
};

const notes: { readonly [kind in Field['kind']]?: string } = {
  text: ' Texts are compared by UTF-16 code units, case-sensitively and without normalisation.',
  email: ' Upper and lower case are equal.',
  timestamp: ' A date stands for its first moment.',
};

type ListOperator = Operator | 'exists';

function operandSchema(operator: ListOperator, field: Field): JsonObject {
  if (operator === 'exists') return { type: 'boolean' };
  const operand = field.kind === 'list' ? field.of : field;
  const one = { ...findKind(operand).type(operand) };
  if (operator === 'in') return { type: 'array', items: one, minItems: 1 };
  return operator === 'contains' ? { ...one, maxLength: limits.containedTextMax } : one;
}

const ownParameters: { readonly [name in OwnParameter]: (subject: ListSubject) => Described } = {
  limit: () => ({
    description: 'The maximum number of records on a page. Without it, all records are sent.',
    schema: { type: 'integer', minimum: 1, maximum: limits.pageRecordsMax },
  }),
  offset: () => ({
    description:
      'The number of records before the page. The response has the total and links to the ' +
      `first, previous, next and last page, of ${limits.pageRecordsMax} records without a \`limit\`. ` +
      'While others write, a page may skip or repeat a record; a `cursor` never does.',
    schema: { type: 'integer', minimum: 0 },
  }),
  cursor: () => ({
    description: 'The start of the page, from the Link field of the previous page.',
    schema: { type: 'string' },
  }),
  sort: ({ fields }) => ({
    description:
      'The fields to sort by; "-" before a name reverses the order. Texts are compared by ' +
      'UTF-16 code units, e-mail addresses in lower case. Records that are equal in all ' +
      'these fields are sorted by ascending id.',
    schema: {
      ...arraySchema(sortableNames(fields).flatMap((name) => [name, `-${name}`])),
      maxItems: limits.sortTermsMax,
    },
  }),
  fields: ({ fields }) => ({
    description: 'The fields to show. Without it, all fields are shown.',
    schema: arraySchema(readableNames(fields)),
  }),
  embed: ({ embeddables = [] }) => ({
    description:
      'References, to add the records that they name, and collections, to add their records that ' +
      `refer here, up to ${limits.embeddedMax} for each.`,
    schema: arraySchema(embeddables.map(({ name }) => name)),
  }),
  or: () => ({
    description:
      'Only records that fulfil at least one of up to 20 conditions, written as ' +
      '`(price:lt:10,state:eq:new)`. In a value, write a backslash before commas, parentheses ' +
      'and backslashes.',
    schema: { type: 'string', pattern: alternativesPattern },
  }),
  q: ({ fields }) => ({
    description:
      `Only records with each of up to ${limits.searchWordsMax} words, separated by white space, in ` +
      `${describeSearched(fields).join(' or ')}. Case and accents do not count.`,
    schema: { type: 'string', minLength: 1, maxLength: limits.searchLengthMax },
  }),
  owner: () => ({
    description: 'Only records that the caller created.',
    schema: { type: 'string', enum: ['me'] },
  }),
};

/** A field, an operator and a value, in which commas, parentheses and backslashes are escaped. */
const alternative = '[^:,()\\\\]+:\\w+:(?:[^,()\\\\]|\\\\.)*';
const alternativesPattern = `^\\(${alternative}(?:,${alternative}){0,19}\\)$`;

const describeSearched = (shape: Shape): string[] =>
  searchedPaths(shape).map((name) =>
    Object.hasOwn(splitShape(shape).fields, name) ? name : 'any other member',
  );

function arraySchema(names: readonly string[]): JsonObject {
  return { type: 'array', items: { type: 'string', enum: names }, minItems: 1 };
}
