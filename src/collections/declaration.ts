import { crc32 } from 'node:zlib';
import type { Access } from '../auth/access.ts';
import { InvariantError } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import {
  aFlag,
  aText,
  checkField,
  isObject,
  maybe,
  members,
  must,
  type Check,
  type Report,
} from '../schema/declaration.ts';
import { idField, referenceIn, type Field, type Shape } from '../schema/field.ts';

/**
 * The access of each operation. Only operations that change a record can depend on its
 * owner.
 */
export interface CollectionAccess {
  readonly list: AnyAccess;
  readonly create: AnyAccess;
  readonly read: AnyAccess;
  readonly replace: AnyAccess | 'owner';
  readonly patch: AnyAccess | 'owner';
  readonly remove: AnyAccess | 'owner';
}

/** `self` is left out: it is only for users. */
const anyAccess = [
  'public',
  'optional',
  'user',
  'admin',
  'session',
] as const satisfies readonly Access[];
type AnyAccess = (typeof anyAccess)[number];

/**
 * A collection as data. Routes, validation, storage and the OpenAPI document are derived
 * from it.
 */
export interface CollectionDeclaration {
  /** The plural in lower case, as in the path `/<name>` and the file `<name>.json`. */
  readonly name: string;
  /** The name of one record, for operation ids and messages. */
  readonly singular: string;
  /** All fields of a record, in the order in which they are shown. */
  readonly fields: Shape;
  readonly access: CollectionAccess;
  /** Whether the server maintains `createdAt` and `updatedAt`, the last two fields. */
  readonly timestamps: boolean;
}

/** What a program gives to `defineCollection`, and a file of declarations contains. */
export interface CollectionDefinition extends Pick<CollectionDeclaration, 'name' | 'singular'> {
  /** The fields after `id`. */
  readonly fields: Shape;
  /** By default users can list, create and read, and owners can change and remove. */
  readonly access?: Partial<CollectionAccess> | undefined;
  readonly timestamps?: boolean | undefined;
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
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, as `items` is
 * declared.
 * @throws DeclarationError with all mistakes
 */
export function defineCollection(definition: CollectionDefinition): CollectionDeclaration {
  const subject = `Cannot declare the collection ${JSON.stringify(definition.name)}: `;
  refuseMistakes(subject, (report) => checkCollection(definition, '', report));
  return declare(definition);
}

/** Returns the declaration of a definition that was checked. */
export function declare(definition: CollectionDefinition): CollectionDeclaration {
  const { name, singular, access, timestamps = false } = definition;
  const fields = { id: idField, ...definition.fields, ...(timestamps && timestampFields) };
  const declaration = {
    name,
    singular,
    fields,
    access: { ...standardAccess, ...access },
    timestamps,
  };
  declared.add(declaration);
  return declaration;
}

const declared = new WeakSet<CollectionDeclaration>();

/** Whether `declare` made this declaration, so that it was checked. */
export function isDeclared(declaration: CollectionDeclaration): boolean {
  return declared.has(declaration);
}

const standardAccess: CollectionAccess = {
  list: 'user',
  create: 'user',
  read: 'user',
  replace: 'owner',
  patch: 'owner',
  remove: 'owner',
};

/**
 * A record written before its collection had timestamps shows the start of the Unix
 * epoch.
 */
const serverTime = (description: string): Field => ({
  kind: 'timestamp',
  readOnly: true,
  default: new Date(0).toISOString(),
  description,
});
const timestampFields = {
  createdAt: serverTime('When the record was created; set by the server.'),
  updatedAt: serverTime('When the record was last changed; set by the server.'),
};

const accessMembers = Object.fromEntries(
  Object.entries(standardAccess).map(([operation, standard]) => {
    const allowed = standard === 'owner' ? [...anyAccess, standard] : anyAccess;
    const oneOf = `one of ${allowed.join(', ')}`;
    return [operation, maybe(must(oneOf, (access) => allowed.some((known) => known === access)))];
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
  })(value, at, report);
};

/** How the name of such a field ends: what it refers to is embedded by the rest of the name. */
function endingOf(field: Field): string {
  if (referenceIn(field) === undefined) return '';
  return field.kind === 'list' ? 'Ids' : 'Id';
}

/**
 * Reports what is wrong with collections that are served together, each at its place.
 * `taken`: names that they cannot have.
 */
export function checkTogether(
  collections: ReadonlyMap<string, CollectionDefinition>,
  taken: readonly string[],
  report: Report,
): void {
  const names = new Set(taken);
  const singulars = new Set<string>();
  for (const [place, { name, singular }] of collections) {
    if (names.has(name)) report(`${place}/name`, `"${name}" is taken`);
    if (singulars.has(singular))
      report(`${place}/singular`, `"${singular}" is the singular of another collection`);
    names.add(name);
    singulars.add(singular);
  }
  const targets = Array.from(collections.values(), ({ name }) => name);
  const isTarget = must(`one of ${targets.join(', ')}`, (to) => targets.some((one) => one === to));
  for (const [place, { fields }] of collections) {
    for (const [name, field] of Object.entries(fields)) {
      const reference = referenceIn(field);
      if (reference === undefined) continue;
      const at = `${place}/fields${pointerTo(name)}${field.kind === 'list' ? '/of' : ''}/to`;
      isTarget(reference.to, at, report);
    }
  }
}

/** Identifies the shape of records: another one never answers 304. */
export function shapeTagOf(fields: Shape): string {
  const shape = Object.entries(fields).map(([name, { kind, default: fallback }]) => [
    name,
    kind,
    fallback,
  ]);
  return crc32(JSON.stringify(shape)).toString(36);
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
    if (!/^[A-Za-z][A-Za-z0-9_]{0,62}$/.test(name))
      return refuse('needs a name of letters and digits');
    if (!checkField(field, place, report)) return false;
    // The field was checked.
    const ending = endingOf(field as Field);
    const isNamed = name.endsWith(ending) && name !== ending;
    return isNamed || refuse(`needs a name that ends in "${ending}"`);
  };
  return Object.entries(fields).map(checkOne).every(Boolean);
}
