// @ts-check
/**
 * Reads the server's collections and their fields from its OpenAPI document: declarations
 * (`x-collections`) and schemas, which bound the values. Formats values in the reader's language.
 * Does not touch the DOM.
 */

/** @import { ApiDescription, Collection, Content, Declared, Field, Filter } from '../types.js' */
/** @import { Kind, Lists, Schema } from '../types.js' */

/** The filter operators that are offered, in words. @type {{ [operator: string]: string }} */
const operators = {
  has: 'has',
  contains: 'contains (case matters)',
  starts: 'starts with (case matters)',
  ends: 'ends with (case matters)',
  eq: 'is',
  in: 'is any of',
  ne: 'is not',
  between: 'between',
  gte: 'at least',
  lte: 'at most',
  empty: 'is empty',
  filled: 'is not empty',
};

/** The operators of times. @type {{ [operator: string]: string }} */
const timeOperators = {
  last: 'in the last',
  ...operators,
  gte: 'on or after',
  lte: 'on or before',
  gt: 'after',
  lt: 'before',
};

/**
 * The operators that the server does not know, translated to its own.
 * @type {{ [operator: string]: string[] }}
 */
const meanings = { last: ['gte'], between: ['gte', 'lte'], empty: ['exists'], filled: ['exists'] };

const periods = ['1 day', '7 days', '30 days', '90 days', '365 days'];

/** The operators with only one value. @type {{ [operator: string]: string }} */
const onlyValues = { empty: 'false', filled: 'true' };

/** @param {ApiDescription} description @returns {Collection[]} */
export function readCollections({ paths, components: { schemas }, 'x-collections': all }) {
  /** @type {(of?: Content) => Schema | undefined} */
  const findSchema = ({ content } = {}) => {
    const { schema } = content?.['application/json'] ?? {};
    return schema?.$ref ? schemas[schema.$ref.split('/').at(-1) ?? ''] : schema;
  };
  return all.map((declaration) => {
    const { name, singular, single, value, timestamps, lists, display, group, builtIn } =
      declaration;
    const { get: list, post: create, put, patch } = paths[`/${name}`] ?? {};
    const one = single ? { get: list, patch, delete: undefined } : (paths[`/${name}/{id}`] ?? {});
    const { get: read, patch: change, delete: remove } = one;
    const shapes = [
      schemas[singular.replace(/./u, (first) => first.toUpperCase())],
      findSchema((create ?? put)?.requestBody),
      findSchema(change?.requestBody),
    ].map((shape, _, [, input]) => (value ? shapeOfValue(input) : shape));
    const declarations = new Map(
      Object.entries({ ...serverFields, id: declaration.id, value, ...declaration.fields }),
    );
    const names = shapes.flatMap((shape) => Object.keys(shape?.properties ?? {}));
    const fields = [...new Set(names)].map((each) =>
      readField(each, shapes, declarations.get(each), lists?.sort),
    );
    const template = display ?? chooseDisplay(fields);
    return {
      name,
      fields,
      filters: fields.flatMap((field) =>
        field.name === 'id' ? [] : listLeaves(field).flatMap((leaf) => readFilters(leaf, lists)),
      ),
      one: words(singular),
      title: capitalized(name),
      // A title of several fields replaces the id.
      nameField: /^\{([^{}]+)\}$/u.exec(template)?.[1] ?? 'id',
      single: !!single && (value ? 'value' : 'fields'),
      sortMax: list?.parameters?.find((each) => each.name === 'sort')?.schema.maxItems ?? 1,
      bulkMax: findSchema(paths[`/${name}/batch`]?.post?.requestBody)?.maxItems ?? 1,
      isOpenEnded: !!declaration.additional,
      newestFirst: timestamps ? '-createdAt,-id' : undefined,
      display: template,
      group,
      isHidden: !!declaration.hidden,
      isUsers: builtIn === 'users',
      hasSearch: !!lists?.parameters.includes('q'),
      hasOwners: !!lists?.parameters.includes('owner'),
      operations: single
        ? { list, read, put, change: value ? put : change }
        : { list, read, create, change, remove },
    };
  });
}

/** @type {(field: Field, lists?: Lists) => Filter[]} */
function readFilters(field, lists) {
  const name = field.name.replaceAll('/', '.');
  const taken = /** @type {readonly string[]} as declared */ (own(lists?.filters, name) ?? []);
  /** @type {{ [operator: string]: Partial<Field> }} */
  const operands = {
    has: toElement(field),
    in: { kind: 'list', declared: { of: field.declared }, schema: { items: field.schema } },
    last: { kind: 'choice', declared: { values: periods }, schema: {} },
  };
  return Object.entries(field.kind === 'time' ? timeOperators : operators).flatMap(
    ([operator, words]) => {
      const needed = meanings[operator] ?? [operator];
      const value = onlyValues[operator];
      if (!needed.every((each) => taken.includes(each)) || (value && field.isRequired)) return [];
      const names = (operator === 'last' ? [operator] : needed).map((each) =>
        each === 'eq' ? name : `${name}:${each}`,
      );
      return { names, operator: words, value, field: { ...field, ...operands[operator] } };
    },
  );
}

