import { InvariantError } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import {
  aFlag,
  aText,
  checkField,
  isFieldName,
  isObject,
  maybe,
  members,
  must,
  oneOf,
  type Check,
  type Report,
} from '../schema/declaration.ts';
import { referenceIn, type Field } from '../schema/field.ts';
import {
  anyAccess,
  declare,
  standardAccess,
  timestampFields,
  type CollectionDeclaration,
  type CollectionDefinition,
} from './declaration.ts';
import { items as itemsCollection } from './items.ts';
import { servedCollections, type Served } from './served.ts';

/** The checks of collections, which are loaded only where somebody declares some. */

/**
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, as `items` is
 * declared.
 * @throws DeclarationError with all mistakes
 */
export function defineCollection(definition: CollectionDefinition): CollectionDeclaration {
  const subject = `Cannot declare the collection ${JSON.stringify(definition.name)}: `;
  refuseMistakes(subject, (report) => checkCollection(definition, '', report));
  return declare(definition);
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

const accessMembers = Object.fromEntries(
  Object.entries(standardAccess).map(([operation, standard]) => {
    const allowed = standard === 'owner' ? [...anyAccess, standard] : anyAccess;
    return [operation, maybe(oneOf(allowed))];
  }),
);

/** Singulars whose schemas or operations are already in the OpenAPI document. */
const reservedSingulars = [
  'user',
  'session',
  'startedSession',
  'token',
  'tokens',
  'credentials',
  'refreshToken',
  'logout',
  'dashboard',
  'counts',
  'health',
  'status',
  'minute',
  'issue',
  'problem',
];
/** Names of schemas derived from other collections. */
const derivedTitle = /^new[A-Z]|[a-z0-9](?:Replacement|Patch|WithEmbedded)$/;
/** Names of other files in the data directory. */
const reservedNames = ['keys', 'idempotency-keys'];
const reservedFields = ['id', 'revision', 'ownerId'];

const isMatch = (pattern: RegExp) => (value: unknown) =>
  typeof value === 'string' && pattern.test(value);
const isNone = (reserved: readonly string[]) => (value: unknown) =>
  !reserved.some((one) => one === value);

const checkName = every(
  must('a name of lower-case letters, digits and "-"', isMatch(/^[a-z][a-z0-9-]{0,62}$/)),
  must('a name that no file of keys has', isNone(reservedNames)),
);
const checkSingular = every(
  must('one word of letters and digits', isMatch(/^[a-z][A-Za-z0-9]{0,62}$/)),
  must(
    'a word that the API uses for nothing else',
    (value) => isNone(reservedSingulars)(value) && !isMatch(derivedTitle)(value),
  ),
);

/** Returns a check that ends at the first mistake. */
function every(...checks: readonly Check[]): Check {
  return (value, at, report) => checks.every((check) => check(value, at, report));
}

/** Checks the declaration of a collection. */
export const checkCollection: Check = (value, at, report) => {
  const timestamps = isObject(value) && value['timestamps'] === true;
  return members({
    name: every(aText, checkName),
    singular: every(aText, checkSingular),
    fields: (fields, place) => checkFields(fields, place, report, timestamps),
    access: maybe(members(accessMembers)),
    timestamps: maybe(aFlag),
    additional: maybe(aFlag),
  })(value, at, report);
};

/** How the name of such a field ends: what it refers to is embedded by the rest of the name. */
function endingOf(field: Field): string {
  if (referenceIn(field) === undefined) return '';
  return field.kind === 'list' ? 'Ids' : 'Id';
}

/**
 * Refuses collections of a program that contradict each other.
 * @throws InvariantError for one that was not declared; DeclarationError with all mistakes
 */
export function refuseContradictions(served: Served): void {
  servedCollections(served);
  refuseMistakes('Cannot serve the collections: ', (report) => checkServed(served, [], report));
}

/**
 * Reports what is wrong with collections that are served together, by its place in a file.
 * `taken`: names that they cannot have.
 */
export function checkServed(
  { items: hasItems = true, collections = [] }: Served<CollectionDefinition>,
  taken: readonly string[],
  report: Report,
): void {
  const all = new Map<string, CollectionDefinition>(hasItems ? [['/items', itemsCollection]] : []);
  for (const [index, each] of collections.entries()) all.set(`/collections/${index}`, each);
  const names = new Set(taken);
  const singulars = new Set<string>();
  for (const [place, { name, singular }] of all) {
    if (names.has(name)) report(`${place}/name`, `"${name}" is taken`);
    if (singulars.has(singular))
      report(`${place}/singular`, `"${singular}" is the singular of another collection`);
    names.add(name);
    singulars.add(singular);
  }
  const isTarget = oneOf(Array.from(all.values(), ({ name }) => name));
  for (const [place, { fields }] of all) {
    for (const [name, field] of Object.entries(fields)) {
      const reference = referenceIn(field);
      if (reference === undefined) continue;
      const at = `${place}/fields${pointerTo(name)}${field.kind === 'list' ? '/of' : ''}/to`;
      isTarget(reference.to, at, report);
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
    if (!isFieldName.test(name)) return refuse('needs a name of letters and digits');
    if (!checkField(field, place, report)) return false;
    // The field was checked.
    const ending = endingOf(field as Field);
    const isNamed = name.endsWith(ending) && name !== ending;
    return isNamed || refuse(`needs a name that ends in "${ending}"`);
  };
  return Object.entries(fields).map(checkOne).every(Boolean);
}
