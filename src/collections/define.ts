import { isByRecord, isRole, roles, wordsOf } from '../auth/access.ts';
import { InvariantError, invariant } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import { didYouMean } from '../base/search.ts';
import {
  aFlag,
  aText,
  checkField,
  elements,
  isFieldName,
  isObject,
  maybe,
  members,
  nameRule,
  must,
  oneOf,
  type Check,
  type Report,
} from '../schema/declaration.ts';
import { referenceIn, type Field } from '../schema/field.ts';
import {
  anyAccess,
  declare,
  displayedFields,
  standardAccess,
  timestampFields,
  type CollectionDeclaration,
  type CollectionDefinition,
} from './declaration.ts';
import { items as itemsCollection } from './items.ts';
import { camelCase, singularize } from './nouns.ts';
import type { Served } from './served.ts';

/** The checks of collections, which are loaded only where somebody declares some. */

/**
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, as `items` is
 * declared.
 * @throws InvariantError with all mistakes
 */
export function defineCollection<const D extends CollectionDefinition>(
  definition: D,
): DefinedCollection<D> {
  const name: unknown = isObject(definition) ? definition.name : definition;
  const subject = `Cannot declare the collection ${JSON.stringify(name)}: `;
  refuseMistakes(subject, (report) => checkCollection(definition, '', report));
  const [named] = withSingulars({ items: false, users: false, collections: [definition] });
  invariant(named !== undefined, 'each definition is named');
  // It has its definition, of which the name is.
  return declare(named) as DefinedCollection<D>;
}

/** A declared collection, with its definition, from which the types of its records follow. */
export interface DefinedCollection<
  D extends CollectionDefinition = CollectionDefinition,
> extends CollectionDeclaration {
  readonly name: D['name'];
  readonly definition: D;
}

/** Declarations that break a rule. The message has all mistakes, each with its place. */
export class DeclarationError extends InvariantError {
  constructor(subject: string, mistakes: readonly string[]) {
    const [first, ...others] = mistakes;
    const all =
      others.length === 0 ? first : `${mistakes.length} mistakes\n  ${mistakes.join('\n  ')}`;
    super(subject + all);
  }
}

/**
 * Runs a check of declarations. `subject` begins the message.
 * @throws DeclarationError with all mistakes that the check reports
 */
export function refuseMistakes(subject: string, check: (report: Report) => void): void {
  const mistakes: string[] = [];
  check((pointer, problem) => mistakes.push(`${pointer || 'the document'} ${problem}`));
  if (mistakes.length > 0) throw new DeclarationError(subject, mistakes);
}

/**
 * Returns the check of the access of a collection with these fields. `roles` are those that are
 * declared. Absent: they are not known yet, and any name can be one.
 */
function checkAccess(fields: unknown, roles?: readonly string[]): Check {
  const names = isObject(fields) ? Object.keys(fields) : [];
  return (value, at, report) => {
    const cells = Object.keys(standardAccess).map((operation) => [
      operation,
      maybe(checkCell(wordsFor(operation, fields), names, roles)),
    ]);
    if (!members(Object.fromEntries(cells))(value, at, report)) return false;
    if (!isObject(value) || ![value['read']].flat().some((word) => isByRecord(String(word))))
      return true;
    const open = Object.keys(value).filter((name) => name !== 'create' && value[name] === 'public');
    for (const name of open)
      report(
        `${at}/${name}`,
        'must not be "public", since "read" asks who it is: write "optional"',
      );
    return open.length === 0;
  };
}

/** Returns the words that the cell of an operation takes, but for declared roles. */
function wordsFor(operation: string, fields: unknown): readonly string[] {
  if (operation === 'create' || !isObject(fields)) return anyAccess;
  const people = Object.keys(fields).filter((name) => targetOf(fields[name]) === 'users');
  return [...anyAccess, 'owner', ...people];
}

/** Returns to what a field refers, or the elements of a list; `undefined` where they do not. */
function targetOf(field: unknown): unknown {
  if (!isObject(field)) return undefined;
  if (field['kind'] === 'list') return targetOf(field['of']);
  return field['kind'] === 'reference' ? field['to'] : undefined;
}

