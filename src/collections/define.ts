import { isByRecord, isRole, roles as standardRoles, listWords } from '../auth/access.ts';
import { InvariantError } from '../base/errors.ts';
import { isJsonObject, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { didYouMean } from '../base/likeness.ts';
import {
  anything,
  asJson,
  fieldMistakes,
  flag,
  isFieldName,
  mistakesIn,
  nameRule,
  oneOf,
  word,
  type Mistake,
} from '../schema/declaration.ts';
import { referenceIn, type Field, type Shape } from '../schema/field.ts';
import { anyAccess, declare, timestampFields } from './declare.ts';
import { standardAccess } from './items.ts';
import type { CollectionDeclaration, CollectionDefinition } from './declaration.ts';
import './declared-rules.ts';
import './indexed-reader.ts';
import { items as itemsCollection } from './items.ts';
import type { Served } from './served.ts';

/** The checks of collections, loaded only if a program or file declares some. */

/**
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, like `items`.
 * @throws DeclarationError with all mistakes
 */
export function declareCollection<const D extends CollectionDefinition>(
  definition: D,
): DefinedCollection<D> {
  const json = asJson(definition);
  const name = isJsonObject(json) ? json['name'] : json;
  const subject = `Cannot declare the collection ${JSON.stringify(name)}: `;
  refuseMistakes(subject, collectionMistakes(json, ''));
  // The name is a part of its definition.
  return declare(definition) as DefinedCollection<D>;
}

/** A declaration with its definition, from which the types of its records follow. */
export interface DefinedCollection<
  D extends CollectionDefinition = CollectionDefinition,
> extends CollectionDeclaration {
  readonly name: D['name'];
  readonly definition: D;
}

/** Invalid declarations. The message lists all mistakes with their places. */
export class DeclarationError extends InvariantError {
  constructor(subject: string, mistakes: readonly string[]) {
    const [first, ...others] = mistakes;
    const all =
      others.length === 0 ? first : `${mistakes.length} mistakes\n  ${mistakes.join('\n  ')}`;
    super(subject + all);
  }
}

/** @throws DeclarationError with all mistakes, if any. `subject` begins the message. */
export function refuseMistakes(subject: string, mistakes: readonly Mistake[]): void {
  const lines = mistakes.map(([pointer, problem]) => `${pointer || 'the document'} ${problem}`);
  if (lines.length > 0) throw new DeclarationError(subject, lines);
}

export function roleMistakes(roles: JsonValue, at: string): Mistake[] {
  if (!Array.isArray(roles)) return [[at, 'must be an array of roles']];
  const rule = 'must be 1 to 40 lower-case letters, digits and "-" that are not an access word';
  return roles.flatMap((role, index): Mistake[] =>
    isRole(role) && !standardRoles.includes(role) ? [] : [[`${at}/${index}`, rule]],
  );
}

const named: Shape = {
  name: { ...word, optional: false },
  singular: word,
  single: flag,
  group: word,
  hidden: flag,
  access: anything,
};
const valueShape: Shape = { ...named, value: anything };
const singleShape: Shape = { ...named, fields: anything, timestamps: flag, additional: flag };
const collectionShape: Shape = {
  ...singleShape,
  id: anything,
  display: { ...word, max: 1000 },
  ownerRemoved: oneOf('keep', 'remove'),
};
const idShape: Shape = {
  kind: { ...oneOf('integer', 'text', 'any'), optional: false },
  given: flag,
};

/**
 * Finds mistakes of a collection or single resource. Without `roles`, the declared ones are unknown
 * and any name is accepted.
 */
export function collectionMistakes(
  value: JsonValue | undefined,
  at: string,
  roles?: readonly string[],
): Mistake[] {
  if (!isJsonObject(value)) return [[at, 'must be an object']];
  const isSingle = value['single'] === true;
  const isValue = isSingle && Object.hasOwn(value, 'value');
  const shape = isValue ? valueShape : isSingle ? singleShape : collectionShape;
  const mistakes = mistakesIn(shape, value, at);
  const { name, singular, id, display, access } = value;
  if (typeof name === 'string' && !/^(?:\w[\w-]{0,62})?$/.test(name))
    mistakes.push([`${at}/name`, 'must be 1 to 63 letters, digits, "_" and "-", not "-" first']);
  if (typeof singular === 'string' && !/^(?:[a-z][A-Za-z0-9]{0,62})?$/.test(singular))
    mistakes.push([`${at}/singular`, 'must be one word of letters and digits']);
  mistakes.push(
    ...(isValue ? fieldMistakes(value['value'], `${at}/value`) : fieldsMistakes(value, at)),
  );
  if (access !== undefined) mistakes.push(...accessMistakes(value, `${at}/access`, roles));
  if (id !== undefined && !isSingle) {
    mistakes.push(...mistakesIn(idShape, id, `${at}/id`));
    if (isJsonObject(id) && id['kind'] !== 'integer' && id['given'] === false)
      mistakes.push([`${at}/id/given`, 'must be true or left out: such ids can always be given']);
  }
  if (typeof display === 'string') mistakes.push(...displayMistakes(value, `${at}/display`));
  if (mistakes.length > 0) return mistakes;
  // No mistake was found, so the definition has its members.
  return setterMistakes(value as unknown as CollectionDefinition, at, roles);
}

/** Returns the field names in a `display`; `undefined` if a brace is not closed. */
function displayedFields(display: string): string[] | undefined {
  const names = Array.from(display.matchAll(displayPart), ([, name]) => name);
  const rest = display.replaceAll(displayPart, '');
  return rest.includes('{') ? undefined : names.flatMap((name) => name ?? []);
}
const displayPart = /\{\{|\{([^{}]+)\}/g;

function displayMistakes({ fields, timestamps, display }: JsonObject, at: string): Mistake[] {
  const own = isJsonObject(fields) ? Object.keys(fields) : [];
  const known = ['id', ...own, ...(timestamps === true ? Object.keys(timestampFields) : [])];
  const names = displayedFields(String(display));
  if (names === undefined) return [[at, 'must close each brace: write "{{" for one that is shown']];
  if (names.length === 0) return [[at, 'must name a field in braces, such as "{name}"']];
  return names
    .filter((name) => !known.includes(name))
    .map((name) => [at, `must name fields in braces, not "${name}"${didYouMean(name, known)}`]);
}

function accessMistakes(
  { access, fields, single }: JsonObject,
  at: string,
  roles?: readonly string[],
): Mistake[] {
  const isSingle = single === true;
  const operations = isSingle ? ['read', 'replace', 'patch'] : Object.keys(standardAccess);
  if (!isJsonObject(access)) return [[at, 'must be an object, such as {"read": "public"}']];
  const shape = Object.fromEntries(operations.map((operation) => [operation, anything]));
  const mistakes = mistakesIn(shape, access, at);
  const own = isJsonObject(fields) ? fields : {};
  const people = Object.keys(own).filter((name) => findTarget(own[name]) === 'users');
  const asksWho = [access['read']].flat().some((each) => isByRecord(String(each)));
  for (const operation of operations) {
    const { [operation]: cell } = access;
    const place = `${at}/${operation}`;
    const byRecord = operation === 'create' || isSingle ? [] : ['owner', ...people];
    if (cell === undefined) continue;
    mistakes.push(
      ...cellMistakes(cell, place, [...anyAccess, ...byRecord, ...(roles ?? [])], {
        isRole: (each) => roles === undefined && isRole(each),
        isField: (each) => byRecord.length > 0 && Object.hasOwn(own, each),
      }),
    );
    if (asksWho && operation !== 'create' && cell === 'public')
      mistakes.push([place, 'must not be "public", since "read" asks who it is: write "optional"']);
  }
  return mistakes;
}

/** Returns the target of a reference, or of a list of them; `undefined` for other fields. */
function findTarget(field: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(field)) return undefined;
  if (field['kind'] === 'list') return findTarget(field['of']);
  return field['kind'] === 'reference' ? field['to'] : undefined;
}

/** Words of other servers for who may do something, with Cairn's own. */
const foreignWords = new Map([
  ['private', 'owner'],
  ['anyone', 'public'],
  ['everyone', 'public'],
  ['authenticated', 'user'],
]);

function cellMistakes(
  cell: JsonValue,
  at: string,
  words: readonly string[],
  other: { isRole(word: JsonValue): boolean; isField(word: string): boolean },
): Mistake[] {
  const all = [cell].flat();
  if (all.length === 0) return [[at, 'must be a word or a list of words']];
  return all.flatMap((each, index): Mistake[] => {
    const place = Array.isArray(cell) ? `${at}/${index}` : at;
    if (all.filter((one) => one === each).length > 1) return [[place, 'must occur once']];
    if (each === 'public' && all.length > 1)
      return [[place, 'must stand alone: write "optional" instead']];
    if (words.some((known) => known === each) || other.isRole(each)) return [];
    const problem = `must be one of ${words.join(', ')}, not ${JSON.stringify(each)}`;
    if (typeof each !== 'string') return [[place, problem]];
    if (other.isField(each))
      return [[place, `${problem}, which is a field that refers to no user`]];
    const word = foreignWords.get(each) ?? '';
    const hint = words.includes(word) ? `: write "${word}"` : didYouMean(each, words);
    const role = isRole(each) ? '; if it is a role, add it to "roles"' : '';
    return [[place, problem + (hint || role)]];
  });
}

/** Finds mistakes in `set`: everyone who may create records can leave the other fields out. */
function setterMistakes(
  { fields = {}, value, single, access = {} }: CollectionDefinition,
  at: string,
  roles?: readonly string[],
): Mistake[] {
  const mistakes: Mistake[] = [];
  const makers = single ? listWords(access.replace ?? 'admin') : listWords(access.create ?? 'user');
  const check = (field: Field, place: string): void => {
    const { set, optional, nullable, default: fallback } = field;
    const known = ['owner', ...standardRoles, ...(roles ?? set?.filter(isRole) ?? [])];
    for (const [index, each] of set?.entries() ?? [])
      if (!known.includes(each))
        mistakes.push([
          `${place}/set/${index}`,
          `must be one of ${known.join(', ')}, not "${each}"${didYouMean(each, known)}`,
        ]);
    // Only signed-in callers own what they create, and a single resource has no owner.
    const sets = (maker: string): boolean =>
      maker === 'admin' ||
      set?.includes(maker) === true ||
      (set?.includes('owner') === true && !single && maker !== 'public' && maker !== 'optional');
    const mayBeAbsent = optional === true || nullable === true || fallback !== undefined;
    if (set !== undefined && !mayBeAbsent && !makers.every(sets))
      mistakes.push([
        place,
        'needs a default, or must be optional: not all who may create may set it',
      ]);
    if (field.kind !== 'object') return;
    for (const [name, one] of Object.entries(field.fields))
      check(one, `${place}/fields${pointerTo(name)}`);
  };
  for (const [name, field] of Object.entries(fields))
    check(field, `${at}/fields${pointerTo(name)}`);
  if (value !== undefined) check(value, `${at}/value`);
  return mistakes;
}

/** Singulars whose schemas or operations are already in the OpenAPI document. */
const reservedSingulars = ['health', 'status', 'minute', 'issue', 'problem'];
/** More such singulars on a server with users. */
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
export const derivedStart = /^(?:new|many)[A-Z]/;
const derivedEnd = /[a-z0-9](?:Replacement|Patch|WithEmbedded)$/;
const reservedFields = ['id', 'revision', 'ownerId'];

/** True if the API already uses this singular. With users, those of accounts are reserved, too. */
export function isReserved(singular: string, hasUsers: boolean): boolean {
  const reserved = hasUsers ? [...reservedSingulars, ...accountSingulars] : reservedSingulars;
  return reserved.includes(singular) || derivedStart.test(singular) || derivedEnd.test(singular);
}

/** Returns the required ending of a field's name. The rest names the embedded member. */
function requiredEnding(field: JsonValue): string {
  if (findTarget(field) === undefined) return '';
  return isJsonObject(field) && field['kind'] === 'list' ? 'Ids' : 'Id';
}

function fieldsMistakes({ fields, timestamps, single }: JsonObject, above: string): Mistake[] {
  const at = `${above}/fields`;
  if (!isJsonObject(fields)) return [[at, 'must be an object that names the fields']];
  const reserved = [
    ...reservedFields,
    ...(timestamps === true ? Object.keys(timestampFields) : []),
  ];
  /** The names of all fields, and the earlier names of the fields so far. */
  const taken = new Set<JsonValue>([...reserved, ...Object.keys(fields)]);
  return Object.entries(fields).flatMap(([name, field]): Mistake[] => {
    const place = at + pointerTo(name);
    if (reserved.includes(name)) return [[place, 'has a name that is reserved for every record']];
    if (!isFieldName.test(name)) return [[place, nameRule]];
    const mistakes = fieldMistakes(field, place);
    const former = isJsonObject(field) ? field['renamedFrom'] : undefined;
    if (former !== undefined && taken.has(former))
      mistakes.push([
        `${place}/renamedFrom`,
        `must not be ${JSON.stringify(former)}, the name of another field`,
      ]);
    if (former !== undefined) taken.add(former);
    const ending = requiredEnding(field);
    if (!name.endsWith(ending) || name === ending)
      mistakes.push([place, `needs a name that ends in "${ending}"`]);
    if (single === true && ending !== '')
      mistakes.push([place, 'must not refer: a single resource does not']);
    return mistakes;
  });
}

/**
 * Finds mistakes of collections that are served together. `sound` has the valid ones by their place
 * in the file, `names` the others. `taken`: names that they cannot have.
 */
export function servedMistakes(
  sound: ReadonlyMap<string, CollectionDefinition>,
  names: readonly string[],
  { items: hasItems = true, users = true }: Served<CollectionDefinition>,
  taken: readonly string[],
): Mistake[] {
  const mistakes: Mistake[] = [];
  const all = new Map<string, CollectionDefinition>(hasItems ? [['/items', itemsCollection]] : []);
  for (const [place, definition] of sound) all.set(place, definition);
  const known = new Map(taken.map((name) => [name.toLowerCase(), name]));
  const singulars = new Set<string>();
  for (const [place, { name, singular }] of all) {
    const same = known.get(name.toLowerCase());
    if (same !== undefined)
      mistakes.push([
        `${place}/name`,
        `"${name}" is taken${same === name ? '' : `, as "${same}"`}`,
      ]);
    known.set(name.toLowerCase(), name);
    if (singular === undefined) continue;
    if (singulars.has(singular))
      mistakes.push([`${place}/singular`, `"${singular}" is the singular of another collection`]);
    if (isReserved(singular, users))
      mistakes.push([
        `${place}/singular`,
        `must be a word that the API uses for nothing else, not "${singular}"`,
      ]);
    singulars.add(singular);
  }
  const targets = [...all.values()].filter(({ single }) => single !== true).map(({ name }) => name);
  const isTarget = [...targets, ...names, ...(users ? ['users'] : [])];
  for (const [place, { fields = {}, ownerRemoved }] of all) {
    if (!users && ownerRemoved !== undefined)
      mistakes.push([`${place}/ownerRemoved`, 'must be left out: there are no users']);
    for (const [name, field] of Object.entries(fields)) {
      const { to, onDelete, show } = referenceIn(field) ?? {};
      if (to === undefined) continue;
      const at = `${place}/fields${pointerTo(name)}${field.kind === 'list' ? '/of' : ''}`;
      if (!isTarget.includes(to))
        mistakes.push([
          `${at}/to`,
          `must be one of ${isTarget.join(', ')}, not "${to}"${didYouMean(to, isTarget)}`,
        ]);
      const isUser = users && to === 'users';
      if (isUser && onDelete === undefined)
        mistakes.push([
          `${at}/onDelete`,
          'must be refuse, remove or clear, for when the user is removed',
        ]);
      if (!isUser && show !== undefined)
        mistakes.push([`${at}/show`, 'must be left out: it is for references to users']);
    }
  }
  return mistakes;
}
