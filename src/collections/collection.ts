import type { Access } from '../auth/access.ts';
import { InvariantError } from '../base/errors.ts';
import { pointerTo } from '../base/json.ts';
import { defaulted, id, readOnly, timestamp, type Field, type Shape } from '../schema/field.ts';
import { declarationProblem } from '../schema/rules.ts';

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
  /** The fields after `id`, in the order in which they are shown. */
  readonly fields: Shape;
  readonly access: CollectionAccess;
  /** Whether the server maintains `createdAt` and `updatedAt`, the last two fields. */
  readonly timestamps: boolean;
}

/** The arguments of `defineCollection`. */
export interface CollectionDefinition extends Pick<
  CollectionDeclaration,
  'name' | 'singular' | 'fields'
> {
  /** By default users can list, create and read, and owners can change and remove. */
  readonly access?: Partial<CollectionAccess> | undefined;
  readonly timestamps?: boolean | undefined;
}

/** A declaration that breaks a rule of declarations. */
export class DeclarationError extends InvariantError {
  /** The place in the declaration, as a JSON Pointer. */
  readonly pointer: string;
  readonly problem: string;

  constructor(subject: string, pointer: string, problem: string) {
    super(`${subject} ${problem}`);
    this.pointer = pointer;
    this.problem = problem;
  }
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
const serverTime = (description: string): Field =>
  readOnly(defaulted(timestamp({ description }), new Date(0).toISOString()));
const timestampFields = {
  createdAt: serverTime('When the record was created; set by the server.'),
  updatedAt: serverTime('When the record was last changed; set by the server.'),
};

const declared = new WeakSet<CollectionDeclaration>();

/** Whether `defineCollection` made, and so checked, this declaration. */
export function isDeclared(declaration: CollectionDeclaration): boolean {
  return declared.has(declaration);
}

/**
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, as `items` is
 * declared.
 * @throws DeclarationError for a name that no path or file can have, for unknown access,
 *   and for a field that contradicts its own rule
 */
export function defineCollection(definition: CollectionDefinition): CollectionDeclaration {
  const { name, singular, fields, access = {}, timestamps = false } = definition;
  checkNames(definition);
  for (const [field, declaration] of Object.entries(fields)) {
    const problem = fieldProblem(field, declaration, timestamps);
    if (problem === undefined) continue;
    throw new DeclarationError(`"${field}" in "${name}"`, `/fields${pointerTo(field)}`, problem);
  }
  checkAccess(name, access);
  const shape = { id: id(), ...fields, ...(timestamps && timestampFields) };
  const checked = {
    name,
    singular,
    fields: shape,
    access: { ...standardAccess, ...access },
    timestamps,
  };
  declared.add(checked);
  return checked;
}

/**
 * @throws DeclarationError for an unknown operation, and for access that it cannot have
 */
export function checkAccess(
  name: string,
  given: object,
): asserts given is Partial<CollectionAccess> {
  for (const [operation, access] of Object.entries(given)) {
    const standard = operations.get(operation);
    const allowed = standard === 'owner' ? [...anyAccess, standard] : anyAccess;
    if (standard !== undefined && allowed.includes(access)) continue;
    const problem =
      standard === undefined
        ? 'is not an operation'
        : `must be one of ${allowed.join(', ')}, not "${access}"`;
    throw new DeclarationError(
      `"${operation}" in "${name}"`,
      `/access${pointerTo(operation)}`,
      problem,
    );
  }
}

const operations = new Map(Object.entries(standardAccess));

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
  'issue',
  'problem',
];
/** Names of schemas derived from other collections. */
const derivedTitle = /^new[A-Z]|[a-z0-9](?:Replacement|Patch)$/;

/** @throws DeclarationError */
function checkNames({ name, singular, fields }: CollectionDefinition): void {
  const demand = (isGood: boolean, pointer: string, problem: string): void => {
    if (!isGood) throw new DeclarationError(`the collection "${name}"`, pointer, problem);
  };
  for (const [part, value] of Object.entries({ name, singular, fields })) {
    demand(value !== undefined, '', `needs "${part}"`);
  }
  demand(
    /^[a-z][a-z0-9-]{0,62}$/.test(name),
    '/name',
    'needs a name of lower-case letters, digits and "-"',
  );
  demand(!reservedNames.includes(name), '/name', 'has a name that is reserved for a file of keys');
  demand(
    /^[a-z][A-Za-z0-9]{0,62}$/.test(singular),
    '/singular',
    `needs a singular of one word, not "${singular}"`,
  );
  const isReserved = reservedSingulars.includes(singular) || derivedTitle.test(singular);
  demand(
    !isReserved,
    '/singular',
    `cannot have the singular "${singular}", which the API uses for something else`,
  );
}

/** Names of other files in the data directory. */
const reservedNames = ['keys', 'idempotency-keys'];

const fieldName = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const reservedFields = ['id', 'revision', 'ownerId'];

/** The problem of a field, to follow its name; `undefined` if there is none. */
function fieldProblem(field: string, declaration: Field, timestamps: boolean): string | undefined {
  const reserved = timestamps
    ? [...reservedFields, ...Object.keys(timestampFields)]
    : reservedFields;
  if (reserved.includes(field)) return 'has a name that is reserved for every record';
  if (!fieldName.test(field)) return 'needs a name of letters and digits';
  const { access } = declaration;
  const isUsable = access === 'read-write';
  if (!isUsable) return `must not be ${access}: nothing would set it or show it`;
  const contradiction = declarationProblem(declaration);
  return contradiction && `has ${contradiction}`;
}