/** Returns the check of a word of access, or of a list of words. */
function checkCell(
  words: readonly string[],
  fields: readonly string[],
  roles?: readonly string[],
): Check {
  return (value, at, report) => {
    const isList = Array.isArray(value);
    const all: readonly unknown[] = isList ? value : [value];
    if (all.length === 0) report(at, 'must be a word or a list of words');
    const check = (word: unknown, index: number): boolean => {
      const known = [...words, ...(roles ?? [word].filter(isRole))];
      const problem = problemOf(word, all, known, fields);
      if (problem !== undefined) report(isList ? `${at}/${index}` : at, problem);
      return problem === undefined;
    };
    return all.map(check).every(Boolean) && all.length > 0;
  };
}

/** Returns what is wrong with a word of a cell. */
function problemOf(
  word: unknown,
  all: readonly unknown[],
  words: readonly string[],
  fields: readonly string[],
): string | undefined {
  if (all.filter((other) => other === word).length > 1) return 'must be there once';
  if (word === 'public' && all.length > 1) return 'must stand alone: write "optional" instead';
  if (words.some((known) => known === word)) return undefined;
  const shown = typeof word === 'string' ? JSON.stringify(word) : String(word);
  const isKnown = typeof word === 'string' && fields.includes(word);
  const why = isKnown && words.includes('owner') ? ', which is a field that refers to no user' : '';
  const meant = typeof word === 'string' && !isKnown ? didYouMean(word, words) : '';
  return `must be one of ${words.join(', ')}, not ${shown}${why}${meant}`;
}

const isNewRole = (value: unknown): boolean => isRole(value) && !roles.includes(value);

/** Checks the roles that an installation adds. */
export const checkRoles = elements(
  'an array of roles',
  0,
  must('1 to 40 lower-case letters, digits and "-" that are no word of access', isNewRole),
);

/** Singulars with schemas or operations that are already in the OpenAPI document. */
const reservedSingulars = ['health', 'status', 'minute', 'issue', 'problem'];
/** Those of a server with users. */
const accountSingulars = [
  'user',
  'userName',
  'session',
  'startedSession',
  'apiKey',
  'madeApiKey',
  'token',
  'tokens',
  'credentials',
  'refreshToken',
  'logout',
  'dashboard',
  'counts',
];
/** Names of schemas derived from other collections, by how they start and end. */
const derivedStart = /^(?:new|many)[A-Z]/;
const derivedEnd = /[a-z0-9](?:Replacement|Patch|WithEmbedded)$/;
const reservedFields = ['id', 'revision', 'ownerId'];

const isMatch = (pattern: RegExp) => (value: unknown) =>
  typeof value === 'string' && pattern.test(value);

const checkName = must(
  '1 to 63 letters, digits, "_" and "-", not "-" first',
  isMatch(/^\w[\w-]{0,62}$/),
);
const checkSingular = must('one word of letters and digits', isMatch(/^[a-z][A-Za-z0-9]{0,62}$/));

/** Whether the API uses a singular for something else, on a server with or without users. */
function isReserved(singular: string, hasUsers: boolean): boolean {
  const reserved = hasUsers ? [...reservedSingulars, ...accountSingulars] : reservedSingulars;
  return reserved.includes(singular) || derivedStart.test(singular) || derivedEnd.test(singular);
}

/** A definition with its singular. */
type NamedDefinition = CollectionDefinition & Pick<CollectionDeclaration, 'singular'>;

/** Returns what is served, where singulars that were left out follow from the names. */
export function withSingulars({
  items: hasItems = true,
  users = true,
  collections = [],
}: Served<CollectionDefinition>): readonly NamedDefinition[] {
  const taken = new Set(collections.map(({ singular }) => singular));
  if (hasItems) taken.add(itemsCollection.singular);
  return collections.map((each) => {
    let { singular } = each;
    if (singular === undefined) {
      singular = each.single ? wordOf(each.name) : wordOf(singularize(each.name));
      while (taken.has(singular) || isReserved(singular, users))
        singular = derivedStart.test(singular) ? wordOf(`entry-${singular}`) : `${singular}Entry`;
      taken.add(singular);
    }
    return { ...each, singular };
  });
}

/** Returns a name as a word of letters and digits. */
const wordOf = (name: string): string => camelCase(name).replace(/^\d*$|^(?=\d)/, 'entry$&');