/**
 * Returns an own member of an object: a field may be called `constructor`.
 * @type {(object: unknown, name: string) => unknown}
 */
export const own = (object, name) =>
  Object.hasOwn(Object(object), name) ? Object(object)[name] : undefined;

/** Fields that name a record, the best first. */
const naming = ['title', 'name', 'label', 'subject', 'username'];

/**
 * Returns what a record without a `display` is called: the field with one of these names, or else the first text or
 * address, or else the first reference with the first other field.
 * @param {readonly Field[]} fields
 */
function chooseDisplay(fields) {
  const shown = fields.filter(({ shown, name, kind }) => shown && name !== 'id' && kind !== 'list');
  const alike = (/** @type {string} */ wanted) =>
    shown.filter(
      ({ name, kind, declared }) =>
        !/Ids?$/u.test(name) && (kind === wanted || declared.like === wanted),
    );
  const texts = alike('text');
  const named = naming.flatMap((name) => texts.find((each) => each.name === name) ?? []);
  const [first] = [...named, ...texts, ...alike('email')];
  if (first) return `{${first.name}}`;
  const reference = shown.find(findTarget);
  const other = shown.find((each) => !findTarget(each) && each.kind !== 'json');
  return reference && other ? `{${reference.name}} · {${other.name}}` : '{id}';
}

/** A single value counts as a record with one field. @param {Schema} [schema] @returns {Schema} */
const shapeOfValue = ({ properties, ...value } = {}) => ({
  properties: { value },
  required: ['value'],
});

/**
 * The fields without a declaration, which the server fills in or accepts.
 * @type {{ [name: string]: Declared }}
 */
const serverFields = {
  createdAt: { kind: 'timestamp' },
  updatedAt: { kind: 'timestamp' },
  password: { kind: 'password' },
  currentPassword: { kind: 'password', label: 'Current password (for a new email)' },
  keepKeys: { kind: 'boolean' },
};

/**
 * @type {(name: string, shapes: readonly (Schema | undefined)[], declared?: Declared,
 *   sortable?: readonly unknown[]) => Field}
 */
function readField(name, shapes, declared = { kind: 'integer' }, sortable) {
  const [shown, created, changed] = shapes.map(
    (shape) => /** @type {Schema | undefined} */ (own(shape?.properties, name)),
  );
  const schema = created ?? changed ?? shown ?? {};
  return {
    name,
    schema,
    declared,
    label: declared.label ?? capitalized(toLabel(name, declared)),
    kind: toKind(declared),
    shown: !!shown,
    created: !!created && !created.readOnly,
    changed: !!changed && !changed.readOnly,
    isRequired: !!shapes[1]?.required?.includes(name),
    isOptional: !!changed?.type?.includes('null'),
    isSortable: !!sortable?.includes(name),
  };
}

/**
 * Labels a field: `customerId` is a customer, `itemIds` are items, and `relatedIds` are what is
 * related.
 * @type {(name: string, declared: Declared) => string}
 */
function toLabel(name, { to, of }) {
  const many = of?.to;
  const base = (many ?? to) ? name.replace(/Ids?$/u, '') : name;
  return many?.startsWith(base.slice(0, -1)) ? many : base;
}

/** The declared kinds with another name here. @type {{ [kind: string]: Kind }} */
const kinds = { timestamp: 'time', object: 'json', any: 'text' };

/**
 * @param {Declared} declared @returns {Kind}
 */
function toKind({ kind = 'json', multiline, of }) {
  if (multiline) return 'long';
  // A list of lists or objects is edited as a whole.
  if (of && ['list', 'json'].includes(toKind(of))) return 'json';
  return kinds[kind] ?? /** @type {Kind} the other kinds have the same names */ (kind);
}

/**
 * Returns the fields of an object, at all depths, or the field itself. A nested field's name is its
 * path: `address/city`. With `isClosed`, an object with additional members is one field.
 * @type {(field: Field, isClosed?: boolean) => Field[]}
 */
export function listLeaves(field, isClosed = false) {
  const { name: path, schema: object, declared: outer, label: prefix, within = [] } = field;
  if (!object.properties || (isClosed && object.additionalProperties !== false)) return [field];
  const isNested = path.includes('/');
  return Object.entries(object.properties).flatMap(([name, schema]) => {
    const isRequired = !!object.required?.includes(name);
    const declared = outer.fields?.[name] ?? {};
    const label = toLabel(name, declared);
    const nested = {
      ...field,
      schema,
      declared,
      name: `${path}/${name}`,
      label: capitalized(isNested ? `${prefix} ${label}` : label),
      kind: toKind(declared),
      isRequired,
      isOptional: !isRequired || !!schema.type?.includes('null'),
      within: field.isRequired ? within : [...within, path],
    };
    return listLeaves(nested, isClosed);
  });
}

