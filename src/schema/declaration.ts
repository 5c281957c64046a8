import { isScalar, pointerTo } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { didYouMean } from '../base/search.ts';
import { colorNames, likeKinds, type Field } from './field.ts';
import { hasSetters } from './setters.ts';
import { exampleOf, kinds, ruleViolation, type Kind, type MemberRule } from './kinds.ts';

/**
 * The check of declarations, which come from a file, or from a program that may be plain
 * JavaScript. All mistakes are found at once.
 */

/** Receives a mistake: its place, as a JSON Pointer, and a phrase that follows the place. */
export type Report = (pointer: string, problem: string) => void;

/** Reports what is wrong with a value at a place, and returns whether nothing is. */
export type Check = (value: unknown, at: string, report: Report) => boolean;

/** Returns the check of a value that must pass `test`. */
export function must(be: string, test: (value: unknown) => boolean): Check {
  return (value, at, report) => {
    if (test(value)) return true;
    const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
    report(at, `must be ${be}${isScalar(value) ? `, not ${shown}` : ''}`);
    return false;
  };
}

/** Returns the check of a member that may be left out. */
export const maybe =
  (check: Check): Check =>
  (value, at, report) =>
    value === undefined || check(value, at, report);

export const aText = must('a non-empty string', isText);
const aNumber = must('a number', Number.isFinite);
export const aFlag = must('true or false', (value) => typeof value === 'boolean');
const anObject = must('an object', isObject);

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the check of an object with these members and no others. */
export function members(table: { readonly [name: string]: Check }): Check {
  const known = Object.keys(table);
  return (value, at, report) => {
    if (!isObject(value)) return anObject(value, at, report);
    let isGood = true;
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(table, name)) continue;
      report(at + pointerTo(name), `is not a known member${didYouMean(name, known)}`);
      isGood = false;
    }
    for (const [name, check] of Object.entries(table)) {
      isGood = check(value[name], at + pointerTo(name), report) && isGood;
    }
    return isGood;
  };
}

/** Returns the check of an array with elements that pass `element`. */
export function elements(what: string, min: number, element: Check): Check {
  return (value, at, report) => {
    if (!Array.isArray(value) || value.length < min) {
      report(at, `must be ${what}`);
      return false;
    }
    return value
      .map((each: unknown, index) => element(each, `${at}/${index}`, report))
      .every(Boolean);
  };
}

/** The highest bound of a length that can be declared. */
export const lengthMax = 1_000_000;
const upTo = (max: number): Check =>
  must(`a whole number from 0 to ${max}`, (value) => {
    return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max;
  });
/** Returns the check of a text that must be one of `values`. */
export const oneOf = (values: readonly string[]): Check =>
  must(`one of ${values.join(', ')}`, (value) => values.some((known) => known === value));

const memberChecks: { readonly [rule in MemberRule]: Check } = {
  'length?': maybe(upTo(lengthMax)),
  'bytes?': maybe(upTo(limits.recordBytesMax)),
  'number?': maybe(aNumber),
  'flag?': maybe(aFlag),
  choices: elements('a non-empty array of strings', 1, aText),
  collection: aText,
  'onDelete?': maybe(oneOf(['refuse', 'remove', 'clear'])),
  'show?': maybe(oneOf(['name'])),
  element: checkElement,
  fields: checkNested,
  'like?': maybe(oneOf(likeKinds)),
};

/** The kinds that can be declared, and those within an object. */
const declarable = new Map(
  Object.entries<Kind>(kinds).filter(([, { members }]) => members !== undefined),
);

const nestedKinds = new Map([...declarable].filter(([kind]) => kind !== 'reference'));

const anything: Check = () => true;

/** The currency codes of ISO 4217 have three letters. */
const isMoney = (value: unknown): boolean =>
  isObject(value) &&
  Object.keys(value).join() === 'money' &&
  /^[A-Z]{3}$/.test(String(value['money']));
const checkHints = {
  label: maybe(aText),
  format: maybe(
    must(
      '"image", "percent" or a currency, such as {"money": "EUR"}',
      (value) => value === 'image' || value === 'percent' || isMoney(value),
    ),
  ),
  colors: maybe((value, at, report) => {
    if (!isObject(value)) return anObject(value, at, report);
    const checkColor = oneOf(colorNames);
    return Object.entries(value)
      .map(([name, color]) => checkColor(color, at + pointerTo(name), report))
      .every(Boolean);
  }),
};
const checkSetters = elements('a non-empty array of roles and "owner"', 1, aText);
const commonMembers = {
  optional: maybe(aFlag),
  nullable: maybe(aFlag),
  default: anything,
  example: anything,
  description: maybe(aText),
  renamedFrom: maybe(aText),
  set: maybe(checkSetters),
  ...checkHints,
};

/**
 * Checks that a declaration has one of these kinds, and the members of its kind and these
 * others.
 */