/** Returns a check that ends at the first mistake. */
function every(...checks: readonly Check[]): Check {
  return (value, at, report) => checks.every((check) => check(value, at, report));
}

/** Checks what ids are. */
const checkId: Check = (value, at, report) => {
  const known = { kind: oneOf(['integer', 'text', 'any']), given: maybe(aFlag) };
  if (!members(known)(value, at, report)) return false;
  const isGiven = !isObject(value) || value['kind'] === 'integer' || value['given'] !== false;
  if (!isGiven) report(`${at}/given`, 'must be true or left out: such ids can always be given');
  return isGiven;
};

/** Checks the declaration of a collection, or of a single resource. */
export const checkCollection: Check = (value, at, report) => {
  const given = isObject(value) ? value : {};
  const isSingle = given['single'] === true;
  const common = {
    name: every(aText, checkName),
    singular: maybe(every(aText, checkSingular)),
    single: maybe(aFlag),
    group: maybe(aText),
    hidden: maybe(aFlag),
  };
  const object: { readonly [name: string]: Check } = {
    fields: (fields, place) => checkFields(fields, place, report, given['timestamps'] === true),
    timestamps: maybe(aFlag),
    additional: maybe(aFlag),
  };
  if (!isSingle)
    return members({
      ...common,
      id: maybe(checkId),
      ...object,
      access: maybe(checkAccess(given['fields'])),
      display: maybe(checkDisplay(given)),
      ownerRemoved: maybe(oneOf(['keep', 'remove'])),
    })(value, at, report);
  const isGood = members({
    ...common,
    access: maybe(members({ read: singleAccess, replace: singleAccess, patch: singleAccess })),
    ...('value' in given ? { value: checkField } : object),
  })(value, at, report);
  const all = isObject(given['fields']) ? given['fields'] : { value: given['value'] };
  const wrong = Object.entries(all).filter(([, field]) => targetOf(field) !== undefined);
  for (const [name] of wrong)
    report(at + pointerTo(name), 'must not refer: a single resource does not');
  return isGood && wrong.length === 0;
};

/** Returns the check of the `display` of a collection: its braces name fields of the record. */
const checkDisplay =
  ({ fields, timestamps }: { readonly [member: string]: unknown }): Check =>
  (value, at, report) => {
    if (typeof value !== 'string' || value === '') return aText(value, at, report);
    const own = isObject(fields) ? Object.keys(fields) : [];
    const known = ['id', ...own, ...(timestamps === true ? Object.keys(timestampFields) : [])];
    const names = displayedFields(value);
    if (names === undefined) report(at, 'must close each brace: write "{{" for one that is shown');
    const unknown = (names ?? []).filter((name) => !known.includes(name));
    for (const name of unknown)
      report(at, `must name fields in braces, not "${name}"${didYouMean(name, known)}`);
    return names !== undefined && unknown.length === 0;
  };

const singleAccess = maybe(checkCell(anyAccess, []));

/** Checks who may set fields, and that all who may create a record can leave the others out. */
function checkSetters(
  { fields = {}, value, single, access = {} }: CollectionDefinition,
  place: string,
  declared: readonly string[],
  report: Report,
): void {
  const isWord = oneOf(['owner', ...roles, ...declared]);
  const makers = single ? wordsOf(access.replace ?? 'admin') : wordsOf(access.create ?? 'user');
  const check = (field: Field, at: string): void => {
    const { set, optional, nullable, default: fallback } = field;
    for (const [index, word] of set?.entries() ?? []) isWord(word, `${at}/set/${index}`, report);
    // Only signed-in callers own what they create, and a single resource has no owner.
    const sets = (maker: string): boolean =>
      maker === 'admin' ||
      set?.includes(maker) === true ||
      (set?.includes('owner') === true && !single && !isAnonymous(maker));
    const mayBeAbsent = optional === true || nullable === true || fallback !== undefined;
    if (set !== undefined && !mayBeAbsent && !makers.every(sets))
      report(at, 'needs a default, or must be optional: not all who may create may set it');
    if (field.kind !== 'object') return;
    for (const [name, one] of Object.entries(field.fields))
      check(one, `${at}/fields${pointerTo(name)}`);
  };
  for (const [name, field] of Object.entries(fields))
    check(field, `${place}/fields${pointerTo(name)}`);
  if (value !== undefined) check(value, `${place}/value`);
}