/** @param {Field} field @returns {Field} */
export function toElement(field) {
  const { schema, declared } = field;
  const { of = {} } = declared;
  return {
    ...field,
    schema: schema.items ?? {},
    declared: of,
    kind: toKind(of),
    isRequired: true,
    isOptional: false,
  };
}

/** @param {Field} field */
export const findTarget = ({ declared: { to, of } }) => to ?? of?.to;

/**
 * Returns what removing a record does to the records whose field refers to it.
 * @param {Field} field
 */
export const readOnDelete = ({ declared: { onDelete, of } }) =>
  onDelete ?? of?.onDelete ?? 'refuse';

/** @param {string} name */
const words = (name) => name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|[-_]/gu, ' ').toLowerCase();
const abbreviations = /\b(?:api|ean|gtin|iban|id|ip|isbn|json|pdf|sku|uri|url|uuid|vat)\b/giu;
/** Turns a name into words, the first one capitalized. @param {string} name */
export const capitalized = (name) =>
  words(name)
    .replace(/./u, (first) => first.toUpperCase())
    .replaceAll(abbreviations, (short) => short.toUpperCase());

export const locale = globalThis.navigator?.language ?? 'en';
const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 });
const times = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });

/** @param {number} value */
export const showNumber = (value) => numbers.format(value);

const decimals = [0, 1, 2, 3, 4].map(
  (digits) =>
    new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

/**
 * @type {(value: number, digits: number) => string}
 */
export const showFigure = (value, digits) => decimals[digits]?.format(value) ?? showNumber(value);

/** Returns how many decimals a column needs, four at most. @param {readonly unknown[]} values */
export const countDigits = (values) =>
  values.reduce((/** @type {number} */ most, value) => {
    const { length = 0 } = `${value ?? ''}`.split(/[.e]/u)[1] ?? '';
    return Math.min(Math.max(most, length), decimals.length - 1);
  }, 0);

/** @param {string} iso */
export const showTime = (iso) => times.format(new Date(iso));

const ages = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
/** @type {readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][]} */
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
const agesDaysMax = 30;

/** Formats a time relative to now, or by its date if it is far away. @param {string} iso */
export function showAge(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  if (Math.abs(seconds) > agesDaysMax * 86_400) return showTime(iso);
  return ages.format(Math.round(seconds / size), unit);
}

/**
 * @type {(field: Field, value: unknown) => string}
 */
export function toShow({ kind, name, declared: { format } }, value) {
  if (value === undefined || value === null) return '–';
  if (kind === 'json' && typeof value === 'object') return JSON.stringify(value);
  if (kind === 'time') return showTime(`${value}`);
  if (kind === 'boolean') return `${value}` === 'true' ? 'Yes' : 'No';
  if (Array.isArray(value)) return value.join(', ');
  const isNumber = name !== 'id' && (kind === 'number' || kind === 'integer');
  if (!isNumber) return `${value}`;
  if (!format) return showNumber(Number(value));
  /** @type {Intl.NumberFormatOptions} */
  const options =
    typeof format === 'object'
      ? { style: 'currency', currency: format.money }
      : { style: 'percent', maximumFractionDigits: 4 };
  return Number(value).toLocaleString(locale, options);
}

const shortMax = 80;

/**
 * Summarizes an object or a list: its texts and numbers, and the names of true members.
 * @type {(value: unknown, name?: string) => string}
 */
export function inShort(value, name = '') {
  if (typeof value === 'object')
    return Object.entries(value ?? {})
      .map(([key, each]) => inShort(each, key))
      .filter(Boolean)
      .join(', ')
      .slice(0, shortMax);
  if (typeof value === 'boolean') return value ? capitalized(name) : '';
  return typeof value === 'number' ? showNumber(value) : `${value ?? ''}`;
}

/** Access words that include every signed-in user. `self` is your own user. */
const openWords = ['public', 'optional', 'user', 'self', 'session'];

/**
 * Returns the words of an access rule. One is enough.
 * @type {(of: Collection, operation: string) => string[]}
 */
export const listWords = ({ operations }, operation) =>
  operations[operation]?.['x-access']?.split(' or ') ?? [];

/**
 * @type {(of: Collection, operation: string) => boolean}
 */
export const isOpen = (of, operation) =>
  listWords(of, operation).some((word) => openWords.includes(word));

/**
 * True if a role may carry out an operation. `holds` decides words that depend on a record; by
 * default, permission on some records is enough.
 * @type {(of: Collection, operation: string, role?: string, holds?: (word: string) => boolean) => boolean}
 */
export const isAllowed = (of, operation, role, holds = () => true) =>
  listWords(of, operation).some(
    (word) =>
      role === 'admin' ||
      role === word ||
      openWords.includes(word) ||
      // Only `owner` and fields depend on the record.
      ((word === 'owner' || of.fields.some(({ name }) => name === word)) && holds(word)),
  );