function checkMembers(
  allowed: ReadonlyMap<unknown, Kind>,
  others: (kind: Kind) => { readonly [name: string]: Check },
): Check {
  const aKind = oneOf(Array.from(allowed.keys(), String));
  return (value, at, report) => {
    if (!isObject(value)) return anObject(value, at, report);
    const kind = allowed.get(value['kind']);
    if (kind === undefined) return aKind(value['kind'], `${at}/kind`, report);
    const own = Object.entries(kind.members ?? {}).map(([name, rule]) => [
      name,
      memberChecks[rule],
    ]);
    return members({ kind: anything, ...others(kind), ...Object.fromEntries(own) })(
      value,
      at,
      report,
    );
  };
}

/** Checks the declaration of the elements of a list. */
function checkElement(value: unknown, at: string, report: Report): boolean {
  return checkMembers(declarable, () => ({ nullable: maybe(aFlag) }))(value, at, report);
}

/** Checks the fields of an object within a record: they refer to nothing, and have no default. */
function checkNested(value: unknown, at: string, report: Report): boolean {
  const checkOne = checkMembers(nestedKinds, () => ({
    optional: maybe(aFlag),
    nullable: maybe(aFlag),
    description: maybe(aText),
    set: maybe(checkSetters),
    ...checkHints,
  }));
  if (!isObject(value)) return anObject(value, at, report);
  return Object.entries(value)
    .map(([name, field]) => {
      const place = at + pointerTo(name);
      if (isFieldName.test(name)) return checkOne(field, place, report);
      report(place, nameRule);
      return false;
    })
    .every(Boolean);
}

/** Matches the names of fields. An assignment would not make a member named `__proto__`. */
export const isFieldName = /^(?!__proto__$)[^\p{Cc}\p{Cs}\u2028\u2029.]{1,64}$/u;
export const nameRule = 'needs a name of 1 to 64 characters without control characters and dots';

const checkOwnMembers = checkMembers(declarable, ({ isUnique }) => ({
  ...commonMembers,
  ...(isUnique && { unique: maybe(aFlag) }),
}));

/** Checks the declaration of a field with values that callers set and see. */
export const checkField: Check = (value, at, report) => {
  if (!checkOwnMembers(value, at, report)) return false;
  // The members are those of the field's kind, and have been checked.
  const field = value as unknown as Field;
  const contradictions = contradictionsIn(field);
  for (const [pointer, problem] of contradictions) report(at + pointer, problem);
  return contradictions.length === 0;
};

const hasSettersWithin = (field: Field): boolean =>
  field.kind === 'list' ? hasSettersWithin(field.of) : hasSetters({ field });

/** Whether a reference is deeper in a field than an element of a list: it could not be kept. */
function refersWithin(field: Field, depth = 0): boolean {
  if (field.kind === 'reference') return depth > 1;
  if (field.kind === 'list') return refersWithin(field.of, depth + 1);
  return (
    field.kind === 'object' &&
    Object.values(field.fields).some((one) => refersWithin(one, depth + 2))
  );
}

/** Returns the hints that do not suit the kind of a field, or of one within an object. */
function misplacedHints(field: Field): (readonly [pointer: string, problem: string])[] {
  const { kind, format, colors } = field;
  if (kind === 'object')
    return Object.entries(field.fields).flatMap(([name, one]) =>
      misplacedHints(one).map(
        ([at, problem]) => [`/fields${pointerTo(name)}${at}`, problem] as const,
      ),
    );
  const shown = kind === 'json' ? field.like : kind;
  const suits = format === 'image' ? ['text', 'url'] : ['number', 'integer'];
  if (format !== undefined && !suits.includes(String(shown)))
    return [['/format', `must be left out: it is for the kinds ${suits.join(' and ')}`]];
  const values: readonly string[] = kind === 'choice' ? field.values : [];
  return Object.keys(colors ?? {})
    .filter((value) => !values.includes(value))
    .map((value) => [`/colors${pointerTo(value)}`, 'must be one of the values of a choice']);
}

/** Returns where a field contradicts its own rule. */
function contradictionsIn(field: Field): (readonly [pointer: string, problem: string])[] {
  const { example, default: fallback, ...rule } = field;
  const misplaced = misplacedHints(field);
  if (misplaced.length > 0) return misplaced;
  if (ruleViolation(field, exampleOf(rule)) !== undefined)
    return [['', 'has bounds that no value can satisfy']];
  if (field.kind === 'list' && hasSettersWithin(field.of))
    return [['', 'must not have "set" within a list: declare it for the list']];
  if (refersWithin(field))
    return [
      ['', 'must not have references within: declare a field of this kind, or a list of them'],
    ];
  if (field.optional && fallback !== undefined)
    return [['/default', 'must be left out where the field is optional']];
  if (field.kind === 'reference' && fallback !== undefined)
    return [['/default', 'must be left out: no record needs to have this id']];
  if (field.kind === 'reference' && field.onDelete === 'clear' && !field.optional)
    return [['/onDelete', 'must not be clear where the field is not optional']];
  if ('unique' in field && field.unique && fallback !== undefined)
    return [['/default', 'must be left out where the field is unique']];
  return Object.entries({ example, default: fallback }).flatMap(([member, value]) => {
    const violation = value === undefined ? undefined : ruleViolation(field, value);
    return violation === undefined ? [] : [[pointerTo(member), violation.detail]];
  });
}