const isAnonymous = (word: string): boolean => word === 'public' || word === 'optional';

/** How the name of such a field ends: what it refers to is embedded by the rest of the name. */
function endingOf(field: Field): string {
  if (referenceIn(field) === undefined) return '';
  return field.kind === 'list' ? 'Ids' : 'Id';
}

/**
 * Reports what is wrong with collections that are served together, by its place in a file.
 * `taken`: names that they cannot have.
 */
export function checkServed(
  {
    items: hasItems = true,
    users = true,
    roles = [],
    collections = [],
  }: Served<CollectionDefinition>,
  taken: readonly string[],
  report: Report,
): void {
  checkRoles(roles, '/roles', report);
  const all = new Map<string, CollectionDefinition>(hasItems ? [['/items', itemsCollection]] : []);
  for (const [index, each] of collections.entries()) all.set(`/collections/${index}`, each);
  const names = new Map(taken.map((name) => [name.toLowerCase(), name]));
  const singulars = new Set<string>();
  for (const [place, { name, singular, fields, access = {} }] of all) {
    checkAccess(fields, roles)(access, `${place}/access`, report);
    const known = names.get(name.toLowerCase());
    if (known !== undefined)
      report(`${place}/name`, `"${name}" is taken${known === name ? '' : `, as "${known}"`}`);
    names.set(name.toLowerCase(), name);
    if (singular === undefined) continue;
    if (singulars.has(singular))
      report(`${place}/singular`, `"${singular}" is the singular of another collection`);
    if (isReserved(singular, users))
      report(
        `${place}/singular`,
        `must be a word that the API uses for nothing else, not "${singular}"`,
      );
    singulars.add(singular);
  }
  for (const [place, definition] of all) checkSetters(definition, place, roles, report);
  const targets = [...all.values()].filter(({ single }) => single !== true);
  const isTarget = oneOf([...targets.map(({ name }) => name), ...(users ? ['users'] : [])]);
  for (const [place, { fields = {}, ownerRemoved }] of all) {
    if (!users && ownerRemoved !== undefined)
      report(`${place}/ownerRemoved`, 'must be left out: there are no users');
    for (const [name, field] of Object.entries(fields)) {
      const reference = referenceIn(field);
      if (reference === undefined) continue;
      const at = `${place}/fields${pointerTo(name)}${field.kind === 'list' ? '/of' : ''}`;
      isTarget(reference.to, `${at}/to`, report);
      const isUser = users && reference.to === 'users';
      if (isUser && reference.onDelete === undefined)
        report(`${at}/onDelete`, 'must be refuse, remove or clear, for when the user is removed');
      if (!isUser && reference.show !== undefined)
        report(`${at}/show`, 'must be left out: it is for references to users');
    }
  }
}

function checkFields(fields: unknown, at: string, report: Report, timestamps: boolean): boolean {
  if (!isObject(fields)) {
    report(at, 'must be an object that names the fields');
    return false;
  }
  const reserved = [...reservedFields, ...(timestamps ? Object.keys(timestampFields) : [])];
  /** The names of all fields, and the former ones of the fields so far. */
  const taken = new Set([...reserved, ...Object.keys(fields)]);
  const checkOne = ([name, field]: readonly [string, unknown]): boolean => {
    const place = at + pointerTo(name);
    const refuse = (problem: string): false => {
      report(place, problem);
      return false;
    };
    const former = isObject(field) ? field['renamedFrom'] : undefined;
    if (typeof former === 'string') {
      if (taken.has(former))
        report(`${place}/renamedFrom`, `must be the name of no other field, not "${former}"`);
      taken.add(former);
    }
    if (reserved.includes(name)) return refuse('has a name that is reserved for every record');
    if (!isFieldName.test(name)) return refuse(nameRule);
    if (!checkField(field, place, report)) return false;
    // The field was checked.
    const ending = endingOf(field as Field);
    const isNamed = name.endsWith(ending) && name !== ending;
    return isNamed || refuse(`needs a name that ends in "${ending}"`);
  };
  return Object.entries(fields).map(checkOne).every(Boolean);
}
